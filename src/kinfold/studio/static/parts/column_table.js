// The columns of the table, one row each: kind, values, missing and unique values, role. Several are changed together.

import { spark } from "../charts.js";
import { h } from "../dom.js";
import { count, plural, share, shortNumber } from "../numbers.js";
import { filterColumns, getRole, getRoleByKey, listRoleChanges } from "../roles.js";
import { app, decide, getAddress, updateUi } from "../store.js";
import { ROLES, TYPES } from "../texts.js";
import { getBuilderName } from "./builders.js";
import { select } from "./fields.js";
import { whatIs } from "./help.js";
import { button } from "./sections.js";

const NAMES = ROLES.map((role) => [role.id, role.name]);
const ALONE = ["unit", "household"]; // roles of one column at a time
const MANY = 16; // more columns scroll in a box of their own, so that the rows of the table stay near
const TERMS = { kind: "Type", missing: "Missing value", role: "Role", hierarchy: "Hierarchy" };
const HEADS = ["kind", "distribution", "values", "missing", "unique", "role", "hierarchy", ""];

function listShown(columns) {
  return filterColumns(columns, app.ui.columns ?? {}, app.session.policy.complete.privacy);
}

/** Return the table of all columns. */
export function columnTable(columns) {
  const { privacy } = app.session.policy.complete;
  const shown = listShown(columns);
  const ticked = (app.ui.ticked ?? []).filter((name) => shown.some((column) => column.name === name));
  return [
    ticked.length ? bulk(ticked, privacy) : null,
    h(
      "div",
      {
        class: `scrolls columns-box ${shown.length > MANY ? "many" : ""}`,
        tabindex: "0",
        role: "region",
        "aria-label": "Columns and their roles",
      },
      h(
        "table",
        { class: "dense columns" },
        h("caption", { class: "aside" }, "Columns"),
        head(shown, ticked),
        h(
          "tbody",
          {},
          shown.flatMap((column, index) => rows(column, index, ticked, privacy)),
        ),
      ),
    ),
    shown.length ? null : h("p", { class: "empty" }, "No column matches the filter."),
  ];
}

/** Return what stands beside the heading: how roles are set, and the filters. */
export function columnTools(columns) {
  const filter = app.ui.columns ?? {};
  const shown = listShown(columns);
  const put = (key) => (event) => updateUi({ columns: { ...filter, [key]: event.target.value } });
  const keys = h("p", { id: "roles-key" }, "Roles are proposed: check them. Keys in a row: i q c o w r u h.");
  const filters = h(
    "div",
    { class: "line toolbar" },
    h(
      "span",
      { class: "soft small", role: "status" },
      shown.length < columns.length ? `${count(shown.length)} of ${plural(columns.length, "column")}` : "",
    ),
    h("input", {
      type: "search",
      class: "slim",
      placeholder: "Filter by name",
      "aria-label": "Filter columns by name",
      value: filter.text ?? "",
      on: { input: put("text") },
    }),
    select(NAMES, filter.role ?? "", put("role"), "all roles", {
      class: "slim",
      "aria-label": "Filter columns by role",
    }),
  );
  return [keys, filters];
}

function bulk(ticked, privacy) {
  const role = app.ui.bulk ?? "quasi-identifier";
  const give = async () => {
    if (await decide(listRoleChanges(ticked, role, privacy))) updateUi({ ticked: [] });
  };
  return h(
    "div",
    { class: "line bulk", role: "group", "aria-label": "Change the ticked columns" },
    h("strong", {}, `${plural(ticked.length, "column")} ticked:`),
    select(
      NAMES.filter(([id]) => !ALONE.includes(id)),
      role,
      (event) => updateUi({ bulk: event.target.value }),
      null,
      { class: "slim", "aria-label": "Role of the ticked columns" },
    ),
    button("Set the role", give, { slim: true }),
    button("Untick", () => updateUi({ ticked: [] }), { slim: true }),
  );
}

function head(shown, ticked) {
  const all = shown.length > 0 && ticked.length === shown.length;
  const toggle = () => updateUi({ ticked: all ? [] : shown.map((column) => column.name) });
  const tick = h("input", { type: "checkbox", checked: all, "aria-label": "Tick all columns", on: { change: toggle } });
  const cells = HEADS.map((name) =>
    h(
      "th",
      {
        scope: "col",
        "aria-label": name || null,
        class: ["values", "missing", "unique"].includes(name) ? "number" : null,
      },
      name || h("span", { class: "aside" }, "reason"),
      TERMS[name] ? whatIs(TERMS[name]) : null,
    ),
  );
  return h("thead", {}, h("tr", {}, h("th", {}, tick), h("th", { scope: "col" }, "name"), cells));
}

