// How the file is read: what was guessed, and other ways to read it.

import { send } from "../api.js";
import { h } from "../dom.js";
import { attempt, refused } from "../store.js";
import { field, listTyped, select } from "./fields.js";
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

/** The options of the source, each one changeable; an empty one is guessed. */
export function reading(source) {
  const { options = {} } = source;
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
      has(options, "separator") && chosen("separator", "Separator", SEPARATORS, options.separator),
      has(options, "decimal") && chosen("decimal", "Decimals", DECIMALS, options.decimal),
      has(options, "thousands") && chosen("thousands", "Thousands", THOUSANDS, options.thousands),
      has(options, "encoding") && chosen("encoding", "Encoding", ENCODINGS, options.encoding),
      has(options, "na") && listed("na", "Texts that mean missing", options.na, "NA, n/a"),
      has(options, "dates") && listed("dates", "How dates are written", options.dates, "%d.%m.%Y"),
      has(options, "sheet") && options.sheet !== null && text("sheet", "Sheet", options.sheet),
    ),
  ];
}

function has(options, key) {
  return key in options;
}

function decideReading(key, value) {
  return attempt(() => send("POST", "/api/source/options", { [key]: value }), [["source", key]], true);
}

function chosen(key, label, known, value) {
  const choices =
    known.some((choice) => choice === value || choice[0] === value) || value === null
      ? known
      : [[value, value], ...known];
  const change = (event) => decideReading(key, event.target.value);
  return field({ id: `read-${key}`, label, problems: refused("source", key) }, select(choices, value, change));
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
  const change = (event) => decideReading(key, event.target.value || null);
  return field(
    { id: `read-${key}`, label, problems: refused("source", key) },
    h("input", { type: "text", autocomplete: "off", value, on: { change } }),
  );
}
