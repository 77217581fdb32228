// How a column is generalized: the ways that fit its values, with their settings.

import { h } from "../dom.js";
import { app, note } from "../store.js";
import { CALENDAR } from "../words.js";
import { field, listTyped, typed } from "./fields.js";

const NAMES = {
  mask: "hide characters",
  intervals: "intervals",
  dates: "calendar",
  levels: "by hand",
  icd: "ICD-10",
  region: "regions",
  frequency: "rare ones together",
  neighbours: "neighbours together",
  tree: "by hand",
  file: "a file",
};

/** The way a specification of the policy goes: the key that says it. */
export function wayOf(spec) {
  if (!spec) return "none";
  return ["mask", "intervals", "dates", "levels", "tree", "file"].find((key) => key in spec) ?? "levels";
}

// A table of labels may be one that was built of the values: by their codes, their order, how rare they are.
function wayNow({ spec, built }) {
  const way = wayOf(spec);
  return ["levels", "file"].includes(way) ? (built ?? way) : way;
}

/** The way of a specification, in a word or two. */
export function nameOf(spec) {
  const way = wayOf(spec);
  return way === "levels" || way === "file" ? "own levels" : (NAMES[way] ?? "");
}

/** The ways to choose from, as radio buttons; choosing one decides it. */
export function ways(hierarchy, change) {
  const now = wayNow(hierarchy);
  const offered = hierarchy.builders.map((builder) => [
    builder.build,
    NAMES[builder.build] ?? builder.build,
    builder.told,
    () => change(builder.keys ? { spec: builder.keys } : { build: builder.build }),
  ]);
  const known =
    offered.some(([id]) => id === now) || now === "none"
      ? offered
      : [[now, NAMES[now], "as it stands", () => {}], ...offered];
  const all = [["none", "none", "The column is not generalized.", () => change({ spec: null })], ...known];
  const buttons = all.map(([id, name, told, click]) =>
    h(
      "label",
      { key: id, class: "way", title: told ?? "" },
      h("input", { type: "radio", name: "way", value: id, checked: id === now, on: { change: click } }),
      h("span", {}, h("strong", {}, name), told ? h("span", { class: "soft small" }, told) : null),
    ),
  );
  return h(
    "div",
    { class: "ways", role: "radiogroup", "aria-label": `How ${hierarchy.column} is generalized` },
    buttons,
  );
}

/** The settings of the way that was chosen. `attempt` tries a specification, and tells what is wrong with it. */
export function settings(hierarchy, change, attemptSpec) {
  const { spec } = hierarchy;
  const problems = app.ui[`trying ${hierarchy.column}`] ?? [];
  const common = { spec, change, attemptSpec, problems };
  if (spec && "mask" in spec)
    return h(
      "div",
      { class: "fields" },
      setting({ ...common, key: "mask", label: "Characters hidden, one more at each level", problems }),
    );
  if (spec && "intervals" in spec) return h("div", { class: "fields" }, intervalFields(common));
  if (spec && "dates" in spec) return calendar(spec, change);
  return null;
}

function intervalFields(common) {
  return [
    setting({
      ...common,
      key: "intervals",
      label: "Widths, each a multiple of the one before",
      read: numbersTyped,
      hint: "for example 5, 10, 20",
    }),
    setting({ ...common, key: "origin", label: "They start at", problems: [], hint: "0 where nothing is said" }),
    setting({
      ...common,
      key: "bottom",
      label: "All below this together",
      problems: [],
      hint: "an interval that is open below",
    }),
    setting({
      ...common,
      key: "top",
      label: "All from this on together",
      problems: [],
      hint: "an interval that is open above",
    }),
  ];
}

/** Numbers apart by commas. */
export function numbersTyped(text) {
  const items = listTyped(text);
  return items ? items.map(typed) : [];
}

function setting({ spec, change, attemptSpec, key, label, hint, problems, read = typed }) {
  const value = Array.isArray(spec[key]) ? spec[key].join(", ") : (spec[key] ?? "");
  const specOf = (text) => {
    const next = { ...spec, [key]: read(text) };
    if (next[key] === null) delete next[key];
    return next;
  };
  const control = h("input", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    value,
    on: {
      input: (event) => attemptSpec(specOf(event.target.value)),
      change: (event) => change({ spec: specOf(event.target.value) }),
    },
  });
  return field({ id: `spec-${key}`, label, hint, problems }, control);
}

function calendar(spec, change) {
  const toggle = (unit) => {
    const units = CALENDAR.filter((known) =>
      known === unit ? !spec.dates.includes(unit) : spec.dates.includes(known),
    );
    change({ spec: { ...spec, dates: units } });
  };
  return h(
    "fieldset",
    {},
    h("legend", { class: "small" }, "Coarsened to"),
    h(
      "div",
      { class: "line" },
      CALENDAR.map((unit) =>
        h(
          "label",
          { class: "tick" },
          h("input", { type: "checkbox", checked: spec.dates.includes(unit), on: { change: () => toggle(unit) } }),
          unit,
        ),
      ),
    ),
  );
}

/** Remember what is wrong with what is being typed. */
export function trying(column, problems) {
  note({ [`trying ${column}`]: problems });
}
