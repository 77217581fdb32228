// A small table of a few rows.

import { h } from "../dom.js";
import { count } from "../numbers.js";

/** Return a table of some rows, each with its index and its cells. The columns of `order` are shown, the first one
 *  marked if `marked`. */
export function rowTable(label, order, names, rows, marked = true) {
  const cell = (row) => (index, at) =>
    h("td", { class: at || !marked ? "" : "changed" }, row.cells[index] ?? h("span", { class: "soft" }, "missing"));
  return h(
    "div",
    { class: "scrolls", tabindex: "0", role: "region", "aria-label": label },
    h(
      "table",
      { class: "tight" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "row"),
          order.map((index) => h("th", { scope: "col" }, names[index])),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h("tr", {}, h("th", { scope: "row", class: "number" }, count(row.index + 1)), order.map(cell(row))),
        ),
      ),
    ),
  );
}
