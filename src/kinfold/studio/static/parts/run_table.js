// The runs of this session: the map of risk and utility, and a table.

import { adoptPolicy, removeRun, run as startRun } from "../actions.js";
import { chart } from "../charts.js";
import { h } from "../dom.js";
import { count, digits, plural, share } from "../numbers.js";
import { getAddress, app, go, query, updateUi } from "../store.js";
import { STATES, shortenName } from "../texts.js";
import { describeProblem } from "./fields.js";
import { whatIs } from "./help.js";
import { button } from "./sections.js";

const AROUND = 92; // pixels around the plot of the map
const STEP = 20; // pixels: the map grows in steps, so that not every new width of the window requests a map
let last = null;

/** Return the map from the server for the available width; until it arrives, the previous one. */
export function getMap() {
  if (!app.session.runs.length) last = null;
  const zoom = Number(getComputedStyle(document.documentElement).getPropertyValue("--zoom")) || 1;
  const space = (document.querySelector("main .map-box")?.clientWidth ?? innerWidth - 32) / zoom;
  const width = Math.min(Math.floor((space - AROUND) / STEP) * STEP, 760);
  last = query(`/api/map?width=${Math.max(width, 0)}`).value ?? last;
  return last;
}

/** Return the map, with a ring around the run that is shown. */
export function runMap(shown) {
  const map = getMap();
  if ((map?.points?.length ?? 0) < 2) return tooFew();
  const front = map.points.filter((point) => point.pareto).length;
  const label = `Risk and loss of ${map.points.length} runs; ${front} that no other beats. The table shows the same.`;
  return h(
    "figure",
    { class: "map" },
    h(
      "div",
      { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Map of risk and utility" },
      chart({
        key: "map",
        spec: ringPoint(
          map.chart.spec,
          map.points.find((point) => point.run === shown?.id),
        ),
        label,
        onPick: (datum) => pick(map.points, datum),
        describe: (datum) => describePoint(map.points, app.session.runs, datum),
      }),
    ),
    h(
      "figcaption",
      { class: "soft small" },
      "Lower and left is better. Filled: no other run has less risk and less loss. Ring: the run shown below. " +
        "Click a point to show its run.",
    ),
  );
}

/** Return the specification of the map with a ring around a point. */
export function ringPoint(spec, point) {
  if (!point) return spec;
  const ring = {
    name: "ring",
    data: { values: [{ risk: point.risk, loss: point.loss }] },
    mark: { type: "point", size: 420, strokeWidth: 1.5, stroke: "#a8361f", fill: null, opacity: 1 },
  };
  return { ...spec, layer: [...spec.layer, ring] };
}

// One point is not a map: it shows nothing to choose from.
function tooFew() {
  const { rows } = app.session.source;
  const values = [3, 10, 20].filter((k) => k <= rows && k !== app.session.policy.complete.privacy.k);
  const start = () => Promise.all(values.map((k) => startRun({ "privacy.k": k })));
  return h(
    "div",
    { class: "empty" },
    h("p", {}, "The map of risk and loss needs two runs."),
    values.length ? button(`Run k = ${values.join(", ")} in the background`, start) : null,
  );
}

function pick(points, datum) {
  const [point] = findPoints(points, datum);
  if (point) go("explore", point.run);
}

function findPoints(points, datum) {
  return points.filter((one) => one.risk === datum.risk && one.loss === datum.loss);
}

/** Describe the runs at a point of the map; null elsewhere. */
export function describePoint(points, runs, datum) {
  const lines = findPoints(points, datum).map((point) => {
    const { name, summary } = runs.find((run) => run.id === point.run) ?? {};
    if (!summary) return "";
    const rest = `${plural(summary.classes, "class", "classes")}, ${count(summary.suppressed)} suppressed`;
    return `${name}: risk ${share(point.risk)}, loss ${share(point.loss)}, ${rest}`;
  });
  return lines.filter(Boolean).join("\n") || null;
}

/** Return the table of runs, with the run that is shown and a second one to compare. */
export function runTable(runs, shown, compared) {
  const points = new Map((getMap()?.points ?? []).map((point) => [point.run, point]));
  const rows = runs.map((run) => runRow(run, points.get(run.id), shown, compared));
  const heads = [
    ["run", ""],
    ["loss", "number", "Loss"],
    ["risk", "number", "Disclosure risk"],
    ["k", "number"],
    ["suppressed", "number"],
    ["compare", ""],
    ["", ""],
  ];
  return h(
    "table",
    { class: "stacked dense runs" },
    h("caption", { class: "aside" }, "Runs of this session"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map(([name, kind, term]) =>
          h(
            "th",
            { scope: "col", class: kind, "aria-label": name || null },
            name || h("span", { class: "aside" }, "actions"),
            term ? whatIs(term) : null,
          ),
        ),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function runRow(run, point, shown, compared) {
  const current = run === shown;
  const { summary } = run;
  return h(
    "tr",
    { key: run.id, class: current ? "current" : "" },
    h(
      "th",
      { scope: "row" },
      run.state === "done"
        ? h("a", { href: getAddress("explore", run.id), "aria-current": current ? "true" : null }, run.name)
        : run.name,
      " ",
      point?.pareto ? h("span", { class: "front" }, "unbeaten") : null,
      run.state === "done" ? null : h("span", { class: `state state-${run.state}` }, STATES[run.state]),
      run.stale ? h("span", { class: "soft small" }, " read with other options") : null,
      run.state === "failed" ? h("p", { class: "small alarm" }, run.problems.map(describeProblem).join(" ")) : null,
    ),
    h("td", { class: "number", "data-title": "loss" }, summary ? share(summary.loss) : "–"),
    h("td", { class: "number", "data-title": "risk" }, share(point?.risk ?? summary?.risk)),
    h("td", { class: "number", "data-title": "k" }, summary ? digits(summary.k) : "–"),
    h("td", { class: "number", "data-title": "suppressed" }, summary ? digits(summary.suppressed) : "–"),
    h(
      "td",
      { "data-title": "compare" },
      run.state === "done" && !current
        ? h(
            "label",
            { class: "tick" },
            h("input", {
              type: "checkbox",
              checked: run === compared,
              "aria-label": `Compare with ${run.name}`,
              on: { change: (event) => updateUi({ compared: event.target.checked ? run.id : null }) },
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
          ? button("Use", () => adoptPolicy(run), {
              slim: true,
              "aria-label": `Use the policy of ${run.name}`,
            })
          : null,
        ["done", "failed", "cancelled"].includes(run.state)
          ? button("×", () => removeRun(run.id), {
              slim: true,
              title: "Remove",
              "aria-label": `Remove ${run.name}`,
            })
          : null,
      ),
    ),
  );
}

/** Return a message if the address names a run that is not there; null otherwise. */
export function unknownRun() {
  const { chosen, session } = app;
  if (chosen === null || session.runs.some((run) => run.id === chosen)) return null;
  const text = `There is no run '${shortenName(chosen)}' in this session. The newest run of the policy is shown.`;
  return h("p", { class: "alarm", role: "status" }, text);
}

/** Return the run in the address, or the last one with the current policy, or the last; and the one to compare. */
export function getSelectedRuns() {
  const done = app.session.runs.filter((run) => run.state === "done");
  const shown = done.find((run) => run.id === app.chosen) ?? done.findLast(asDecided) ?? done.at(-1) ?? null;
  const compared = done.find((run) => run.id === app.ui.compared && run !== shown) ?? null;
  return { shown, compared };
}

// Runs of the current policy come first.
function asDecided(run) {
  const { privacy, method } = app.session.policy.complete;
  return run.asked?.k === privacy.k && run.asked?.method === method.name;
}
