// A table of any length: rows are loaded in pages while scrolling, and only the visible ones are drawn.

import { get } from "../api.js";
import { h, render } from "../dom.js";
import { count } from "../numbers.js";
import { getBoxHeight, listPages, getScrollTop, getVisibleRows } from "../scroll_window.js";

const PAGE = 200; // rows per request
const MAX_PAGES = 60; // the oldest pages are dropped
const ROW = 31; // pixels
const LEAST_CHARS = 5; // width of a column, in characters
const MOST_CHARS = 24;

/** Return a long table.
 *  label, heads: [{name, role, figures, chars, content, sort}], rows: their number
 *  version: changes when the rows are others; address(from, count): where rows come from
 *  read(answer): rows of an answer; cells(row): [{text, class, content}], nth(row, index): the first cell */
export function longTable(table) {
  const hook = {
    mount: (node) => begin(node, table),
    update: (node) => follow(node, table),
    unmount: (node) => node.observer?.disconnect(),
  };
  return h("div", {
    class: "long",
    tabindex: "0",
    role: "region",
    "aria-label": `${table.label}, ${count(table.rows)} in all; scroll with the arrow keys`,
    on: { scroll: (event) => paint(event.currentTarget), keydown: steer },
    hook,
  });
}

/** Return the rows of the open table. `version` changes when it is read with other options. */
export function tableRows(columns, rows, version) {
  const figures = columns.map((column) => column.type === "continuous");
  return longTable({
    label: "Rows of the table",
    heads: columns.map(({ name, role }, index) => ({ name, role, figures: figures[index] })),
    rows,
    version,
    address: (from, amount) => `/api/rows?from=${from}&count=${amount}`,
    read: (answer) => answer.cells,
    cells: (row) => row.map((text, index) => ({ text, class: figures[index] ? "figures" : "" })),
    nth: (_row, index) => count(index + 1),
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
  if (node.table?.version !== table.version) {
    node.pages = new Map();
    node.scrollTop = 0;
  }
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
  const { heads, rows, label } = node.table;
  const { first, amount, offset } = getVisibleRows(rows, ROW, Math.max(node.clientHeight - ROW, ROW), node.scrollTop);
  if (rows) for (const page of listPages(first, amount, PAGE)) fetchPage(node, page);
  measure(node);
  node.style.setProperty("--height", `${(rows + 1) * ROW + 20}px`);
  const drawn = [];
  for (let row = first; row < first + amount && row < rows; row += 1)
    drawn.push(rowOf(node, row, offset + (row - first) * ROW));
  const style = { height: `${getBoxHeight(rows, ROW)}px` };
  const space = h("div", { class: "space", role: "rowgroup", style }, drawn);
  render(
    node,
    h(
      "div",
      { role: "table", "aria-label": label, "aria-rowcount": rows + 1, "aria-colcount": heads.length + 1 },
      headOf(node.table),
      space,
    ),
  );
}

// The first rows that arrive say how wide each column has to be; then it stays.
function measure(node) {
  const { heads, cells } = node.table;
  const page = [...node.pages.values()].find((one) => one.rows?.length);
  if (node.measured === page && page) return;
  node.measured = page;
  const rows = (page?.rows ?? []).map(cells);
  const chars = heads.map((head, index) => {
    const texts = rows.map((row) => row[index]?.title ?? row[index]?.text ?? "");
    const most = texts.reduce((length, text) => Math.max(length, text.length), head.name.length + 2);
    return 3 + Math.min(Math.max(most, LEAST_CHARS, head.chars ?? 0), MOST_CHARS);
  });
  const all = chars.reduce((sum, one) => sum + one, 0);
  node.style.setProperty("--grid", `5rem ${chars.map((one) => `minmax(0, ${one}fr)`).join(" ")}`);
  node.style.setProperty("--least", `calc(5rem + ${all}ch)`);
}

function headOf({ heads, first = "row" }) {
  const cells = heads.map((head) =>
    h(
      "div",
      {
        class: `cell role-${head.role} ${head.figures ? "figures" : ""}`,
        role: "columnheader",
        key: head.name,
        title: head.role === undefined ? head.name : `${head.name}: ${head.role ?? "no role"}`,
        "aria-sort": head.sort ?? null,
      },
      head.content ?? head.name,
    ),
  );
  return h(
    "div",
    { role: "rowgroup" },
    h(
      "div",
      { class: "head", role: "row", "aria-rowindex": "1" },
      h("div", { class: "cell nth", role: "columnheader" }, first),
      cells,
    ),
  );
}

function rowOf(node, index, top) {
  const { heads, cells, nth } = node.table;
  const row = node.pages.get(Math.floor(index / PAGE))?.rows?.[index % PAGE];
  const contents = row ? cells(row) : heads.map(() => ({ text: "…" }));
  const drawn = contents.map((cell) => {
    const missing = cell.content === undefined && (cell.text === null || cell.text === undefined);
    const shown = missing ? "missing" : (cell.content ?? cell.text);
    const props = {
      class: `cell ${missing ? "nothing" : (cell.class ?? "")}`,
      role: "cell",
      title: cell.title ?? null,
    };
    return h("div", props, shown);
  });
  return h(
    "div",
    {
      class: `row ${row ? "" : "waiting"}`,
      role: "row",
      "aria-rowindex": index + 2,
      key: index,
      style: { transform: `translateY(${top}px)` },
    },
    h("div", { class: "cell nth", role: "rowheader" }, row ? nth(row, index) : count(index + 1)),
    drawn,
  );
}

async function fetchPage(node, page) {
  if (node.pages.has(page)) return;
  const { pages, table } = node;
  pages.set(page, { rows: null });
  if (pages.size > MAX_PAGES) pages.delete(pages.keys().next().value);
  try {
    pages.set(page, { rows: table.read(await get(table.address(page * PAGE, PAGE))) });
  } catch {
    pages.delete(page); // loaded again when it becomes visible
    return;
  }
  if (node.pages === pages) paint(node);
}
