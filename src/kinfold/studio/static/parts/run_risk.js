// The remaining risk: the curve before and after, and the linkage attack.

import { chart } from "../charts.js";
import { h } from "../dom.js";
import { count, digits, plural, share } from "../numbers.js";
import { countAtLeast } from "../risk_curve.js";
import { query } from "../store.js";
import { joinNames, shortenName } from "../texts.js";
import { pending } from "./sections.js";

/** Return the risk of a run: the curve, the attack and the special uniques; in one column or two. */
export function runRisk(run, narrow) {
  return h(
    "div",
    { class: narrow ? "" : "halves even" },
    h("div", { class: "matter" }, runRecords(run), runAttack(run)),
    h("div", { class: "matter" }, runScores(run)),
  );
}

// The curve of risks before and after.
function runRecords(run) {
  const answer = query(`/api/runs/${run.id}/records`, true);
  const known = answer.value;
  if (!known) return pending(answer);
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
      label: "Share of the records with at least this risk, before and after",
    }),
    h("div", { class: "key" }, h("span", {}, "before"), h("span", { class: "after" }, "after")),
  ];
}

function curveOf(counts, when) {
  return countAtLeast(counts).map((point) => ({ ...point, when }));
}

// The results of the linkage attack.
function runAttack(run) {
  const answer = query(`/api/runs/${run.id}/attack`, true);
  const known = answer.value;
  if (!known) return pending(answer);
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
      "Share of the released records that the attacker links to the right original record, by the columns they know.",
    ),
    h(
      "ul",
      { class: "plain" },
      line("all quasi-identifiers", known.linkage, known.bound),
      (known.subsets ?? []).map((one) => line(one.columns.join(" + "), one.linkage, one.bound)),
      asTheyAre(run, known.untouched).map((names) =>
        line(`all, and ${joinNames(names)} as released`, known.untouched.linkage),
      ),
    ),
    (known.notes ?? []).map((text) => h("p", { class: "soft small" }, text)),
  ];
}

// The columns that the attacker also knows because they were released unchanged.
function asTheyAre(run, untouched) {
  const quasi = (query(`/api/runs/${run.id}/columns`, true).value?.columns ?? []).filter(
    (one) => one.role === "quasi-identifier",
  );
  const names = (untouched?.columns ?? []).filter((name) => !quasi.some((column) => column.name === name));
  return names.length ? [names] : [];
}

// The special uniques: by column before and after, and the records that stand out most.
function runScores(run) {
  const answer = query(`/api/runs/${run.id}/suda`, true);
  const known = answer.value;
  if (known === undefined) return pending(answer);
  if (known === null)
    return h("p", { class: "soft small" }, "No special uniques: not computed for a table of this size.");
  const { before, after, worst } = known;
  const names = Object.keys(before.contributions);
  return [
    h(
      "p",
      {},
      `Few values suffice to single out ${plural(before.records, "original record")}`,
      after ? ` and ${plural(after.records, "released one")}` : "",
      " (special uniques, SUDA2).",
    ),
    small(
      "What contributes to the scores, by column",
      ["column", "before", "after"],
      names.map((name) => [name, percent(before.contributions[name]), percent(after?.contributions[name])]),
    ),
    worst.length
      ? small(
          "Records that stand out most, in the original",
          ["row", "score", "columns that contribute most"],
          worst.map((one) => [count(one.record), digits(one.score), listLargest(one.contributions)]),
        )
      : null,
  ];
}

function percent(part) {
  return part === undefined || part === null ? "–" : share(part / 100);
}

/** Name the columns that contribute most to the score of a record. */
export function listLargest(contributions, most = 3) {
  return Object.entries(contributions)
    .filter(([, part]) => part > 0)
    .sort(([, one], [, other]) => other - one)
    .slice(0, most)
    .map(([name, part]) => `${shortenName(name)} ${share(part / 100)}`)
    .join(", ");
}

function small(caption, heads, rows) {
  const isNumber = (index) => index > 0 && !rows.some((row) => /^[a-z]/i.test(row[index]));
  return h(
    "div",
    { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: "tight wraps" },
      h("caption", {}, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((name, index) => h("th", { scope: "col", class: isNumber(index) ? "number" : null }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([name, ...cells]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", dir: "auto" }, name),
            cells.map((text, index) => h("td", { class: isNumber(index + 1) ? "number" : null }, text)),
          ),
        ),
      ),
    ),
  );
}
