// Step 1: open a table, see what it is, say which part each column plays.

import { send } from "../api.js";
import { h } from "../dom.js";
import { count, plural, share } from "../numbers.js";
import { columnRows, rolesKey } from "../parts/column_rows.js";
import { entrance } from "../parts/entrance.js";
import { longTable } from "../parts/long_table.js";
import { reading } from "../parts/reading.js";
import { button, head, numbers, section, verdict } from "../parts/sections.js";
import { app, attempt, look } from "../store.js";
import { listed, shortName } from "../words.js";

/** The step as it stands. */
export function openStep() {
  const { session } = app;
  if (session.state !== "ready") return entrance(session);
  const risk = look("/api/risk").value;
  return [
    head("open", session.source.name, sentence(session, risk)),
    strip(session, risk),
    warnings(session.source),
    section(
      "columns",
      "Columns",
      [
        "What each column is, and the part it plays. Roles are proposed by names and values; correct them.",
        ...rolesKey(),
      ],
      columnRows(session.columns),
    ),
    section(
      "combinations",
      "Who stands out",
      "Columns that together single people out: no other record has the same values in all of them.",
      combinations(risk?.combinations ?? session.combinations),
    ),
    section(
      "rows",
      "Rows",
      [`All ${plural(session.source.rows, "row")}, fetched as you scroll. Control and Home or End go to the ends.`],
      longTable(session.columns, session.source.rows, readingOf(session)),
    ),
    section(
      "reading",
      "Reading",
      "How the file is written, as guessed from it. A change reads it again.",
      reading(session.source),
    ),
    section(
      "other",
      "Another table",
      "This one and its runs are forgotten when another is opened, when the server stops, or after an idle hour.",
      another(),
    ),
  ];
}

function readingOf(session) {
  return JSON.stringify([session.source.name, session.source.options, session.source.rows]);
}

function sentence(session, risk) {
  if (!risk) return verdict("Looking at who stands alone …");
  if (!risk.quasi.length)
    return verdict(
      "Say what somebody else may know.",
      ["No column is a quasi-identifier yet: mark those by which a person could be found."],
      true,
    );
  return verdict(
    `${aloneTold(risk)} with their ${listed(risk.quasi)}.`,
    [
      `${partTold(risk.below_k)} with fewer than the ${count(risk.k - 1)} others that k = ${risk.k} asks for.`,
      `Whoever knows them finds a person with a chance of ${chanceTold(risk)}.`,
    ],
    risk.below_k > 0,
    isOld(session, risk),
  );
}

// The sentence is about the roles before: the one about the new ones is being worked out.
function isOld(session, risk) {
  const quasi = session.columns.filter((column) => column.role === "quasi-identifier").map((column) => column.name);
  return JSON.stringify(quasi) !== JSON.stringify(risk.quasi) || risk.k !== session.policy.complete.privacy.k;
}

function aloneTold(risk) {
  const records = plural(risk.records, "record");
  if (risk.unique === 0) return `None of the ${records} is alone`;
  return risk.unique === 1 ? `All ${records} are alone` : `${share(risk.unique)} of the ${records} are alone`;
}

function partTold(part) {
  if (part === 0) return "None shares them";
  return part === 1 ? "Every one shares them" : `${share(part)} share them`;
}

function chanceTold({ prosecutor_mean: mean, prosecutor_max: most }) {
  return mean === most ? share(mean) : `${share(mean)} on average, ${share(most)} at most`;
}

function strip(session, risk) {
  return numbers([
    ["Records", count(session.source.rows)],
    ["Columns", count(session.columns.length)],
    ["Quasi-identifiers", risk ? count(risk.quasi.length) : "…"],
    ["Classes", risk ? count(risk.classes) : "…"],
    ["Smallest class", risk ? count(risk.smallest) : "…"],
    ["Mean risk of a record", risk ? share(risk.prosecutor_mean) : "…"],
  ]);
}

function warnings(source) {
  const all = [...(source.warnings ?? [])];
  if (!all.length) return null;
  return h(
    "aside",
    { class: "warnings", "aria-labelledby": "warned" },
    h("h2", { id: "warned" }, "Take note"),
    h(
      "ul",
      {},
      all.map((text) => h("li", {}, text)),
    ),
  );
}

function combinations(all) {
  const found = all.filter((one) => one.unique > 0);
  if (!found.length) return h("p", { class: "soft" }, "No combination of columns singles anybody out.");
  const rows = found.map((one) =>
    h(
      "li",
      { class: "meter" },
      h("strong", { class: "number" }, share(one.unique)),
      h("span", { class: "track", "aria-hidden": "true" }, h("i", { style: { "--share": `${100 * one.unique}%` } })),
      h("span", {}, one.columns.map(shortName).join(" + ")),
    ),
  );
  return h("ul", { class: "plain" }, rows);
}

function another() {
  return h(
    "div",
    { class: "buttons" },
    button("Close this table", () => attempt(() => send("POST", "/api/source/close"))),
    h("a", { class: "button", href: "/api/project", download: "" }, "Save the project"),
    projectOpener(),
  );
}

function projectOpener() {
  const change = async (event) => {
    const [file] = event.target.files;
    if (file) await attempt(async () => send("POST", "/api/project", { text: await file.text() }));
    event.target.value = "";
  };
  return h(
    "label",
    { class: "button file" },
    "Open a project",
    h("input", { type: "file", accept: ".toml", class: "aside", on: { change } }),
  );
}
