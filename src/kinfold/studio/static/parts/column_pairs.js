// Two columns before and after, of one run or two: contingency tables, quantiles, the correlation; and a regression.

import { h } from "../dom.js";
import { count, digits, share } from "../numbers.js";
import { app, getProblems, decide, query, updateUi } from "../store.js";
import { field, select } from "./fields.js";
import { showSideBySide } from "./run_details.js";
import { pending } from "./sections.js";

const LEVELS = ["least", "5%", "25%", "median", "75%", "95%", "largest"];
const SIDES = ["before", "after"];

/** Return the choice of two columns, and what became of them in each run. */
export function columnPairs(runs) {
  const released = (query(`/api/runs/${runs[0].id}/columns`, true).value?.columns ?? []).filter(
    (column) => !column.treatment.startsWith("removed"),
  );
  if (released.length < 2) return h("p", { class: "soft" }, "The release has fewer than two columns.");
  const names = released.map((column) => column.name);
  const confidential = released.find((column) => column.role === "confidential")?.name;
  const first = names.includes(app.ui.pairOne) ? app.ui.pairOne : names[0];
  const second = names.includes(app.ui.pairOther) ? app.ui.pairOther : (confidential ?? names[1]);
  const choice = (key, label, value) =>
    select(names, value, (event) => updateUi({ [key]: event.target.value }), null, {
      class: "slim",
      "aria-label": label,
    });
  return [
    h(
      "div",
      { class: "line toolbar" },
      choice("pairOne", "First column", first),
      h("span", {}, "by"),
      choice("pairOther", "Second column", second),
    ),
    showSideBySide(runs, (run) => pair(run, [first, second])),
    regression(runs),
  ];
}

function pair(run, names) {
  const [one, other] = names.map(encodeURIComponent);
  const answer = query(`/api/runs/${run.id}/pair?one=${one}&other=${other}`, true);
  const known = answer.value;
  if (!known) return pending(answer);
  const { correlation, moved } = known;
  const facts = [
    moved === null ? null : `The tables differ by at least ${share(moved)} of the records.`,
    correlation ? `Correlation: ${digits(correlation[0], 3)} before, ${digits(correlation[1], 3)} after.` : null,
  ];
  return [
    facts.some(Boolean) ? h("p", {}, facts.filter(Boolean).join(" ")) : null,
    h(
      "div",
      { class: "halves even" },
      known.tables.map((table, side) => contingency(table, SIDES[side], names)),
    ),
    known.quantiles.map((sides, index) => (sides ? quantiles(sides, names[index]) : null)),
  ];
}

function contingency({ rows, columns, counts }, side, names) {
  const total = counts.flat().reduce((sum, one) => sum + one, 0);
  const most = Math.max(...counts.flat(), 1);
  const cell = (amount) =>
    h("td", { class: "number shaded", style: { "--part": `${(45 * amount) / most}%` } }, amount ? count(amount) : "·");
  const heads = columns.map((name) => h("th", { scope: "col", class: "number" }, name));
  const caption = `${side}: ${count(total)} records by ${names.join(" and ")}`;
  return h(
    "div",
    { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: `tight crossed ${side}` },
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("td", {}), heads)),
      h(
        "tbody",
        {},
        rows.map((name, index) => h("tr", {}, h("th", { scope: "row" }, name), counts[index].map(cell))),
      ),
    ),
  );
}

function quantiles(sides, name) {
  return h(
    "div",
    { class: "scrolls", tabindex: "0", role: "region", "aria-label": `Quantiles of ${name}` },
    h(
      "table",
      { class: "tight" },
      h("caption", {}, `Quantiles of ${name}`),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          LEVELS.map((level) => h("th", { scope: "col", class: "number" }, level)),
        ),
      ),
      h(
        "tbody",
        {},
        sides.map((values, side) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, SIDES[side]),
            LEVELS.map((_, index) => h("td", { class: "number" }, values ? digits(values[index]) : "–")),
          ),
        ),
      ),
    ),
  );
}

// The regression is a key of the policy, so that the report and the command have it too: it is fitted by the next run.
function regression(runs) {
  const path = ["report", "task"];
  const change = (event) => decide([[path, event.target.value.trim() || null]], true);
  const value = app.session.policy.complete.report?.task ?? "";
  return [
    h("h3", { class: "part" }, "Regression"),
    field(
      {
        id: "f-report-task",
        label: "Formula",
        hint: "For example charge ~ age + sex. The next run fits it to both sides.",
        problems: getProblems(...path),
      },
      h("input", { type: "text", autocomplete: "off", spellcheck: "false", value, on: { change } }),
    ),
    showSideBySide(runs, estimates),
  ];
}

function estimates(run) {
  const answer = query(`/api/runs/${run.id}/task`, true);
  const known = answer.value;
  if (!known) return answer.problems.length ? pending(answer) : null;
  const heads = ["estimate", "before", "after", "verdict"].map((name) =>
    h("th", { scope: "col", class: "number" }, name),
  );
  return h(
    "table",
    { class: "tight wraps" },
    h("caption", {}, `${known.task}: score ${digits(known.original, 3)} before, ${digits(known.released, 3)} after`),
    known.estimates ? h("thead", {}, h("tr", {}, heads)) : null,
    h(
      "tbody",
      {},
      (known.estimates ?? []).map((one) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, `${one.statistic} of ${one.column}${one.category ? ` = ${one.category}` : ""}`),
          h("td", { class: "number" }, digits(one.before)),
          h("td", { class: "number" }, digits(one.after)),
          h(
            "td",
            {},
            one.inside ? "inside its 95% interval" : h("span", { class: "alarm" }, "outside its 95% interval"),
          ),
        ),
      ),
    ),
  );
}
