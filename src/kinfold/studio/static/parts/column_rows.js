// The columns of the table, one per row: its values, its distribution, its unique records, its role and its type.

import { spark } from "../charts.js";
import { h } from "../dom.js";
import { count, share } from "../numbers.js";
import { getAddress, decide } from "../store.js";
import { ROLES, TYPES } from "../texts.js";
import { select } from "./fields.js";

/** Return the rows of all columns. */
export function columnRows(columns) {
  return h("ul", { class: "plain columns" }, columns.map(columnRow));
}

/** Return the role of a key, or null. */
export function getRoleByKey(key) {
  return ROLES.find((role) => role.letter === key.toLowerCase())?.id ?? null;
}

function columnRow(column, index) {
  return h(
    "li",
    { key: column.name, class: `column role-${column.role}`, on: { keydown: (event) => handleKey(event, column) } },
    h(
      "div",
      { class: "what" },
      h("h3", { dir: "auto", id: `column-${index}` }, column.name),
      h("p", { class: "soft small" }, column.proposed.reason),
      more(column),
    ),
    h("div", { class: "shape" }, spark(column.histogram?.counts ?? [], describeShape(column)), ends(column)),
    h(
      "dl",
      { class: "facts" },
      fact("values", count(column.distinct)),
      fact("missing", count(column.missing)),
      fact("unique", share(column.unique)),
    ),
    h("div", { class: "choice" }, roles(column, index), types(column)),
  );
}

function more(column) {
  if (column.role !== "quasi-identifier") return null;
  const text = column.declared?.hierarchy ? "change how it is generalized" : "choose how it is generalized";
  return h(
    "a",
    { class: "small", href: getAddress("generalize", column.name), "aria-label": `${column.name}: ${text}` },
    text,
  );
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function handleKey(event, column) {
  const role = getRoleByKey(event.key);
  if (!role || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select")) return;
  event.preventDefault();
  if (role !== column.role) decide([[["columns", column.name, "role"], role]]);
}

function roles(column, index) {
  const choices = ROLES.map((role) =>
    h(
      "label",
      { class: `role-${role.id}`, title: `${role.name}: ${role.means}. Key: ${role.letter}` },
      h("input", {
        type: "radio",
        name: `role-${index}`,
        value: role.id,
        checked: column.role === role.id,
        "aria-label": role.name,
        on: { change: () => decide([[["columns", column.name, "role"], role.id]]) },
      }),
      h("span", { "aria-hidden": "true" }, role.letter.toUpperCase()),
    ),
  );
  return h(
    "div",
    { class: "roles", role: "radiogroup", "aria-labelledby": `column-${index}`, "aria-describedby": "roles-key" },
    choices,
  );
}

function types(column) {
  const change = (event) => decide([[["columns", column.name, "type"], event.target.value]]);
  return select(TYPES, column.type ?? column.kind, change, null, {
    "aria-label": `Type of ${column.name}`,
    class: "slim",
  });
}

function describeShape(column) {
  const { histogram } = column;
  if (!histogram) return `${column.name}: nothing to draw`;
  const most = count(Math.max(...histogram.counts, 0));
  if (histogram.form === "labels")
    return `${column.name}: ${count(column.distinct)} values, the most frequent one in ${most} records`;
  const { edges, counts } = histogram;
  return `${column.name}: records from ${edges[0]} to ${edges.at(-1)}, ${most} in the largest of ${counts.length} bins`;
}

function ends(column) {
  const { histogram } = column;
  if (!histogram?.counts?.length) return null;
  const pair =
    histogram.form === "bins"
      ? [histogram.edges[0], histogram.edges.at(-1)]
      : [
          histogram.labels[0],
          histogram.rest_labels ? `and ${count(histogram.rest_labels)} more` : histogram.labels.at(-1),
        ];
  return h(
    "p",
    { class: "ends", "aria-hidden": "true" },
    pair.map((end) => h("span", {}, typeof end === "number" ? shortNumber(end) : end)),
  );
}

function shortNumber(x) {
  return new Intl.NumberFormat("en", {
    maximumSignificantDigits: 4,
    notation: Math.abs(x) >= 100000 ? "compact" : "standard",
    useGrouping: Math.abs(x) >= 10000,
  }).format(x);
}

/** Explain the letters of the roles. */
export function rolesKey() {
  const items = ROLES.map((role) =>
    h(
      "li",
      { class: `role-${role.id}` },
      h("span", { class: "badge" }, role.letter.toUpperCase()),
      h("span", {}, h("strong", {}, role.name), `: ${role.means}`),
    ),
  );
  return [
    h("ul", { class: "plain roles-key" }, items),
    h("p", { id: "roles-key" }, "One click, or one key while a column is in focus: i, q, c, o, w or r."),
  ];
}
