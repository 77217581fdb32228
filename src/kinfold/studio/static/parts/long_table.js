// A table of any length: rows are loaded in pages while scrolling, and only the visible ones are drawn.

import { get } from "../api.js";
import { h, render } from "../dom.js";
import { count } from "../numbers.js";
import { getBoxHeight, listPages, getScrollTop, getVisibleRows } from "../scroll_window.js";

const PAGE = 200; // rows per request
const MAX_PAGES = 60; // the oldest pages are dropped
const ROW = 31; // pixels

/** Return the rows of the open table. `version` changes when it is read with other options. */
export function longTable(columns, rows, version) {
  const table = { columns, rows, version };
  const hook = {
    mount: (node) => begin(node, table),
    update: (node) => follow(node, table),
    unmount: (node) => node.observer?.disconnect(),
  };
  return h("div", {
    class: "long",
    tabindex: "0",
    role: "region",
    "aria-label": `Rows of the table, ${count(rows)} in all; scroll with the arrow keys`,
    on: { scroll: (event) => paint(event.currentTarget), keydown: steer },
    hook,
  });
}

function begin(node, table) {
  node.pages = new Map();
  node.table = table;
  node.observer = new ResizeObserver(() => paint(node));
  node.observer.observe(node);
  paint(node);
}

function follow(node, table) {
  if (node.table?.version !== table.version) node.pages = new Map();
  node.table = table;
  paint(node);
}

function steer(event) {
  const node = event.currentTarget;
  const { rows } = node.table;
  const view = node.clientHeight;
  const jump = { Home: 0, End: rows - 1 }[event.key];
  if (jump === undefined || !(event.ctrlKey || event.metaKey)) return;
  node.scrollTop = getScrollTop(jump, rows, ROW, view);
  event.preventDefault();
}

function paint(node) {
  if (!node.table) return;
  const { columns, rows } = node.table;
  const { first, amount, offset } = getVisibleRows(rows, ROW, Math.max(node.clientHeight - ROW, ROW), node.scrollTop);
  for (const page of listPages(first, amount, PAGE)) fetchPage(node, page);
  node.style.setProperty("--columns", columns.length);
  node.style.setProperty("--height", `${(rows + 1) * ROW + 20}px`);
  const drawn = [];
  for (let row = first; row < first + amount; row += 1)
    drawn.push(rowOf(node, columns, row, offset + (row - first) * ROW));
  const style = { height: `${getBoxHeight(rows, ROW)}px` };
  const space = h("div", { class: "space", role: "rowgroup", style }, drawn);
  render(
    node,
    h(
      "div",
      { role: "table", "aria-label": "Rows", "aria-rowcount": rows + 1, "aria-colcount": columns.length + 1 },
      headOf(columns),
      space,
    ),
  );
}

function headOf(columns) {
  const cells = columns.map((column) =>
    h(
      "div",
      {
        class: `cell role-${column.role} ${isNumber(column) ? "figures" : ""}`,
        role: "columnheader",
        key: column.name,
        title: `${column.name}: ${column.role ?? "no role"}`,
      },
      column.name,
    ),
  );
  return h(
    "div",
    { role: "rowgroup" },
    h(
      "div",
      { class: "head", role: "row", "aria-rowindex": "1" },
      h("div", { class: "cell nth", role: "columnheader" }, "row"),
      cells,
    ),
  );
}

function rowOf(node, columns, row, top) {
  const page = node.pages.get(Math.floor(row / PAGE));
  const cells = page?.cells?.[row % PAGE] ?? null;
  const drawn = columns.map((column, index) => {
    const text = cells?.[index];
    const nothing = cells && (text === null || text === undefined);
    return h(
      "div",
      { class: `cell ${nothing ? "nothing" : isNumber(column) ? "figures" : ""}`, role: "cell" },
      cells ? (nothing ? "missing" : text) : "…",
    );
  });
  return h(
    "div",
    {
      class: `row ${cells ? "" : "waiting"}`,
      role: "row",
      "aria-rowindex": row + 2,
      key: row,
      style: { transform: `translateY(${top}px)` },
    },
    h("div", { class: "cell nth", role: "rowheader" }, count(row + 1)),
    drawn,
  );
}

function isNumber(column) {
  return column.type === "continuous";
}

async function fetchPage(node, page) {
  if (node.pages.has(page)) return;
  const { pages } = node;
  pages.set(page, { cells: null });
  if (pages.size > MAX_PAGES) pages.delete(pages.keys().next().value);
  try {
    pages.set(page, await get(`/api/rows?from=${page * PAGE}&count=${PAGE}`));
  } catch {
    pages.delete(page); // loaded again when it becomes visible
    return;
  }
  if (node.pages === pages) paint(node);
}
