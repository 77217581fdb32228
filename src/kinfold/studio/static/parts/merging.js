// Group categories by hand: drag one onto another, or tick several and name the group.

import { h } from "../dom.js";
import { getDropAction, listGroups, listLevels } from "../hierarchy_tree.js";
import { count, plural } from "../numbers.js";
import { app, updateUi } from "../store.js";
import { select } from "./fields.js";
import { button } from "./sections.js";

// Keys can be faster than the page is drawn, so actions use the current state, not the page.

/** Return the groups of a column at a level. `change` sends a change of the hierarchy. */
export function merging(column, hierarchy, change) {
  const now = () => app.ui[`merge ${column}`] ?? { level: 1, ticked: [], name: "" };
  const state = now();
  const put = (changes) => updateUi({ [`merge ${column}`]: { ...now(), ...changes } });
  const levels = listLevels(hierarchy.height);
  const level = Math.min(state.level, levels.length);
  const { groups, alone, unseen } = listGroups(hierarchy.tree, level);
  const merge = async (labels, name) => {
    if (name && (await change({ merge: labels, name, level }))) put({ ticked: [], name: "" });
  };
  const board = { state, now, put, merge, change, level };
  return h(
    "div",
    { class: "merging" },
    h(
      "div",
      { class: "line" },
      h("label", { for: "merge-level" }, "Group at level"),
      select(
        levels.map((one) => [String(one), one === levels.length ? `${one}, a new level` : String(one)]),
        String(level),
        (event) => put({ level: Number(event.target.value), ticked: [] }),
        null,
        { id: "merge-level" },
      ),
    ),
    namer(board),
    h(
      "div",
      { class: "boxes" },
      groups.map((group) => box(board, group)),
    ),
    alone.length
      ? h(
          "ul",
          { class: "plain chips", "aria-label": "Not grouped at this level" },
          alone.map((node) => chip(board, node)),
        )
      : null,
    unseen
      ? h(
          "p",
          { class: "soft small" },
          `${plural(unseen, "rarer category", "rarer categories")} not shown: import a file instead.`,
        )
      : null,
  );
}

function namer({ state, now, put, merge }) {
  const submit = (event) => {
    event.preventDefault();
    const { ticked, name } = now();
    if (ticked.length) merge(ticked, name.trim());
  };
  return h(
    "form",
    { class: "line namer", on: { submit } },
    h(
      "label",
      { for: "merge-name" },
      state.ticked.length
        ? `Name of the ${plural(state.ticked.length, "category", "categories")} ticked`
        : "Tick categories, or drag one onto another; then name the group",
    ),
    h("input", {
      type: "text",
      id: "merge-name",
      autocomplete: "off",
      value: state.name,
      on: { input: (event) => put({ name: event.target.value }) },
    }),
    h("button", { type: "submit", class: "button" }, "Group"),
  );
}

function chip(board, node, group = null) {
  const { state, now, put } = board;
  const ticked = state.ticked.includes(node.label);
  const toggle = (event) => {
    const others = now().ticked.filter((label) => label !== node.label);
    put({ ticked: event.target.checked ? [...others, node.label] : others });
  };
  const labels = () => (now().ticked.includes(node.label) ? now().ticked : [node.label]);
  const drag = (event) => event.dataTransfer.setData("text/plain", JSON.stringify(labels()));
  const drop = (event) => {
    event.preventDefault();
    event.stopPropagation();
    const together = getDropAction(dragged(event), node.label);
    if (!together) return;
    if (group)
      board.merge(
        together.filter((label) => label !== node.label),
        group.label,
      );
    else askName(board, together);
  };
  return h(
    "li",
    {
      key: `${node.level} ${node.label}`,
      class: `chip ${ticked ? "ticked" : ""}`,
      draggable: "true",
      on: { dragstart: drag, dragover: (event) => event.preventDefault(), drop },
    },
    h(
      "label",
      {},
      h("input", { type: "checkbox", checked: ticked, on: { change: toggle } }),
      h("span", { dir: "auto" }, node.label),
      h("span", { class: "count" }, count(node.count)),
    ),
  );
}

// Dropped categories are ticked, and wait for a name.
function askName({ put }, labels) {
  put({ ticked: labels, name: labels.join(" or ").slice(0, 60) });
  requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("merge-name")?.select()));
}

function dragged(event) {
  try {
    return JSON.parse(event.dataTransfer.getData("text/plain"));
  } catch {
    return []; // not one of our categories
  }
}

function box(board, group) {
  const { merge, change, level } = board;
  const drop = (event) => {
    event.preventDefault();
    const labels = dragged(event);
    if (labels.length) merge(labels, group.label);
  };
  const rename = (event) =>
    event.target.value.trim() &&
    event.target.value !== group.label &&
    change({ rename: group.label, name: event.target.value.trim(), level });
  return h(
    "div",
    {
      class: "box",
      key: group.label,
      role: "group",
      "aria-label": group.label,
      on: { dragover: (event) => event.preventDefault(), drop },
    },
    h(
      "div",
      { class: "line" },
      h("input", {
        type: "text",
        "aria-label": `Name of the group ${group.label}`,
        autocomplete: "off",
        value: group.label,
        on: { change: rename },
      }),
      h("span", { class: "count" }, count(group.count)),
      button("Ungroup", () => change({ part: group.label, level }), {
        slim: true,
        "aria-label": `Ungroup ${group.label}`,
      }),
    ),
    h(
      "ul",
      { class: "plain chips" },
      group.labels.map((node) => chip(board, node, group)),
      group.more ? h("li", { class: "soft small" }, `and ${plural(group.more, "rarer label")}`) : null,
    ),
  );
}
