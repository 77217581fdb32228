// One run, or two side by side: its summary, its columns before and after, the sizes of its classes.

import { chart } from "../charts.js";
import { h } from "../dom.js";
import { count, duration, plural, share } from "../numbers.js";
import { app, query, updateUi } from "../store.js";
import { describeStage } from "../texts.js";
import { select } from "./fields.js";
import { button, numbers, pending } from "./sections.js";
import { lossCurve } from "./run_view.js";

const SIDES = ["before", "after"];
const MAX_COLUMNS = 9; // more columns are shown on demand

/** Show runs side by side. */
export function showSideBySide(runs, draw) {
  return h(
    "div",
    { class: `pair ${runs.length > 1 ? "two" : ""}` },
    runs.map((run) =>
      h(
        "div",
        { key: run.id, class: "one" },
        runs.length > 1 ? h("h3", { class: "whose" }, run.name) : null,
        draw(run),
      ),
    ),
  );
}

/** Return the summary of a run. */
export function runSummary(run) {
  const { summary } = run;
  return [
    h("p", {}, summary.headline),
    numbers([
      ["Released", count(summary.released)],
      ["Suppressed", count(summary.suppressed)],
      ["Classes", count(summary.classes)],
      ["Smallest class", count(summary.k)],
      ["Information lost", share(summary.loss)],
      ["Risk", share(summary.risk), summary.risk_before !== null ? `before ${share(summary.risk_before)}` : ""],
    ]),
    lossCurve(run),
    stageTimes(run),
  ];
}

// Several stages of a method have one name on the page.
function stageTimes(run) {
  const known = query(`/api/runs/${run.id}/stages`, true).value;
  if (!known) return null;
  const times = sumByName(known, describeStage);
  const all = times.reduce((sum, [, seconds]) => sum + seconds, 0);
  return h(
    "figure",
    { class: "stages" },
    h("figcaption", { class: "small" }, `Time by stage, ${duration(all)} in all`),
    h(
      "ul",
      { class: "plain" },
      times.map(([name, seconds]) =>
        h(
          "li",
          { class: "meter small" },
          h("span", { class: "number" }, duration(seconds)),
          h(
            "span",
            { class: "track", "aria-hidden": "true" },
            h("i", { style: { "--share": `${(100 * seconds) / (all || 1)}%` } }),
          ),
          h("span", {}, name),
        ),
      ),
    ),
  );
}

/** Sum numbers whose keys have the same name, the largest first. */
export function sumByName(values, getName) {
  const sums = new Map();
  for (const [key, value] of Object.entries(values)) sums.set(getName(key), (sums.get(getName(key)) ?? 0) + value);
  return [...sums].sort(([, one], [, other]) => other - one);
}

const ORDERS = [
  ["lost", "most information lost first"],
  ["shift", "largest shift first"],
  ["changed", "most changed cells first"],
];

/** Return the columns before and after: quasi-identifiers first, and those that lost most; or in another order. */
export function runColumns(runs) {
  const answer = query(`/api/runs/${runs[0].id}/columns`, true);
  const known = answer.value?.columns;
  if (!known) return pending(answer);
  const key = app.ui.columnOrder ?? "lost";
  const order = [...known].sort((one, other) => compareColumns(one, other, key));
  const shown = app.ui.allColumns ? order : order.slice(0, MAX_COLUMNS);
  const change = (event) => updateUi({ columnOrder: event.target.value });
  return [
    h(
      "div",
      { class: "line toolbar" },
      h(
        "div",
        { class: "key" },
        SIDES.map((side) => h("span", { class: side === "after" ? side : "" }, side)),
      ),
      select(ORDERS, key, change, null, { class: "slim", "aria-label": "Order of the columns" }),
    ),
    h(
      "div",
      { class: `cards ${runs.length > 1 ? "two" : ""}` },
      shown.map((column) => card(column, runs)),
    ),
    shown.length < order.length
      ? button(`Show ${plural(order.length - shown.length, "more column")}`, () => updateUi({ allColumns: true }))
      : null,
  ];
}

/** Compare two columns by a number, the largest first; by what was lost, quasi-identifiers come first. */
export function compareColumns(one, other, key) {
  const ranks = rank(one) - rank(other);
  const larger = (other[key] ?? -1) - (one[key] ?? -1);
  return key === "lost" ? ranks || larger : larger || ranks;
}

function rank(column) {
  return { "quasi-identifier": 0, confidential: 1, other: 2 }[column.role] ?? 3;
}

function card(column, runs) {
  return h(
    "article",
    { key: column.name },
    h("h3", { dir: "auto" }, column.name, " ", h("span", { class: `badge role-${column.role}` }, column.role)),
    h(
      "div",
      { class: "runs-of" },
      runs.map((run) => columnOf(column.name, run, runs.length > 1)),
    ),
  );
}

function columnOf(name, run, several) {
  const answer = query(`/api/runs/${run.id}/column?column=${encodeURIComponent(name)}`, true);
  const known = answer.value;
  if (!known) return h("div", { key: run.id }, pending(answer));
  const lost = known.lost === null || known.lost === undefined ? "" : `Lost ${share(known.lost)} of its information; `;
  const changed =
    known.changed === null || known.changed === undefined ? "" : `${share(known.changed)} of its cells changed.`;
  return h(
    "div",
    { key: run.id, class: "before-after" },
    several ? h("p", { class: "small whose" }, run.name) : null,
    (known.charts ?? []).map((spec, index) =>
      chart({
        key: `${run.id} ${name} ${index}`,
        spec,
        label: `${name} before and after ${run.name}. ${lost}${changed}`,
      }),
    ),
    h("p", { class: "treatment" }, known.treatment),
    h("p", { class: "remark" }, lost, changed, describeShift(known.shift)),
  );
}

function describeShift(part) {
  return part ? ` Its distribution differs for at least ${share(part)} of the records.` : "";
}

/** Return the sizes of the classes. */
export function runClasses(run) {
  const answer = query(`/api/runs/${run.id}/classes`, true);
  const known = answer.value;
  if (!known) return pending(answer);
  const sizes = known.sizes.map(([size]) => size);
  return chart({
    key: `classes ${run.id}`,
    spec: known.chart,
    label: `Classes of ${Math.min(...sizes)} to ${Math.max(...sizes)} records`,
  });
}
