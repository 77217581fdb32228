// The studio's page begins here: what the address names is shown, and drawn again when something changes.

import { h, render } from "./dom.js";
import { recallDraft } from "./draft.js";
import { listen } from "./events.js";
import { shortcuts } from "./keys.js";
import { lost, shell } from "./shell.js";
import { exploreStep } from "./steps/explore.js";
import { generalizeStep } from "./steps/generalize.js";
import { openStep } from "./steps/open.js";
import { protectStep } from "./steps/protect.js";
import { releaseStep } from "./steps/release.js";
import { addressOf, app, drawnBy, redraw, refresh } from "./store.js";
import { send } from "./api.js";
import { chosen, wear } from "./theme.js";
import { STEPS } from "./words.js";

const VIEWS = {
  open: openStep,
  generalize: generalizeStep,
  protect: protectStep,
  explore: exploreStep,
  release: releaseStep,
};

function page() {
  if (app.lost) return lost(app.lost);
  if (!app.session) return h("p", { class: "aside", role: "status" }, "The studio is coming.");
  return shell(VIEWS[app.step]());
}

/** Read the address: #step/what is chosen there. */
export function readAddress(hash) {
  const [step, ...rest] = hash.replace(/^#/, "").split("/");
  return {
    step: STEPS.some((known) => known.id === step) ? step : null,
    chosen: rest.length ? decodeURIComponent(rest.join("/")) : null,
  };
}

function arrive() {
  const { step, chosen: what } = readAddress(location.hash);
  if (!step) return history.replaceState(null, "", addressOf(app.step));
  const moved = step !== app.step;
  Object.assign(app, { step, chosen: what });
  if (moved) entered();
  redraw();
}

function entered() {
  app.problems = {}; // the fields of this step are made anew, by the policy
  scrollTo(0, 0);
  send("POST", "/api/step", { step: app.step }).catch(() => {}); // only a memory: the next reload begins elsewhere
  requestAnimationFrame(() =>
    requestAnimationFrame(() => document.querySelector("main h1")?.focus({ preventScroll: true })),
  );
}

async function begin() {
  wear(chosen());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("theme")),
  );
  const root = document.getElementById("studio");
  drawnBy(() => {
    render(root, page());
    document.title = app.session?.source?.name ? `${app.session.source.name} – kinfold studio` : "kinfold studio";
  });
  await refresh();
  if (app.lost) return;
  const named = readAddress(location.hash);
  const remembered = readAddress(`#${app.session?.step ?? ""}`);
  Object.assign(app, { step: named.step ?? remembered.step ?? "open", chosen: named.chosen });
  if (!named.step) history.replaceState(null, "", addressOf(app.step));
  addEventListener("hashchange", arrive);
  addEventListener("keydown", shortcuts);
  addEventListener("resize", redraw); // the map fills the room that there is
  listen();
  recallDraft();
  redraw();
}

begin();
