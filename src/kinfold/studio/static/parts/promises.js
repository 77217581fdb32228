// The promises and the method, as a form: each key with what it means and the risk that it leaves, as the server says.

import { h } from "../dom.js";
import { app, decide, look } from "../store.js";
import { CHOICES } from "../words.js";
import { choiceField, field, idOf, numberField, select, typed } from "./fields.js";
import { refused } from "../store.js";

/** What a key means as it stands, in one line. */
function meaning(key) {
  const words = look("/api/words").value?.meanings?.[key];
  return words ? [words.means, words.leaves].filter(Boolean).join(" ") : null;
}

/** What is promised. */
export function promises(complete, columns) {
  const { privacy } = complete;
  const names = columns.map((column) => column.name);
  const l = privacy.l !== null && privacy.l !== undefined;
  return [
    h(
      "div",
      { class: "form" },
      numberField({
        path: ["privacy", "k"],
        label: "k: records that share each combination",
        hint: meaning("privacy.k"),
        value: privacy.k,
        min: 2,
        step: 1,
      }),
      choiceField({
        path: ["privacy", "unit"],
        label: "Counted are",
        hint: meaning("privacy.unit"),
        value: privacy.unit,
        choices: names.map((name) => [name, `people, by ${name}`]),
        none: "rows",
      }),
      numberField({
        path: ["privacy", "l"],
        label: "l: different confidential values in each class",
        hint: meaning("privacy.l"),
        value: privacy.l,
        min: 1,
        placeholder: "not asked",
        extra: l ? kindOfL(privacy) : null,
      }),
      l && privacy.l_kind === "recursive"
        ? numberField({ path: ["privacy", "c"], label: "c of recursive diversity", value: privacy.c, min: 0 })
        : null,
      numberField({
        path: ["privacy", "t"],
        label: "t: how far a class may be from the whole table",
        hint: meaning("privacy.t"),
        value: privacy.t,
        min: 0,
        max: 1,
        step: 0.05,
        placeholder: "not asked",
      }),
    ),
    ownLevels(columns),
  ];
}

function kindOfL(privacy) {
  return select(
    CHOICES.l_kind,
    privacy.l_kind,
    (event) => decide([[["privacy", "l_kind"], event.target.value]]),
    null,
    { "aria-label": "Kind of diversity" },
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
    h("caption", {}, "Levels of its own, for a confidential column"),
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
  const problems = refused(...path);
  return [
    h("input", {
      type: "number",
      step: "any",
      min: "0",
      id: idOf(path),
      "aria-label": label,
      "aria-invalid": problems.length ? "true" : null,
      placeholder: "as above",
      value: value ?? "",
      on: { change: (event) => decide([[path, typed(event.target.value)]], true) },
    }),
    problems.length
      ? h("p", { class: "wrong small alarm", role: "alert" }, problems.map((problem) => problem.what).join(" "))
      : null,
  ];
}

/** How it is made. */
export function method(complete, methods) {
  const chosen = methods.find((one) => one.name === complete.method.name);
  const generalizes = chosen ? chosen.family !== "partition" : true;
  return h(
    "div",
    { class: "form" },
    field(
      {
        id: "f-method-name",
        label: "Method",
        hint: chosen?.summary ?? meaning("method.name"),
        problems: refused("method", "name"),
      },
      select(methodChoices(methods), complete.method.name, (event) => change(event.target.value, methods)),
    ),
    refinement(complete.method),
    generalizes
      ? numberField({
          path: ["method", "suppression"],
          label: "Records that may be left out",
          hint: meaning("method.suppression") ?? "A whole number is a count, a fraction a share of the records.",
          value: complete.method.suppression,
          min: 0,
        })
      : null,
    chosen?.objectives?.length
      ? choiceField({
          path: ["method", "objective"],
          label: "What it keeps as small as it can",
          value: complete.method.objective,
          choices: chosen.objectives,
        })
      : null,
    numberField({
      path: ["method", "seed"],
      label: "Seed",
      hint: "The same table, policy and seed give the same bytes.",
      value: complete.method.seed,
      min: 0,
      step: 1,
    }),
  );
}

// Settings that another method does not know go with the method that had them.
function change(name, methods) {
  const known = methods.find((one) => one.name === name)?.keys ?? [];
  const own = ["levels", "choices", "limit", "objective"].filter(
    (key) => key in (app.session.policy.values.method ?? {}) && !known.includes(key),
  );
  return decide([[["method", "name"], name], ...own.map((key) => [["method", key], null])], true);
}

function methodChoices(methods) {
  const names = methods.map((one) => one.name);
  return names.includes("auto") ? names : ["auto", ...names];
}

function refinement(method) {
  const value = method.refine;
  const fixed = method.refine_steps !== null && method.refine_steps !== undefined;
  const hint = fixed
    ? `Repeats ${method.refine_steps} steps, as method.refine_steps says.`
    : (meaning("method.refine") ?? "Seconds spent on better classes; 0 is none, auto goes by the size of the table.");
  return numberField({ path: ["method", "refine"], label: "Refinement, in seconds", hint, value, type: "text" });
}

/** How it is written. */
export function output(complete) {
  const { output: out = {} } = complete;
  return h(
    "div",
    { class: "form" },
    choiceField({
      path: ["output", "others"],
      label: "Columns that no role is given to",
      hint: meaning("output.others"),
      value: out.others,
      choices: CHOICES.others,
    }),
    choiceField({ path: ["output", "format"], label: "Format", value: out.format, choices: CHOICES.format }),
    choiceField({
      path: ["output", "order"],
      label: "Order of the rows",
      hint: meaning("output.order"),
      value: out.order,
      choices: CHOICES.order,
    }),
    choiceField({
      path: ["output", "suppressed"],
      label: "Records that are left out",
      hint: meaning("output.suppressed"),
      value: out.suppressed,
      choices: CHOICES.suppressed,
    }),
  );
}
