// The form of people with several rows, and of households.

import { h } from "../dom.js";
import { app, decide, getProblems } from "../store.js";
import { HINTS } from "../texts.js";
import { choiceField, field, numberField } from "./fields.js";
import { disclosure } from "./sections.js";

/** Return the form of people with several rows, and of households. */
export function people(complete, columns) {
  const { privacy, method, output } = complete;
  const named = [
    privacy.unit && `people, by ${privacy.unit}`,
    privacy.household && `households, by ${privacy.household}`,
  ];
  const hint = named.filter(Boolean).join("; ") || "a person is one row";
  return disclosure("people", "People and households", hint, () => {
    const names = columns.map((column) => column.name);
    const number = (key, label, value, section = "privacy", min = 0) =>
      numberField({ path: [section, key], label, hint: HINTS[key], value, min, step: 1, placeholder: "not required" });
    return h(
      "div",
      { class: "form" },
      choiceField({
        path: ["privacy", "unit"],
        label: "What k counts",
        term: "Unit",
        hint: privacy.unit ? HINTS.unit : "Choose a column if a person has several rows.",
        value: privacy.unit,
        choices: names.map((name) => [name, `people, by ${name}`]),
        none: "rows",
      }),
      privacy.unit ? together(method) : null,
      privacy.unit && privacy.unit === app.session.source?.unit?.column ? attributes(columns) : null,
      method.people ? number("events_known", "Events that others know", privacy.events_known) : null,
      method.people ? number("days_known", "Their dates are known to within days", privacy.days_known) : null,
      method.people ? number("shift_days", "Days that events are shifted by", method.shift_days, "method") : null,
      choiceField({
        path: ["privacy", "household"],
        label: "Household",
        term: "Household",
        hint: HINTS.household,
        value: privacy.household,
        choices: names,
        none: "none",
      }),
      privacy.household ? number("household_k", "k of households", privacy.household_k, "privacy", 2) : null,
      privacy.unit || privacy.household ? surrogate(output) : null,
    );
  });
}

// Which columns have one value in all rows of every person. The profile tells them apart by the unit that it found.
function attributes(columns) {
  const lists = ["person", "event"].map((of) => {
    const names = columns.filter((column) => (column.declared?.of ?? column.of) === of).map((column) => column.name);
    return names.length ? `Attributes of the ${of}: ${names.join(", ")}. ` : "";
  });
  return lists.some(Boolean) ? h("p", { class: "small", id: "attributes" }, lists) : null;
}

function together(method) {
  return choiceField({
    path: ["method", "people"],
    label: "Rows of a person",
    hint: HINTS.people,
    value: method.people,
    choices: [["together", "stay together"]],
    none: "each on its own",
  });
}

function surrogate(output) {
  const change = (event) => decide([[["output", "surrogate"], event.target.checked || null]], true);
  return field(
    {
      id: "f-output-surrogate",
      label: "Release new keys",
      hint: HINTS.surrogate,
      problems: getProblems("output", "surrogate"),
    },
    h("input", { type: "checkbox", checked: Boolean(output.surrogate), on: { change } }),
  );
}
