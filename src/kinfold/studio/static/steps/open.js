// Step 1: open a table, and choose the role of each column.

import { send } from "../api.js";
import { h } from "../dom.js";
import { count, plural, share } from "../numbers.js";
import { columnTable, columnTools } from "../parts/column_table.js";
import { openTable } from "../parts/open_table.js";
import { tableRows } from "../parts/long_table.js";
import { questions } from "../parts/questions.js";
import { reading } from "../parts/reading.js";
import { rowTable } from "../parts/row_table.js";
import { button, disclosure, nextStep, numbers, section, stepHead, verdict } from "../parts/sections.js";
import { app, attempt, query } from "../store.js";
import { joinNames, shortenName } from "../texts.js";

/** Return the step. */
export function openStep() {
  const { session } = app;
  if (session.state !== "ready") return openTable(session);
  const risk = query("/api/risk").value;
  const { source } = session;
  return [
    stepHead("open", source.name, sentence(session, risk), [
      button("Close this table", () => attempt(() => send("POST", "/api/source/close"))),
      nextStep("generalize", "Generalize →"),
    ]),
    strip(session, risk),
    questions(session),
    warnings(source),
    disclosure("reading", "Reading", describeForm(source), () => [reading(source), preview(session)]),
    h(
      "div",
      { class: "bench" },
      h(
        "div",
        {},
        section("columns", "Columns", columnTools(session.columns), columnTable(session.columns)),
        h(
          "div",
          { class: "parts beside" },
          disclosure("combinations", "Unique combinations", "columns that single people out", () =>
            combinations(risk?.combinations ?? session.combinations),
          ),
          disclosure("project", "Project", "the policy with the log of decisions", project),
        ),
      ),
      section(
        "rows",
        "Rows",
        `All ${plural(source.rows, "row")}, loaded while you scroll.`,
        tableRows(session.columns, source.rows, readingOf(session)),
      ),
    ),
  ];
}

// The first rows, as they are read now: they follow every change of the options.
function preview(session) {
  const names = session.columns.map((column) => column.name);
  const cells = query("/api/rows?from=0&count=5").value?.cells;
  if (!cells) return null;
  const rows = cells.map((row, index) => ({ index, cells: row }));
  return rowTable("First rows, as they are read", [...names.keys()].slice(0, 12), names, rows, false);
}

// How the file is read, in a few words.
function describeForm({ kind, options = {} }) {
  if (kind === "database") return "a table of a database";
  const { encoding, separator, decimal, sheet } = options;
  const names = { "\t": "tab", " ": "space", ",": "comma", ";": "semicolon", "|": "bar", ".": "point" };
  return [
    sheet && `sheet ${sheet}`,
    encoding,
    separator && `separator ${names[separator] ?? separator}`,
    decimal && `decimal ${names[decimal] ?? decimal}`,
  ]
    .filter(Boolean)
    .join(", ");
}

function readingOf(session) {
  return JSON.stringify([session.source.name, session.source.options, session.source.rows]);
}

function sentence(session, risk) {
  if (!risk) return verdict("Counting unique records …");
  if (!risk.quasi.length)
    return verdict(
      "Choose what others may know.",
      ["No column is a quasi-identifier yet: mark those that could identify a person."],
      true,
    );
  return verdict(
    `${describeUnique(risk)} by ${joinNames(risk.quasi)}.`,
    [
      `${describeBelowK(risk.below_k)} with fewer than the ${count(risk.k - 1)} others that k = ${risk.k} requires.`,
      `An attacker who knows them finds a person with a chance of ${describeRisk(risk)}.`,
    ],
    risk.below_k > 0,
    isOld(session, risk),
  );
}

// The sentence is about the previous roles until the new risk arrives.
function isOld(session, risk) {
  const quasi = session.columns.filter((column) => column.role === "quasi-identifier").map((column) => column.name);
  return JSON.stringify(quasi) !== JSON.stringify(risk.quasi) || risk.k !== session.policy.complete.privacy.k;
}

function describeUnique(risk) {
  const records = plural(risk.records, "record");
  if (risk.unique === 0) return `None of the ${records} is unique`;
  return risk.unique === 1 ? `All ${records} are unique` : `${share(risk.unique)} of the ${records} are unique`;
}

function describeBelowK(part) {
  if (part === 0) return "No record shares them";
  return part === 1 ? "Every record shares them" : `${share(part)} share them`;
}

function describeRisk({ prosecutor_mean: mean, prosecutor_max: most }) {
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
    h("h2", { id: "warned" }, "Warnings"),
    h(
      "ul",
      {},
      all.map((text) => h("li", {}, text)),
    ),
  );
}

function combinations(all) {
  const unique = all.filter((one) => one.unique > 0);
  if (!unique.length) return h("p", { class: "soft" }, "No combination of columns singles a person out.");
  const rows = unique.map((one) =>
    h(
      "li",
      { class: "meter" },
      h("strong", { class: "number" }, share(one.unique)),
      h("span", { class: "track", "aria-hidden": "true" }, h("i", { style: { "--share": `${100 * one.unique}%` } })),
      h("span", {}, one.columns.map(shortenName).join(" + ")),
    ),
  );
  return h("ul", { class: "plain" }, rows);
}

function project() {
  return h(
    "div",
    { class: "buttons" },
    h("a", { class: "button", href: "/api/project", download: "" }, "Save the project"),
    projectOpener(),
    h("span", { class: "soft small" }, "The table and its runs are removed when another table is opened."),
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
