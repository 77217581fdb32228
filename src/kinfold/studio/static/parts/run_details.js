// One run, or two side by side: columns before and after, class sizes, records at risk, what a linkage attacker gets.

import { chart } from "../charts.js";
import { h } from "../dom.js";
import { atLeast } from "../risk_curve.js";
import { count, plural, share } from "../numbers.js";
import { app, look, note } from "../store.js";
import { button, numbers } from "./sections.js";
import { lossCurve } from "./run_view.js";

const FIRST = 9; // columns shown at once; a wide table has more on demand

/** Runs in columns of their own. */
export function sideBySide(runs, draw) {
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

/** What a run came to. */
export function summaryOf(run) {
  const { summary } = run;
  return [
    h("p", {}, summary.headline),
    numbers([
      ["Released", count(summary.released)],
      ["Left out", count(summary.suppressed)],
      ["Classes", count(summary.classes)],
      ["Smallest class", count(summary.k)],
      ["Information lost", share(summary.loss)],
      ["Risk", share(summary.risk), summary.risk_before !== null ? `before ${share(summary.risk_before)}` : ""],
    ]),
    run.curve?.length > 1 ? lossCurve(run) : null,
  ];
}

/** Columns before and after, those that are changed first. */
export function columnsOf(runs) {
  const known = look(`/api/runs/${runs[0].id}/columns`, true).value?.columns;
  if (!known) return h("p", { class: "soft" }, "Looking at its columns …");
  const order = [...known].sort((one, other) => rank(one) - rank(other));
  const shown = app.ui.allColumns ? order : order.slice(0, FIRST);
  return [
    h(
      "div",
      { class: "cards" },
      shown.map((column) => card(column, runs)),
    ),
    shown.length < order.length
      ? button(`Show ${plural(order.length - shown.length, "more column")}`, () => note({ allColumns: true }))
      : null,
  ];
}

function rank(column) {
  return { "quasi-identifier": 0, confidential: 1, other: 2 }[column.role] ?? 3;
}

function card(column, runs) {
  return h(
    "article",
    { key: column.name },
    h("h3", { dir: "auto" }, column.name, " ", h("span", { class: `badge role-${column.role}` }, column.role)),
    runs.map((run) => columnOf(column.name, run, runs.length > 1)),
  );
}

function columnOf(name, run, several) {
  const known = look(`/api/runs/${run.id}/column?column=${encodeURIComponent(name)}`, true).value;
  if (!known) return h("p", { class: "soft small", key: run.id }, "…");
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
    h("p", { class: "remark" }, lost, changed),
  );
}

/** The sizes of the classes. */
export function classesOf(run) {
  const known = look(`/api/runs/${run.id}/classes`, true).value;
  if (!known) return h("p", { class: "soft" }, "…");
  const sizes = known.sizes.map(([size]) => size);
  return chart({
    key: `classes ${run.id}`,
    spec: known.chart,
    label: `Classes of ${Math.min(...sizes)} to ${Math.max(...sizes)} records`,
  });
}

/** How many records have how much risk, before and after; and those that have the most. */
export function recordsOf(run) {
  const known = look(`/api/runs/${run.id}/records`, true).value;
  if (!known) return h("p", { class: "soft" }, "…");
  const values = [...curveOf(known.before.counts, "before"), ...curveOf(known.after.counts, "after")];
  const axis = (title) => ({ title, axis: { format: "~%", tickCount: 5 }, scale: { domain: [0, 1] } });
  const spec = {
    width: 330,
    height: 150,
    autosize: "none",
    padding: { left: 52, right: 14, top: 24, bottom: 42 },
    data: { values },
    mark: { type: "line", interpolate: "step-before", strokeWidth: 2 },
    encoding: {
      x: { field: "risk", type: "quantitative", ...axis("risk of a record, at least") },
      y: {
        field: "share",
        type: "quantitative",
        title: "share of the records",
        scale: { domain: [0, 1] },
        axis: { format: "~%", tickCount: 3, titleAngle: 0, titleAlign: "left", titleX: -48, titleY: -12 },
      },
      color: {
        field: "when",
        type: "nominal",
        scale: { domain: ["before", "after"], range: ["#a9884a", "#175a6b"] },
        legend: null,
      },
    },
  };
  return [
    chart({
      key: `records ${run.id}`,
      spec,
      label: "Share of the records with at least so much risk, before and after",
    }),
    h("div", { class: "key" }, h("span", {}, "before"), h("span", { class: "after" }, "after")),
    worst(known.worst),
  ];
}

function curveOf(counts, when) {
  return atLeast(counts).map((point) => ({ ...point, when }));
}

function worst(records) {
  if (!records?.length) return null;
  const columns = Object.keys(records[0].quasi);
  const open = app.ui.worst ?? false;
  const rows = records.map((one) =>
    h(
      "tr",
      { key: one.record },
      h("th", { scope: "row", class: "number" }, count(one.record + 1)),
      h("td", { class: "number" }, share(one.before)),
      h("td", { class: "number" }, share(one.after)),
      columns.map((name) => h("td", {}, pair(one.quasi[name]))),
    ),
  );
  return h(
    "details",
    { open, on: { toggle: (event) => note({ worst: event.currentTarget.open }) } },
    h("summary", {}, `The ${count(records.length)} records with the highest risk that is left`),
    h(
      "div",
      { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Records with the highest risk" },
      h(
        "table",
        { class: "tight" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["row", "before", "after"].map((name) => h("th", { scope: "col", class: "number" }, name)),
            columns.map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
  );
}

function pair([before, after] = []) {
  if (before === after) return before ?? "missing";
  return [h("span", { class: "was" }, before ?? "missing"), " → ", h("b", {}, after ?? "missing")];
}

/** What somebody gets who links the release with what they know. */
export function attackOf(run) {
  const known = look(`/api/runs/${run.id}/attack`, true).value;
  if (!known) return h("p", { class: "soft" }, "…");
  const line = (columns, linkage, bound) =>
    h(
      "li",
      { class: "meter" },
      h("strong", { class: "number" }, share(linkage)),
      h(
        "span",
        { class: "track", "aria-hidden": "true" },
        h("i", { style: { "--share": `${100 * (linkage ?? 0)}%` } }),
      ),
      h("span", {}, columns, bound ? h("span", { class: "soft" }, `, ${share(bound)} at most`) : null),
    );
  return [
    h(
      "p",
      {},
      "Share of the released records whose right original is found by the nearest one, by what the attacker knows.",
    ),
    h(
      "ul",
      { class: "plain" },
      line("all quasi-identifiers", known.linkage, known.bound),
      (known.subsets ?? []).map((one) => line(one.columns.join(" + "), one.linkage, one.bound)),
      known.untouched?.columns?.length
        ? line(`columns released as they are: ${known.untouched.columns.join(", ")}`, known.untouched.linkage, null)
        : null,
    ),
    (known.notes ?? []).map((text) => h("p", { class: "soft small" }, text)),
  ];
}
