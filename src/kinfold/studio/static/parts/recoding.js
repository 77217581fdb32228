// Recoding before the method: limits, rounding, renamed categories, missing values.

import { h } from "../dom.js";
import { app, decide } from "../store.js";
import { HINTS } from "../texts.js";
import { choiceField, numberField } from "./fields.js";
import { getChoices } from "./promises.js";
import { button } from "./sections.js";

/** Return the fields of a column. */
export function recoding(column) {
  const declared = column.declared ?? {};
  const path = (key) => ["columns", column.name, key];
  const type = column.type ?? column.kind;
  const measured = type === "continuous" || type === "date";
  const limit = type === "date" ? { type: "date", read: (text) => text || null } : {};
  return [
    h(
      "div",
      { class: "fields" },
      measured &&
        numberField({
          path: path("bottom"),
          label: "Bottom",
          hint: "Smaller values become this.",
          value: declared.bottom,
          ...limit,
        }),
      measured &&
        numberField({
          path: path("top"),
          label: "Top",
          hint: "Larger values become this.",
          value: declared.top,
          ...limit,
        }),
      type === "continuous" &&
        numberField({
          path: path("round_to"),
          label: "Round to",
          hint: "Multiples of this.",
          value: declared.round_to,
        }),
      measured &&
        choiceField({
          path: path("missing"),
          label: "Missing values",
          hint: HINTS.missing[declared.missing ?? "refuse"],
          value: declared.missing ?? "refuse",
          choices: getChoices("missing"),
        }),
      column.role === "quasi-identifier" &&
        choiceField({
          path: path("average"),
          label: "Released value",
          hint: HINTS.average[declared.average] ?? "For methods that form classes of similar records.",
          value: declared.average ?? "",
          choices: app.session.averages_by_type[type] ?? [],
          none: "default",
        }),
      column.role === "quasi-identifier" &&
        numberField({
          path: path("weight"),
          label: "Weight",
          hint: "In the distance between records; default: 1.",
          value: declared.weight,
          min: 0,
        }),
    ),
    measured ? null : renaming(column, declared.map ?? {}, path("map")),
    type === "ordinal" ? ordering(column, declared.order ?? [], path("order")) : null,
  ];
}

function renaming(column, map, path) {
  const put = (next) => decide([[path, Object.keys(next).length ? next : null]]);
  const known = (column.histogram?.labels ?? []).filter((label) => !(label in map));
  const rows = Object.entries(map).map(([from, to]) =>
    h(
      "li",
      { class: "line", key: from },
      h("span", { dir: "auto" }, from),
      h("span", { "aria-label": "becomes" }, "→"),
      h("input", {
        type: "text",
        value: to,
        autocomplete: "off",
        "aria-label": `What ${from} becomes`,
        on: { change: (event) => put({ ...map, [from]: event.target.value }) },
      }),
      button("Remove", () => put(Object.fromEntries(Object.entries(map).filter(([key]) => key !== from))), {
        slim: true,
        "aria-label": `Remove the new name of ${from}`,
      }),
    ),
  );
  return h(
    "fieldset",
    { class: "renaming" },
    h("legend", {}, "Rename categories"),
    rows.length ? h("ul", { class: "plain" }, rows) : null,
    adder(column, known, (from, to) => put({ ...map, [from]: to })),
  );
}

function adder(column, known, put) {
  const submit = (event) => {
    event.preventDefault();
    const { from, to } = event.target.elements;
    if (!from.value.trim() || !to.value.trim()) return;
    put(from.value, to.value);
    event.target.reset();
  };
  const id = "renamed-known";
  return h(
    "form",
    { class: "line", on: { submit } },
    h("input", {
      type: "text",
      name: "from",
      list: id,
      autocomplete: "off",
      placeholder: "category",
      "aria-label": `Category of ${column.name}`,
    }),
    h(
      "datalist",
      { id },
      known.map((label) => h("option", { value: label })),
    ),
    h("span", { "aria-hidden": "true" }, "→"),
    h("input", {
      type: "text",
      name: "to",
      autocomplete: "off",
      placeholder: "becomes",
      "aria-label": "What it becomes",
    }),
    h("button", { type: "submit", class: "button slim" }, "Rename"),
  );
}

/** Return a list with one item moved by some places. */
export function moveItem(items, index, by) {
  const next = [...items];
  const [item] = next.splice(index, 1);
  next.splice(Math.min(Math.max(index + by, 0), items.length - 1), 0, item);
  return next;
}

function ordering(column, order, path) {
  const items = order.length ? order : (column.histogram?.labels ?? []);
  if (!items.length || app.session.columns.length === 0) return null;
  const move = (index, by) => decide([[path, moveItem(items, index, by)]]);
  const rows = items.map((label, index) =>
    h(
      "li",
      { class: "line", key: label },
      h("span", { class: "rank" }, index + 1),
      h("span", { dir: "auto", class: "grow" }, label),
      h(
        "button",
        {
          type: "button",
          class: "icon",
          "aria-label": `${label}: one place lower`,
          disabled: index === 0,
          on: { click: () => move(index, -1) },
        },
        "↑",
      ),
      h(
        "button",
        {
          type: "button",
          class: "icon",
          "aria-label": `${label}: one place higher`,
          disabled: index === items.length - 1,
          on: { click: () => move(index, 1) },
        },
        "↓",
      ),
    ),
  );
  return h(
    "fieldset",
    { class: "ordering" },
    h("legend", {}, "Order, from the lowest to the highest"),
    h("ol", { class: "plain" }, rows),
  );
}
