// mu-Argus with the data holder's choice: what still stands out, and which column is made coarser next.

import { beginJob, jobOf } from "../actions.js";
import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { decide } from "../store.js";
import { shortName } from "../words.js";
import { problemList } from "./fields.js";
import { button } from "./sections.js";

/** The part of the page. */
export function outliersPart() {
  const job = jobOf("outliers");
  const look = () => beginJob("outliers", { kind: "outliers" });
  return [
    h(
      "div",
      { class: "buttons" },
      button(job ? "Look again" : "Look for outliers", look, { disabled: job?.state === "running" }),
      job?.state === "running" ? h("span", { class: "soft", role: "status" }, "Looking …") : null,
    ),
    problemList(job?.problems ?? [], "They cannot be looked for"),
    job?.result ? steps(job.result, look) : null,
  ];
}

function steps(found, look) {
  const choose = async (choices) => {
    if (
      await decide([
        [["method", "name"], "mu-argus"],
        [["method", "choices"], choices.length ? choices : null],
      ])
    )
      await look();
  };
  return [
    h(
      "p",
      {},
      found.outliers
        ? `${plural(found.outliers, "record")} still stand${found.outliers === 1 ? "s" : ""} out.`
        : "Nobody stands out any more.",
    ),
    found.choices.length
      ? h(
          "p",
          { class: "line" },
          `Made coarser so far: ${found.choices.join(", then ")}.`,
          button("Take the last back", () => choose(found.choices.slice(0, -1)), { slim: true }),
        )
      : null,
    combinations(found.combinations),
    found.next.length
      ? h(
          "ul",
          { class: "plain next" },
          found.next.map((one) =>
            h(
              "li",
              { key: one.column },
              button(`Make ${one.column} coarser`, () => choose([...found.choices, one.column])),
              h("span", { class: "soft" }, `to level ${one.level}: ${plural(one.outliers, "record")} would stand out`),
            ),
          ),
        )
      : null,
  ];
}

function combinations(found) {
  if (!found.length) return null;
  const rows = found
    .slice(0, 12)
    .map((one) =>
      h(
        "tr",
        {},
        h("td", {}, one.columns.map(shortName).join(" + ")),
        h("td", { class: "number" }, plural(one.records, "record")),
      ),
    );
  const more =
    found.length > 12
      ? h("p", { class: "soft small" }, `and ${plural(found.length - 12, "further combination")}`)
      : null;
  return [
    h(
      "table",
      { class: "tight wraps" },
      h(
        "thead",
        {},
        h("tr", {}, h("th", { scope: "col" }, "combination"), h("th", { scope: "col", class: "number" }, "stand out")),
      ),
      h("tbody", {}, rows),
    ),
    more,
  ];
}
