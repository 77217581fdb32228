// Step 2: how each column is made coarser, and how it is recoded before.

import { hand, send } from "../api.js";
import { h } from "../dom.js";
import { count, plural } from "../numbers.js";
import { nameOf, settings, trying, ways, wayOf } from "../parts/builders.js";
import { problemList } from "../parts/fields.js";
import { merging } from "../parts/merging.js";
import { recoding } from "../parts/recoding.js";
import { head, nothingOpen, verdict } from "../parts/sections.js";
import { tree } from "../parts/tree.js";
import { addressOf, app, attempt, look } from "../store.js";

let latest = 0; // what is typed is tried at once; only the last answer counts

/** The step as it stands. */
export function generalizeStep() {
  const { session } = app;
  if (session.state !== "ready") return [head("generalize", "Generalize"), nothingOpen()];
  const shown = session.columns.filter((column) => column.role !== "identifier");
  const quasi = shown.filter((column) => column.role === "quasi-identifier");
  const column = shown.find((one) => one.name === app.chosen) ?? quasi[0] ?? shown[0];
  if (!column)
    return [
      head("generalize", "Generalize"),
      h("p", { class: "empty" }, "No column has a role that can be generalized."),
    ];
  return [
    head("generalize", session.source.name, sentence(quasi)),
    h(
      "section",
      { class: "workbench", "aria-label": "Columns and how they are made coarser" },
      list(shown, column),
      editor(column),
    ),
  ];
}

function sentence(quasi) {
  const have = quasi.filter((column) => column.declared?.hierarchy).length;
  const all = have === quasi.length;
  if (!quasi.length) return verdict("No column is a quasi-identifier.", ["Mark some in the step before."], true);
  return verdict(
    all
      ? "Every quasi-identifier has a hierarchy."
      : `${count(have)} of ${count(quasi.length)} quasi-identifiers have a hierarchy.`,
    [
      "A hierarchy says how a value becomes coarser, step by step: 02138, 0213*, 021**. " +
        "Methods that generalize climb it; the others use it where a class shows what its records share.",
    ],
  );
}

function list(columns, chosen) {
  const items = columns.map((column) =>
    h(
      "li",
      { key: column.name },
      h(
        "a",
        {
          href: addressOf("generalize", column.name),
          class: `role-${column.role}`,
          "aria-current": column === chosen ? "true" : null,
        },
        h("span", { class: "dot", "aria-hidden": "true" }),
        h("span", { class: "grow", dir: "auto", title: column.name }, column.name),
        h("span", { class: "soft small" }, column.declared?.hierarchy ? nameOf(column.declared.hierarchy) : ""),
        h("span", { class: "aside" }, ` ${column.role ?? "no role"}`),
      ),
    ),
  );
  return h("nav", { class: "column-list", "aria-label": "Columns" }, h("ul", { class: "plain" }, items));
}

function addressFor(column) {
  return `/api/hierarchy?column=${encodeURIComponent(column.name)}`;
}

function editor(column) {
  const known = look(addressFor(column));
  const hierarchy = known.value;
  return h(
    "div",
    { class: "editor", key: column.name },
    h("h2", { dir: "auto" }, column.name),
    h(
      "p",
      { class: "soft" },
      [
        column.type ?? column.kind,
        plural(column.distinct, "value"),
        `${count(column.missing)} missing`,
        column.role ?? "no role",
      ].join(", "),
    ),
    problemList(known.problems, "This hierarchy does not fit"),
    hierarchy
      ? built(column, hierarchy)
      : h("p", { class: "soft" }, known.problems.length ? "" : "Looking at its values …"),
    h("h3", { class: "part" }, "Recoding, before anything else"),
    recoding(column),
  );
}

function built(column, hierarchy) {
  const address = addressFor(column);
  const change = async (body) => {
    trying(column.name, []);
    return attempt(() => send("PUT", address, body));
  };
  const attemptSpec = (spec) => {
    const turn = (latest += 1);
    send("PUT", address, { spec, try: true }).then(
      (answer) => turn === latest && trying(column.name, answer.problems ?? []),
      (error) => turn === latest && trying(column.name, error.problems ?? []),
    );
  };
  const byHand =
    ["levels", "tree", "none"].includes(wayOf(hierarchy.spec)) &&
    column.type !== "continuous" &&
    column.type !== "date";
  return [
    h("h3", { class: "part" }, "How it becomes coarser"),
    ways(hierarchy, change),
    settings(hierarchy, change, attemptSpec),
    problemList(hierarchy.problems ?? [], "Look at this"),
    byHand || wayOf(hierarchy.spec) === "mask"
      ? h(
          "details",
          { class: "by-hand", open: byHand },
          h("summary", {}, "Put categories together by hand"),
          merging(column.name, hierarchy, change),
        )
      : null,
    seenAsTree(column, hierarchy),
    exchange(column),
  ];
}

function seenAsTree(column, hierarchy) {
  const levels = hierarchy.levels.map((one) => `${count(one.labels)}`).join(" → ");
  return [
    h("h3", { class: "part" }, "Seen as a tree"),
    h(
      "p",
      { class: "soft small" },
      `${plural(hierarchy.height, "level")} above the values; labels from below: ${levels}. Numbers are records.`,
    ),
    h(
      "div",
      { class: "tree-box", tabindex: "0", role: "region", "aria-label": `Tree of ${column.name}` },
      tree(column.name, hierarchy.tree),
    ),
  ];
}

function exchange(column) {
  const address = `/api/hierarchy/arx?column=${encodeURIComponent(column.name)}`;
  const change = async (event) => {
    const [file] = event.target.files;
    if (file) await attempt(() => hand(address, file));
    event.target.value = "";
  };
  return h(
    "div",
    { class: "buttons exchange" },
    h(
      "label",
      { class: "button slim file" },
      "Import ARX's CSV",
      h("input", {
        type: "file",
        accept: ".csv",
        class: "aside",
        "aria-label": `Import a hierarchy of ${column.name} in ARX's CSV form`,
        on: { change },
      }),
    ),
    h("a", { class: "button slim", href: address, download: "" }, "Export ARX's CSV"),
  );
}
