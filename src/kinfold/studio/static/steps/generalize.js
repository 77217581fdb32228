// Step 2: the hierarchy of each column, and its recoding.

import { sendFile, send } from "../api.js";
import { h } from "../dom.js";
import { arrangeTree } from "../hierarchy_tree.js";
import { count, plural, share } from "../numbers.js";
import { getBuilderName, settings, trialNotice, builderChoices, getBuilder } from "../parts/builders.js";
import { problemList } from "../parts/fields.js";
import { explained } from "../parts/help.js";
import { merging } from "../parts/merging.js";
import { recoding } from "../parts/recoding.js";
import { nextStep, nothingOpen, pending, stepHead, verdict } from "../parts/sections.js";
import { tree } from "../parts/tree.js";
import { getAddress, app, attempt, query } from "../store.js";

let latest = 0; // a typed value is tried at once; only the last answer counts

/** Return the step. */
export function generalizeStep() {
  const { session } = app;
  if (session.state !== "ready") return [stepHead("generalize", "Generalize"), nothingOpen()];
  const columns = session.columns.filter((column) => !["identifier", "weight", "remove"].includes(column.role));
  const quasi = columns.filter((column) => column.role === "quasi-identifier");
  const column = columns.find((one) => one.name === app.chosen) ?? quasi[0] ?? columns[0];
  if (!column)
    return [
      stepHead("generalize", "Generalize"),
      h("p", { class: "empty" }, "No column has a role that can be generalized."),
    ];
  return [
    stepHead("generalize", session.source.name, sentence(quasi), nextStep("protect", "Protect →")),
    h(
      "section",
      { class: "workbench", "aria-label": "Columns and their hierarchies" },
      list(columns, column),
      editor(column),
    ),
  ];
}

function sentence(quasi) {
  const have = quasi.filter((column) => column.declared?.hierarchy).length;
  const all = have === quasi.length;
  if (!quasi.length) return verdict("No column is a quasi-identifier.", ["Mark some in the previous step."], true);
  return verdict(
    all
      ? "Every quasi-identifier has a hierarchy."
      : `${count(have)} of ${count(quasi.length)} quasi-identifiers have a hierarchy.`,
    [
      "A hierarchy says how a value is generalized, level by level: 02138, 0213*, 021**. " +
        "Generalization methods use its levels; the other methods use it to describe a class.",
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
          href: getAddress("generalize", column.name),
          class: `role-${column.role}`,
          "aria-current": column === chosen ? "true" : null,
        },
        h("span", { class: "dot", "aria-hidden": "true" }),
        h("span", { class: "grow", dir: "auto", title: column.name }, column.name),
        h("span", { class: "soft small" }, column.declared?.hierarchy ? getBuilderName(column.declared.hierarchy) : ""),
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
  const known = query(addressFor(column));
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
    h(
      "div",
      { class: "editor-parts" },
      h(
        "div",
        {},
        hierarchy
          ? built(column, hierarchy)
          : h("p", { class: "soft" }, known.problems.length ? "" : "Reading its values …"),
        h("h3", { class: "part" }, "Recoding before the method"),
        recoding(column),
      ),
      hierarchy ? h("div", {}, seenAsTree(column, hierarchy), exchange(column)) : null,
    ),
  );
}

function built(column, hierarchy) {
  const address = addressFor(column);
  const change = async (body) => {
    trialNotice(column.name, []);
    return attempt(() => send("PUT", address, body));
  };
  const attemptSpec = (spec) => {
    const turn = (latest += 1);
    send("PUT", address, { spec, try: true }).then(
      (answer) => turn === latest && trialNotice(column.name, answer.problems ?? []),
      (error) => turn === latest && trialNotice(column.name, error.problems ?? []),
    );
  };
  const byHand =
    ["levels", "tree", "none"].includes(getBuilder(hierarchy.spec)) &&
    column.type !== "continuous" &&
    column.type !== "date";
  return [
    explained(h("h3", {}, "Hierarchy"), "Hierarchy"),
    builderChoices(hierarchy, change),
    settings(hierarchy, change, attemptSpec),
    problemList(hierarchy.problems ?? [], "Problems"),
    byHand || getBuilder(hierarchy.spec) === "mask"
      ? h(
          "details",
          { class: "by-hand", open: byHand },
          h("summary", {}, "Group categories by hand"),
          merging(column.name, hierarchy, change),
        )
      : null,
  ];
}

function seenAsTree(column, hierarchy) {
  return [
    explained(h("h3", {}, "Tree"), "Level"),
    h(
      "p",
      { class: "soft small" },
      `${plural(hierarchy.height, "level")} above the values. Numbers are records.`,
    ),
    h(
      "div",
      { class: "tree-box", tabindex: "0", role: "region", "aria-label": `Tree of ${column.name}` },
      tree(column.name, arrangeTree(hierarchy.tree, column.declared?.order ?? [])),
    ),
    column.role === "quasi-identifier" ? effect(column, hierarchy) : null,
  ];
}

// What each level does to the uniqueness of the records, while the other columns stay as they are.
function effect(column, hierarchy) {
  const answer = query(`/api/hierarchy/effect?column=${encodeURIComponent(column.name)}`);
  if (!answer.value) return pending(answer);
  const { unique, alone } = answer.value;
  return h(
    "table",
    { class: "tight effect" },
    h("caption", {}, "Unique records, by level of this column"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["level", "labels", "by it alone", "with the others"].map((name) =>
          h("th", { scope: "col", class: "number" }, name),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      unique.map((together, level) =>
        h(
          "tr",
          {},
          h("th", { scope: "row", class: "number" }, level),
          h("td", { class: "number" }, hierarchy.levels[level] ? count(hierarchy.levels[level].labels) : "–"),
          h("td", { class: "number" }, share(alone[level])),
          h("td", { class: "number" }, share(together)),
        ),
      ),
    ),
  );
}

function exchange(column) {
  const address = `/api/hierarchy/arx?column=${encodeURIComponent(column.name)}`;
  const change = async (event) => {
    const [file] = event.target.files;
    if (file) await attempt(() => sendFile(address, file));
    event.target.value = "";
  };
  return h(
    "div",
    { class: "buttons exchange" },
    h(
      "label",
      { class: "button slim file" },
      "Import CSV of ARX",
      h("input", {
        type: "file",
        accept: ".csv",
        class: "aside",
        "aria-label": `Import a hierarchy of ${column.name} from a CSV file of ARX`,
        on: { change },
      }),
    ),
    h("a", { class: "button slim", href: address, download: "" }, "Export CSV for ARX"),
  );
}
