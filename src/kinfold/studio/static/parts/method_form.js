// How the release is made and written, as a form.

import { h } from "../dom.js";
import { app, decide, refused } from "../store.js";
import { choiceField, field, numberField, select } from "./fields.js";
import { choicesOf, wordsOf } from "./promises.js";

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
        hint: sentenceOf(complete.method.name),
        problems: refused("method", "name"),
      },
      select(methodChoices(methods), complete.method.name, (event) => change(event.target.value, methods)),
    ),
    refinement(complete.method),
    generalizes
      ? null
      : numberField({
          path: ["method", "prove"],
          label: "Proof, in seconds",
          hint: wordsOf().keys?.prove,
          value: complete.method.prove,
          min: 0,
        }),
    generalizes
      ? numberField({
          path: ["method", "suppression"],
          label: "Records that may be left out",
          hint: wordsOf().keys?.suppression ?? "A whole number is a count, a fraction a share of the records.",
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

function sentenceOf(name) {
  const told = wordsOf().methods?.find((one) => one.name === name);
  const said = told?.sentence ?? "";
  const needs = told?.needs ?? [];
  if (!said) return "";
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}.${needs.length ? ` Needs ${needs.join("; ")}.` : ""}`;
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

function refinement(decided) {
  const value = decided.refine;
  const fixed = decided.refine_steps !== null && decided.refine_steps !== undefined;
  const hint = fixed
    ? `Repeats ${decided.refine_steps} steps, as method.refine_steps says.`
    : (wordsOf().keys?.refine ?? "Seconds spent on better classes; 0 is none, auto goes by the size of the table.");
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
      hint: wordsOf().others?.[out.others],
      value: out.others,
      choices: choicesOf("others"),
    }),
    choiceField({ path: ["output", "format"], label: "Format", value: out.format, choices: choicesOf("format") }),
    choiceField({
      path: ["output", "order"],
      label: "Order of the rows",
      hint: "Sorted by their released values, so that the order tells nothing.",
      value: out.order,
      choices: choicesOf("order"),
    }),
    choiceField({
      path: ["output", "suppressed"],
      label: "Records that are left out",
      hint: "Dropped, or kept with * in every quasi-identifier.",
      value: out.suppressed,
      choices: choicesOf("suppressed"),
    }),
  );
}
