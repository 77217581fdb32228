// Everything tried in this session: the map of risk and utility, and the same as a table.

import { forgetRun, takeRun } from "../actions.js";
import { chart } from "../charts.js";
import { h } from "../dom.js";
import { digits, share } from "../numbers.js";
import { addressOf, app, go, look, note } from "../store.js";
import { STATES } from "../words.js";
import { told } from "./fields.js";
import { button } from "./sections.js";

const AROUND = 92; // pixels of the map that are not its plot
const STEP = 20; // pixels by which it grows, so that not every pixel of a window asks for a new one
let last = null;

/** The map as the server drew it, for the room that there is; while the window changes, the one before. */
export function mapNow() {
  if (!app.session.runs.length) last = null;
  const zoom = Number(getComputedStyle(document.documentElement).getPropertyValue("--zoom")) || 1;
  const room = (document.querySelector("main .matter")?.clientWidth ?? innerWidth - 32) / zoom;
  const width = Math.min(Math.floor((room - AROUND) / STEP) * STEP, 760);
  last = look(`/api/map?width=${Math.max(width, 0)}`).value ?? last;
  return last;
}

/** The map. */
export function runMap() {
  const map = mapNow();
  if (!map?.points?.length) return h("p", { class: "soft" }, "The map has its first point when a run is done.");
  const front = map.points.filter((point) => point.pareto).length;
  const label = `Risk and loss of ${map.points.length} runs; ${front} that no other beats. The table has the same.`;
  return h(
    "figure",
    { class: "map" },
    h(
      "div",
      { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Map of risk and utility" },
      chart({ key: "map", spec: map.chart, label, onPick: (datum) => pick(map.points, datum) }),
    ),
    h(
      "figcaption",
      { class: "soft small" },
      "Down and left is better. Filled: no other has less risk and less loss. Click a point to see it.",
    ),
  );
}

function pick(points, datum) {
  const point = points.find((one) => one.run === datum.run || (one.risk === datum.risk && one.loss === datum.loss));
  if (point) go("explore", point.run);
}

/** The table: which run is shown, and which one beside it. */
export function runTable(runs, shown, beside) {
  const points = new Map((mapNow()?.points ?? []).map((point) => [point.run, point]));
  const rows = runs.map((run) => runRow(run, points.get(run.id), shown, beside));
  const heads = [
    ["run", ""],
    ["loss", "number"],
    ["risk", "number"],
    ["k", "number"],
    ["left out", "number"],
    ["beside", ""],
    ["", ""],
  ];
  return h(
    "table",
    { class: "stacked runs" },
    h("caption", { class: "aside" }, "Runs of this session"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map(([name, kind]) =>
          h("th", { scope: "col", class: kind }, name || h("span", { class: "aside" }, "actions")),
        ),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function runRow(run, point, shown, beside) {
  const current = run === shown;
  const { summary } = run;
  return h(
    "tr",
    { key: run.id, class: current ? "current" : "" },
    h(
      "th",
      { scope: "row" },
      run.state === "done"
        ? h("a", { href: addressOf("explore", run.id), "aria-current": current ? "true" : null }, run.name)
        : run.name,
      " ",
      point?.pareto ? h("span", { class: "front" }, "not beaten") : null,
      run.state === "done" ? null : h("span", { class: `state state-${run.state}` }, STATES[run.state]),
      run.stale ? h("span", { class: "soft small" }, " of another reading") : null,
      run.state === "failed" ? h("p", { class: "small alarm" }, run.problems.map(told).join(" ")) : null,
    ),
    h("td", { class: "number", "data-title": "loss" }, summary ? share(summary.loss) : "–"),
    h("td", { class: "number", "data-title": "risk" }, share(point?.risk ?? summary?.risk)),
    h("td", { class: "number", "data-title": "k" }, summary ? digits(summary.k) : "–"),
    h("td", { class: "number", "data-title": "left out" }, summary ? digits(summary.suppressed) : "–"),
    h(
      "td",
      { "data-title": "beside" },
      run.state === "done" && !current
        ? h(
            "label",
            { class: "tick" },
            h("input", {
              type: "checkbox",
              checked: run === beside,
              "aria-label": `Show ${run.name} beside`,
              on: { change: (event) => note({ beside: event.target.checked ? run.id : null }) },
            }),
          )
        : null,
    ),
    h(
      "td",
      {},
      h(
        "div",
        { class: "buttons tight" },
        run.state === "done"
          ? button("Take", () => takeRun(run), {
              slim: true,
              "aria-label": `Take the policy of ${run.name}`,
            })
          : null,
        ["done", "failed", "cancelled"].includes(run.state)
          ? button("Forget", () => forgetRun(run.id), { slim: true, "aria-label": `Forget ${run.name}` })
          : null,
      ),
    ),
  );
}

/** The run that the address names, else the last of the policy as it stands, else the last; and the one beside it. */
export function chosenRuns() {
  const done = app.session.runs.filter((run) => run.state === "done");
  const shown = done.find((run) => run.id === app.chosen) ?? done.findLast(asDecided) ?? done.at(-1) ?? null;
  const beside = done.find((run) => run.id === app.ui.beside && run !== shown) ?? null;
  return { shown, beside };
}

// What was only tried comes after what was decided.
function asDecided(run) {
  const { privacy, method } = app.session.policy.complete;
  return run.asked?.k === privacy.k && run.asked?.method === method.name;
}
