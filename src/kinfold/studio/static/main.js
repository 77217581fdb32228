// The studio's page starts here. It shows the step in the address, and draws it again after every change.

import { h, render } from "./dom.js";
import { restoreDraft } from "./draft.js";
import { listen } from "./events.js";
import { handleKey } from "./keys.js";
import { sessionEnded, shell } from "./shell.js";
import { exploreStep } from "./steps/explore.js";
import { generalizeStep } from "./steps/generalize.js";
import { openStep } from "./steps/open.js";
import { protectStep } from "./steps/protect.js";
import { releaseStep } from "./steps/release.js";
import { getAddress, app, setPainter, redraw, refresh } from "./store.js";
import { send } from "./api.js";
import { getTheme, applyTheme } from "./theme.js";
import { STEPS } from "./texts.js";

const VIEWS = {
  open: openStep,
  generalize: generalizeStep,
  protect: protectStep,
  explore: exploreStep,
  release: releaseStep,
};

function page() {
  if (app.lost) return sessionEnded(app.lost);
  if (!app.session) return h("p", { class: "aside", role: "status" }, "Loading the studio.");
  return shell(VIEWS[app.step]());
}

/** Parse an address: #step/selection. */
export function readAddress(hash) {
  const [step, ...rest] = hash.replace(/^#/, "").split("/");
  return {
    step: STEPS.some((known) => known.id === step) ? step : null,
    chosen: rest.length ? decode(rest.join("/")) : null,
  };
}

// An address can be typed or cut: then it is not encoded, and is taken as it is.
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function handleAddress() {
  const { step, chosen: what } = readAddress(location.hash);
  if (!step) return history.replaceState(null, "", getAddress(app.step));
  const moved = step !== app.step;
  if (moved) app.visited.add(app.step);
  Object.assign(app, { step, chosen: what });
  if (moved) enterStep();
  redraw();
}

function enterStep() {
  app.problems = {}; // the fields of the step show the policy again
  scrollTo(0, 0);
  send("POST", "/api/step", { step: app.step }).catch(() => {}); // without it, a reload starts at another step
  requestAnimationFrame(() =>
    requestAnimationFrame(() => document.querySelector("main h1")?.focus({ preventScroll: true })),
  );
}

async function start() {
  applyTheme(getTheme());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("theme")),
  );
  const root = document.getElementById("studio");
  setPainter(() => {
    render(root, page());
    document.title = app.session?.source?.name ? `${app.session.source.name} – kinfold studio` : "kinfold studio";
  });
  await refresh();
  if (app.lost) return;
  const address = readAddress(location.hash);
  const remembered = readAddress(`#${app.session?.step ?? ""}`);
  Object.assign(app, { step: address.step ?? remembered.step ?? "open", chosen: address.chosen });
  if (!address.step) history.replaceState(null, "", getAddress(app.step));
  addEventListener("hashchange", handleAddress);
  addEventListener("keydown", handleKey);
  addEventListener("resize", redraw); // the map fills the available width
  listen();
  restoreDraft();
  redraw();
}

start();
