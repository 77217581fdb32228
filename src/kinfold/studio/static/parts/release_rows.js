// The release, record by record: original and released cells side by side, filtered and sorted; and its classes.

import { h } from "../dom.js";
import { count, share } from "../numbers.js";
import { app, query, updateUi } from "../store.js";
import { shortenName } from "../texts.js";
import { select } from "./fields.js";
import { longTable } from "./long_table.js";
import { button, pending } from "./sections.js";

const FILTERS = {
  all: "all records",
  changed: "records with changed cells",
  risk: "records at the highest risk",
  cells: "records with suppressed cells",
  suppressed: "suppressed records",
};
const START = { show: "all", column: "", group: null, sort: "record", down: false };

/** Return the rows of a run before and after. */
export function releaseRows(run) {
  const state = { ...START, ...app.ui.rows };
  const base = `/api/runs/${run.id}/rows?${makeQuery(state)}`;
  const answer = query(`${base}&count=0`, true);
  const known = answer.value;
  if (!known) return pending(answer);
  const put = (changes) => updateUi({ rows: { ...state, ...changes } });
  const roles = new Map(app.session.columns.map((column) => [column.name, column.role]));
  const order = orderColumns(known.columns, roles);
  const head = (name, key, more = {}) => ({ name, ...sorting(key, name, state, put), ...more });
  const heads = [
    head("class", "class", { figures: true, chars: 11 }),
    head("risk", "risk", { figures: true, chars: 6 }),
    ...order
      .map((index) => known.columns[index])
      .map(({ name, released }) => head(name, name, { role: released ? roles.get(name) : "remove" })),
  ];
  return [
    toolbar(known, state, put),
    longTable({
      label: "Records before and after",
      heads,
      rows: known.total,
      version: base,
      address: (from, amount) => `${base}&from=${from}&count=${amount}`,
      read: (page) => page.rows,
      cells: (row) => [...classCells(row, put), ...order.map((index) => cell(row, row.before[index], index))],
      nth: (row) => count(row.record + 1),
    }),
  ];
}

/** Return the places of the columns: quasi-identifiers first, columns that are not released last. */
export function orderColumns(columns, roles) {
  const rank = ({ name, released }) => (released ? (roles.get(name) === "quasi-identifier" ? 0 : 1) : 2);
  return [...columns.keys()].sort((one, other) => rank(columns[one]) - rank(columns[other]));
}

/** Return the query of an address for a filter and an order. */
export function makeQuery({ show, column, group, sort, down }) {
  const parts = { show, sort, ...(down ? { down: "1" } : {}), ...(column ? { column } : {}) };
  if (group !== null) parts.class = String(group);
  return Object.entries(parts)
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    .join("&");
}

function toolbar(known, state, put) {
  const choices = Object.entries(FILTERS).map(([id, name]) => [id, `${name} (${count(known.counts[id])})`]);
  const counted = { changed: "changed", cells: "cells" }[state.show];
  const columns = counted ? known.columns.filter((column) => column[counted]) : [];
  const wide = { class: "slim" };
  return h(
    "div",
    { class: "line toolbar" },
    select(choices, state.show, (event) => put({ show: event.target.value, column: "" }), null, {
      ...wide,
      "aria-label": "Show",
    }),
    columns.length
      ? select(
          columns.map((column) => [column.name, `in ${shortenName(column.name)} (${count(column[counted])})`]),
          state.column,
          (event) => put({ column: event.target.value }),
          "in any column",
          { ...wide, "aria-label": "Column" },
        )
      : null,
    state.group === null
      ? null
      : button(`Class ${count(state.group + 1)} ×`, () => put({ group: null }), {
          slim: true,
          "aria-label": `Show all classes, not only class ${count(state.group + 1)}`,
        }),
    h(
      "span",
      { class: "soft small", role: "status" },
      `${count(known.total)} shown. Original → released; keep this private.`,
    ),
  );
}

// The head of a column sorts by it: up, then down.
function sorting(key, name, state, put) {
  const current = state.sort === key;
  const click = () => put({ sort: key, down: current ? !state.down : ["risk"].includes(key) });
  const arrow = current ? (state.down ? " ↓" : " ↑") : "";
  return {
    sort: current ? (state.down ? "descending" : "ascending") : null,
    content: h("button", { type: "button", class: "sorter", on: { click } }, name, arrow),
  };
}

function classCells(row, put) {
  if (row.class === null) return [{ content: "suppressed", class: "gone" }, { text: "–" }];
  const show = () => put({ group: row.class, show: "all", column: "" });
  const label = `Show the ${count(row.size)} records of class ${count(row.class + 1)}`;
  const link = h(
    "button",
    { type: "button", class: "link", "aria-label": label, on: { click: show } },
    count(row.class + 1),
  );
  return [
    { content: [link, h("span", { class: "soft" }, ` of ${count(row.size)}`)], class: "figures" },
    { text: share(row.risk), class: "figures" },
  ];
}

function cell(row, before, index) {
  const changed = row.changed[index];
  const was = before ?? "missing";
  if (row.class === null) return { content: h("s", { class: "was" }, was) };
  if (changed === null) return { content: h("s", { class: "was" }, was), class: "gone" };
  if (!changed) return { text: before };
  return {
    class: "changed",
    title: `${was} → ${row.after[index] ?? "missing"}`,
    content: [h("span", { class: "was" }, was), " → ", h("b", {}, row.after[index] ?? "missing")],
  };
}

/** Return the classes of a run; a class leads to its rows. */
export function releaseClasses(run) {
  const { sort, down } = { sort: "size", down: false, ...app.ui.groups };
  const base = `/api/runs/${run.id}/groups?sort=${sort}${down ? "&down=1" : ""}`;
  const answer = query(`${base}&count=0`, true);
  const known = answer.value;
  if (!known) return pending(answer);
  const put = (changes) => updateUi({ groups: { sort, down, ...changes } });
  const show = (group) => updateUi({ rows: { ...START, group }, "tab explore": "rows" });
  return longTable({
    label: "Classes",
    first: "class",
    heads: [
      { name: "records", figures: true, ...sorting("size", "records", { sort, down }, put) },
      { name: "risk", figures: true, ...sorting("risk", "risk", { sort, down }, put) },
      ...known.columns.map((name) => ({ name, role: "quasi-identifier" })),
    ],
    rows: known.total,
    version: base,
    address: (from, amount) => `${base}&from=${from}&count=${amount}`,
    read: (page) => page.rows,
    cells: (row) => [
      { text: count(row.size), class: "figures" },
      { text: share(row.risk), class: "figures" },
      ...row.values.map((text) => ({ text })),
    ],
    nth: (row) => {
      const label = `Show the ${count(row.size)} records of class ${count(row.class + 1)}`;
      const click = () => show(row.class);
      return h("button", { type: "button", class: "link", "aria-label": label, on: { click } }, count(row.class + 1));
    },
  });
}
