// The form of the promises: each key with its meaning and the remaining risk, from the server.

import { h } from "../dom.js";
import { app, decide, getProblems } from "../store.js";
import { HINTS } from "../texts.js";
import { choiceField, decideNumber, makeId, numberField, select } from "./fields.js";

/** Return the allowed values of a key. */
export function getChoices(key) {
  return app.session.choices[key] ?? [];
}

/** Return the form of the promises. */
export function promises(complete, columns) {
  const { privacy } = complete;
  const meanings = app.session.policy.promises;
  const names = columns.map((column) => column.name);
  const l = isSet(privacy.l);
  return [
    h(
      "div",
      { class: "form" },
      numberField({
        path: ["privacy", "k"],
        label: "k: records that share each combination",
        hint: meanings.k,
        value: privacy.k,
        min: 2,
        step: 1,
      }),
      choiceField({
        path: ["privacy", "unit"],
        label: "What k counts",
        hint: privacy.unit ? HINTS.unit : "Choose a column if a person has several rows.",
        value: privacy.unit,
        choices: names.map((name) => [name, `people, by ${name}`]),
        none: "rows",
      }),
      numberField({
        path: ["privacy", "l"],
        label: "l: different confidential values in each class",
        hint: meanings.l,
        value: privacy.l,
        min: 1,
        placeholder: "not required",
        extra: l ? chooseKind("l_kind", privacy, "Kind of diversity") : null,
      }),
      l && privacy.l_kind === "recursive"
        ? numberField({ path: ["privacy", "c"], label: "c of recursive diversity", value: privacy.c, min: 0 })
        : null,
      numberField({
        path: ["privacy", "t"],
        label: "t: largest distance of a class from the whole table",
        hint: meanings.t,
        value: privacy.t,
        min: 0,
        max: 1,
        step: 0.05,
        placeholder: "not required",
      }),
      numberField({
        path: ["privacy", "beta"],
        label: "beta: largest gain of a confidential value in a class",
        hint: meanings.beta,
        value: privacy.beta,
        min: 0,
        placeholder: "not required",
        extra: isSet(privacy.beta) ? chooseKind("beta_kind", privacy, "Kind of likeness") : null,
      }),
      numberField({
        path: ["privacy", "delta"],
        label: "delta: every confidential value in each class",
        hint: meanings.delta,
        value: privacy.delta,
        min: 0,
        placeholder: "not required",
      }),
    ),
    ownLevels(columns),
  ];
}

function isSet(value) {
  return value !== null && value !== undefined;
}

function chooseKind(key, privacy, label) {
  return select(
    getChoices(key),
    privacy[key],
    (event) => decide([[["privacy", key], event.target.value]]),
    null,
    { "aria-label": label },
  );
}

function ownLevels(columns) {
  const confidential = columns.filter((column) => column.role === "confidential");
  if (!confidential.length)
    return h("p", { class: "soft small" }, "No column is confidential: l and t have nothing to protect.");
  const rows = confidential.map((column) => {
    const path = (key) => ["columns", column.name, key];
    return h(
      "tr",
      { key: column.name },
      h("th", { scope: "row", dir: "auto" }, column.name),
      h("td", { "data-title": "l" }, cell(path("l"), `l of ${column.name}`, column.declared?.l)),
      h("td", { "data-title": "t" }, cell(path("t"), `t of ${column.name}`, column.declared?.t)),
    );
  });
  return h(
    "table",
    { class: "stacked own" },
    h("caption", {}, "Levels of single confidential columns"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["column", "l", "t"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function cell(path, label, value) {
  const problems = getProblems(...path);
  return [
    h("input", {
      type: "number",
      step: "any",
      min: "0",
      id: makeId(path),
      "aria-label": label,
      "aria-invalid": problems.length ? "true" : null,
      placeholder: "as above",
      value: value ?? "",
      on: { change: (event) => decideNumber(path, event.target) },
    }),
    problems.length
      ? h("p", { class: "wrong small alarm", role: "alert" }, problems.map((problem) => problem.what).join(" "))
      : null,
  ];
}