function rows(column, index, ticked, privacy) {
  const role = getRole(column, privacy);
  const open = app.ui.reason === column.name;
  const row = h(
    "tr",
    {
      key: column.name,
      class: `column role-${role || "other"}`,
      on: { keydown: (event) => handleKey(event, column, privacy) },
    },
    h("td", {}, tickBox(column, ticked)),
    h("th", { scope: "row", dir: "auto", id: `column-${index}`, title: column.name }, column.name),
    h("td", { "data-title": "kind" }, kinds(column)),
    h("td", { class: "shape", title: ends(column) }, spark(column.histogram?.counts ?? [], describeShape(column))),
    fact("values", count(column.distinct)),
    fact("missing", column.missing ? count(column.missing) : "–"),
    fact("unique", column.unique ? share(column.unique) : "–"),
    h("td", { "data-title": "role" }, roles(column, role, privacy)),
    h("td", { class: "generalized" }, generalized(column)),
    h("td", {}, why(column, open)),
  );
  return open ? [row, reason(column)] : [row];
}

function tickBox(column, ticked) {
  const change = (event) => {
    const others = (app.ui.ticked ?? []).filter((name) => name !== column.name);
    updateUi({ ticked: event.target.checked ? [...others, column.name] : others });
  };
  const checked = ticked.includes(column.name);
  return h("input", { type: "checkbox", checked, "aria-label": `Tick ${column.name}`, on: { change } });
}

function fact(name, value) {
  return h("td", { class: "number", "data-title": name }, value);
}

function handleKey(event, column, privacy) {
  const role = getRoleByKey(event.key);
  if (!role || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select")) return;
  event.preventDefault();
  if (role !== getRole(column, privacy)) decide(listRoleChanges([column.name], role, privacy));
}

function roles(column, role, privacy) {
  const change = (event) => decide(listRoleChanges([column.name], event.target.value, privacy));
  return select(NAMES, role, change, role ? null : "choose a role", {
    class: "slim role",
    "aria-label": `Role of ${column.name}`,
    "aria-describedby": "roles-key",
  });
}

function kinds(column) {
  const change = (event) => decide([[["columns", column.name, "type"], event.target.value]]);
  return select(TYPES, column.type ?? column.kind, change, null, {
    "aria-label": `Kind of ${column.name}`,
    class: "slim",
  });
}

function generalized(column) {
  if (column.role !== "quasi-identifier") return null;
  const name = column.declared?.hierarchy ? getBuilderName(column.declared.hierarchy) : "choose";
  return h(
    "a",
    {
      class: "small",
      href: getAddress("generalize", column.name),
      "aria-label": `Hierarchy of ${column.name}: ${name}`,
    },
    name,
  );
}

function why(column, open) {
  return h(
    "button",
    {
      type: "button",
      class: "link small",
      "aria-expanded": String(open),
      "aria-label": `Why ${column.name} is proposed as ${column.proposed.role}`,
      on: { click: () => updateUi({ reason: open ? null : column.name }) },
    },
    open ? "hide" : "why?",
  );
}

function reason(column) {
  const { role, reason: text, hierarchy } = column.proposed;
  return h(
    "tr",
    { key: `why ${column.name}`, class: "reason" },
    h(
      "td",
      { colspan: HEADS.length + 2 },
      `Proposed: ${role}, because ${text}.`,
      hierarchy ? ` Hierarchy: ${hierarchy}.` : null,
      column.of ? ` An attribute of the ${column.of}.` : null,
      h("span", { class: "soft" }, ` Values: ${ends(column)}.`),
    ),
  );
}

function describeShape(column) {
  const { histogram } = column;
  if (!histogram) return `${column.name}: nothing to draw`;
  const most = plural(Math.max(...histogram.counts, 0), "record");
  if (histogram.form === "labels")
    return `${column.name}: ${plural(column.distinct, "value")}, the most frequent one in ${most}`;
  const { edges, counts } = histogram;
  return `${column.name}: ${edges[0]} to ${edges.at(-1)}, ${most} in the largest of ${count(counts.length)} bins`;
}

// The ends of a distribution: the smallest and the largest value, or the most frequent ones.
function ends(column) {
  const { histogram } = column;
  if (!histogram?.counts?.length) return "none";
  if (histogram.form === "bins") return `${shortNumber(histogram.edges[0])} to ${shortNumber(histogram.edges.at(-1))}`;
  const more = column.distinct - Math.min(histogram.labels.length, 3);
  return `${histogram.labels.slice(0, 3).join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
}
