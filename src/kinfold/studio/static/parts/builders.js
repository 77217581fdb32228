// How a column is generalized: the builders that fit its values, with their settings.

import { h } from "../dom.js";
import { app, updateUi } from "../store.js";
import { CALENDAR } from "../texts.js";
import { field, parseList, parseTyped } from "./fields.js";

const NAMES = {
  mask: "hide characters",
  intervals: "intervals",
  dates: "calendar",
  levels: "by hand",
  icd: "ICD-10",
  region: "regions",
  frequency: "rare values together",
  neighbours: "neighbouring values together",
  tree: "by hand",
  file: "a file",
};

/** Return the builder of a specification: its key in the policy. */
export function getBuilder(spec) {
  if (!spec) return "none";
  return ["mask", "intervals", "dates", "levels", "tree", "file"].find((key) => key in spec) ?? "levels";
}

// A table of labels may have been built from the values: by codes, order or frequency.
function wayNow({ spec, built }) {
  const way = getBuilder(spec);
  return ["levels", "file"].includes(way) ? (built ?? way) : way;
}

/** Return a short name of a specification. */
export function getBuilderName(spec) {
  const way = getBuilder(spec);
  return way === "levels" || way === "file" ? "own levels" : (NAMES[way] ?? "");
}

/** Return the builders as radio buttons; selecting one sets it. */
export function builderChoices(hierarchy, change) {
  const now = wayNow(hierarchy);
  const offered = hierarchy.builders.map((builder) => [
    builder.build,
    NAMES[builder.build] ?? builder.build,
    builder.description,
    () => change(builder.keys ? { spec: builder.keys } : { build: builder.build }),
  ]);
  const known =
    offered.some(([id]) => id === now) || now === "none"
      ? offered
      : [[now, NAMES[now], "the current one", () => {}], ...offered];
  const all = [["none", "none", "The column is not generalized.", () => change({ spec: null })], ...known];
  const buttons = all.map(([id, name, text, click]) =>
    h(
      "label",
      { key: id, class: "way", title: text ?? "" },
      h("input", { type: "radio", name: "way", value: id, checked: id === now, on: { change: click } }),
      h("span", {}, h("strong", {}, name), text && text !== name ? h("span", { class: "soft small" }, text) : null),
    ),
  );
  return h(
    "div",
    { class: "ways", role: "radiogroup", "aria-label": `How ${hierarchy.column} is generalized` },
    buttons,
  );
}

/** Return the settings of the selected builder. `attemptSpec` tries a specification and returns its problems. */
export function settings(hierarchy, change, attemptSpec) {
  const { spec } = hierarchy;
  const problems = app.ui[`trying ${hierarchy.column}`] ?? [];
  const common = { spec, change, attemptSpec, problems };
  if (spec && "mask" in spec)
    return h(
      "div",
      { class: "fields" },
      setting({ ...common, key: "mask", label: "Hidden characters", hint: "one more at each level", problems }),
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
      label: "Widths",
      read: parseNumbers,
      hint: "each a multiple of the previous one: 5, 10, 20",
    }),
    setting({ ...common, key: "origin", label: "Start at", problems: [], hint: "default: 0" }),
    setting({
      ...common,
      key: "bottom",
      label: "Open below",
      problems: [],
      hint: "one interval for everything below",
    }),
    setting({
      ...common,
      key: "top",
      label: "Open above",
      problems: [],
      hint: "one interval for everything from here on",
    }),
  ];
}

/** Parse numbers separated by commas. */
export function parseNumbers(text) {
  const items = parseList(text);
  return items ? items.map(parseTyped) : [];
}

function setting({ spec, change, attemptSpec, key, label, hint, problems, read = parseTyped }) {
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

/** Save the problems of a specification while it is typed. */
export function trialNotice(column, problems) {
  updateUi({ [`trying ${column}`]: problems });
}
