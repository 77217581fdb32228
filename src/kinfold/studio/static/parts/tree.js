// A hierarchy as a tree with counts.

import { h } from "../dom.js";
import { getInitiallyOpen, getPath } from "../hierarchy_tree.js";
import { count, plural } from "../numbers.js";
import { app, updateUi } from "../store.js";

/** Return the tree of a column; open nodes are saved by column. */
export function tree(column, root) {
  const open = app.ui[`tree ${column}`] ?? getInitiallyOpen(root);
  const toggle = (path) => {
    const next = new Set(open);
    if (!next.delete(path)) next.add(path);
    updateUi({ [`tree ${column}`]: next });
  };
  return h("ul", { class: "tree", "aria-label": `Hierarchy of ${column}` }, branch(root, "", open, toggle));
}

function branch(node, above, open, toggle) {
  const path = getPath(above, node);
  const inner = node.children?.length > 0;
  const isOpen = open.has(path);
  return h(
    "li",
    { key: path },
    h(
      "div",
      { class: `node ${inner ? "" : "leaf"}` },
      inner
        ? h(
            "button",
            {
              type: "button",
              class: "twist",
              "aria-expanded": String(isOpen),
              "aria-label": `${node.label}, ${isOpen ? "close" : "open"}`,
              on: { click: () => toggle(path) },
            },
            isOpen ? "▾" : "▸",
          )
        : null,
      h("span", { dir: "auto" }, node.label === "*" ? "* (anything)" : node.label),
      h("span", { class: "count" }, count(node.count)),
    ),
    inner && isOpen
      ? h(
          "ul",
          {},
          node.children.map((child) => branch(child, path, open, toggle)),
          node.more ? h("li", { class: "rest" }, `and ${plural(node.more, "rarer label")}`) : null,
        )
      : null,
  );
}
