// How the file is read: the detected options, and fields to change them.

import { send } from "../api.js";
import { h } from "../dom.js";
import { attempt, getProblems } from "../store.js";
import { field, parseList, select, parseTyped } from "./fields.js";
import { ENCODINGS } from "../texts.js";

const SEPARATORS = [
  [",", "comma ,"],
  [";", "semicolon ;"],
  ["\t", "tab"],
  ["|", "bar |"],
  [" ", "space"],
];
const DECIMALS = [
  [".", "point 1.5"],
  [",", "comma 1,5"],
];
const THOUSANDS = [
  ["", "none"],
  [",", "comma 1,000"],
  [".", "point 1.000"],
  [" ", "space 1 000"],
  ["'", "apostrophe 1'000"],
];

/** Return a field for each option of the source; an empty option is detected. */
export function reading(source) {
  const { options = {}, reading: keys = [] } = source;
  const fields = {
    separator: () => chosen("separator", "Separator", SEPARATORS, options.separator),
    encoding: () => chosen("encoding", "Encoding", ENCODINGS, options.encoding),
    sheet: () => text("sheet", "Sheet, by name or number", options.sheet ?? ""),
    header: () => header(options.header),
    skip: () => number("skip", "Lines above the table", options.skip || null, 0, "none"),
    skip_totals: () =>
      flag("skip_totals", "Leave out totals", options.skip_totals, "Rows of totals, and footers with one value"),
    decimal: () => chosen("decimal", "Decimals", DECIMALS, options.decimal),
    thousands: () => chosen("thousands", "Thousands", THOUSANDS, options.thousands),
    na: () => listed("na", "Texts read as missing", options.na, "NA, n/a"),
    dates: () => listed("dates", "Date formats", options.dates, "%d.%m.%Y"),
  };
  return [
    source.readings?.length
      ? h(
          "ul",
          { class: "readings" },
          source.readings.map((sentence) => h("li", {}, sentence)),
        )
      : null,
    h(
      "div",
      { class: "fields" },
      keys.map((key) => fields[key]()),
    ),
  ];
}

// The line of the column names: the first with text, another one, or none.
function header(value) {
  const none = value === 0;
  const change = (event) => decideReading("header", event.target.checked ? 0 : null);
  return [
    none ? null : number("header", "Header is line", value, 1, "first with text"),
    field(
      { id: "read-headless", label: "Has no header", hint: none ? "Columns are called column1, column2, …" : null },
      h("input", { type: "checkbox", checked: none, on: { change } }),
    ),
  ];
}

function flag(key, label, value, hint) {
  const change = (event) => decideReading(key, event.target.checked || null);
  return field(
    { id: `read-${key}`, label, hint, problems: getProblems("source", key) },
    h("input", { type: "checkbox", checked: Boolean(value), on: { change } }),
  );
}

function number(key, label, value, min, placeholder) {
  const change = (event) => decideReading(key, parseTyped(event.target.value));
  return field(
    { id: `read-${key}`, label, problems: getProblems("source", key) },
    h("input", { type: "number", min, step: "1", placeholder, value: value ?? "", on: { change } }),
  );
}

function decideReading(key, value) {
  return attempt(() => send("POST", "/api/source/options", { [key]: value }), [["source", key]], true);
}

function chosen(key, label, known, value) {
  const choices =
    known.some((choice) => choice === value || choice[0] === value) || (value ?? null) === null
      ? known
      : [[value, value], ...known];
  const change = ({ target }) => decideReading(key, target.value === "" && key !== "thousands" ? null : target.value);
  const unknown = value === null || value === undefined ? "detected" : null;
  const problems = getProblems("source", key);
  return field({ id: `read-${key}`, label, problems }, select(choices, value, change, unknown));
}

function listed(key, label, value, placeholder) {
  const change = (event) => decideReading(key, parseList(event.target.value));
  const typed = Array.isArray(value) ? value.join(", ") : (value ?? "");
  return field(
    { id: `read-${key}`, label, problems: getProblems("source", key) },
    h("input", { type: "text", autocomplete: "off", placeholder, value: typed, on: { change } }),
  );
}

function text(key, label, value) {
  const change = (event) => decideReading(key, parseTyped(event.target.value));
  return field(
    { id: `read-${key}`, label, problems: getProblems("source", key) },
    h("input", { type: "text", autocomplete: "off", value, on: { change } }),
  );
}
