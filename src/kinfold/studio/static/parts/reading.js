// How the file is read: what was guessed, and other ways to read it.

import { send } from "../api.js";
import { h } from "../dom.js";
import { attempt, refused } from "../store.js";
import { field, listTyped, select, typed } from "./fields.js";
import { ENCODINGS } from "../words.js";

const SEPARATORS = [
  [",", "comma ,"],
  [";", "semicolon ;"],
  ["\t", "tabulator"],
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

/** The options of the source, each one changeable; an empty one is found out. */
export function reading(source) {
  const { options = {}, reading: keys = [] } = source;
  const fields = {
    separator: () => chosen("separator", "Separator", SEPARATORS, options.separator),
    encoding: () => chosen("encoding", "Encoding", ENCODINGS, options.encoding),
    sheet: () => text("sheet", "Sheet, by name or number", options.sheet ?? ""),
    header: () => header(options.header),
    skip: () => number("skip", "Lines above the table", options.skip || null, 0, "none"),
    decimal: () => chosen("decimal", "Decimals", DECIMALS, options.decimal),
    thousands: () => chosen("thousands", "Thousands", THOUSANDS, options.thousands),
    na: () => listed("na", "Texts that mean missing", options.na, "NA, n/a"),
    dates: () => listed("dates", "How dates are written", options.dates, "%d.%m.%Y"),
  };
  return [
    source.readings?.length
      ? h(
          "ul",
          { class: "readings" },
          source.readings.map((told) => h("li", {}, told)),
        )
      : null,
    h(
      "div",
      { class: "fields" },
      keys.map((key) => fields[key]()),
    ),
  ];
}

// Which line has the names: the first that holds something, another one, or none.
function header(value) {
  const none = value === 0;
  const change = (event) => decideReading("header", event.target.checked ? 0 : null);
  return [
    none ? null : number("header", "Header is line", value, 1, "the first with text"),
    field(
      { id: "read-headless", label: "Has no header", hint: none ? "Columns are called column1, column2, …" : null },
      h("input", { type: "checkbox", checked: none, on: { change } }),
    ),
  ];
}

function number(key, label, value, min, placeholder) {
  const change = (event) => decideReading(key, typed(event.target.value));
  return field(
    { id: `read-${key}`, label, problems: refused("source", key) },
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
  const unknown = value === null || value === undefined ? "found out" : null;
  return field({ id: `read-${key}`, label, problems: refused("source", key) }, select(choices, value, change, unknown));
}

function listed(key, label, value, placeholder) {
  const change = (event) => decideReading(key, listTyped(event.target.value));
  const shown = Array.isArray(value) ? value.join(", ") : (value ?? "");
  return field(
    { id: `read-${key}`, label, problems: refused("source", key) },
    h("input", { type: "text", autocomplete: "off", placeholder, value: shown, on: { change } }),
  );
}

function text(key, label, value) {
  const change = (event) => decideReading(key, typed(event.target.value));
  return field(
    { id: `read-${key}`, label, problems: refused("source", key) },
    h("input", { type: "text", autocomplete: "off", value, on: { change } }),
  );
}
