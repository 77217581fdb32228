// mu-Argus with the data holder's choices: the outliers, and the column to generalize next.

import { startJob, getJob } from "../actions.js";
import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { decide } from "../store.js";
import { shortenName } from "../texts.js";
import { problemList } from "./fields.js";
import { button } from "./sections.js";

/** Return the section of the page. */
export function outliersPart() {
  const job = getJob("outliers");
  const search = () => startJob("outliers", { kind: "outliers" });
  return [
    h(
      "div",
      { class: "buttons" },
      button(job ? "Search again" : "Find outliers", search, { disabled: job?.state === "running" }),
      job?.state === "running" ? h("span", { class: "soft", role: "status" }, "Searching …") : null,
    ),
    problemList(job?.problems ?? [], "Outliers cannot be counted"),
    job?.result ? steps(job.result, search) : null,
  ];
}

function steps(result, search) {
  const choose = async (choices) => {
    if (
      await decide([
        [["method", "name"], "mu-argus"],
        [["method", "choices"], choices.length ? choices : null],
      ])
    )
      await search();
  };
  return [
    h(
      "p",
      {},
      result.outliers
        ? `${plural(result.outliers, "record")} with a combination that is too rare.`
        : "No record has a combination that is too rare.",
    ),
    result.choices.length
      ? h(
          "p",
          { class: "line" },
          `Generalized so far: ${result.choices.join(", then ")}.`,
          button("Undo the last one", () => choose(result.choices.slice(0, -1)), { slim: true }),
        )
      : null,
    h("div", { class: "halves even" }, combinations(result.combinations), choicesOf(result, choose)),
  ];
}

// The columns that can be generalized next, with what is left then.
function choicesOf(result, choose) {
  if (!result.next.length) return null;
  const items = result.next.map((one) =>
    h(
      "li",
      { key: one.column },
      button(`Generalize ${one.column}`, () => choose([...result.choices, one.column]), { slim: true }),
      h("span", { class: "soft" }, `to level ${one.level}: ${plural(one.outliers, "outlier")}`),
    ),
  );
  return h("ul", { class: "plain next" }, items);
}

function combinations(items) {
  if (!items.length) return null;
  const rows = items
    .slice(0, 12)
    .map((one) =>
      h(
        "tr",
        {},
        h("td", {}, one.columns.map(shortenName).join(" + ")),
        h("td", { class: "number" }, plural(one.records, "record")),
      ),
    );
  const more =
    items.length > 12
      ? h("p", { class: "soft small" }, `and ${plural(items.length - 12, "further combination")}`)
      : null;
  return h(
    "div",
    {},
    h(
      "table",
      { class: "tight wraps" },
      h(
        "thead",
        {},
        h("tr", {}, h("th", { scope: "col" }, "combination"), h("th", { scope: "col", class: "number" }, "outliers")),
      ),
      h("tbody", {}, rows),
    ),
    more,
  );
}
