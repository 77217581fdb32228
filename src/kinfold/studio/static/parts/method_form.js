// The form of the method and of the output.

import { h } from "../dom.js";
import { app, decide, getProblems } from "../store.js";
import { HINTS } from "../texts.js";
import { choiceField, field, numberField, select } from "./fields.js";
import { getChoices } from "./promises.js";

/** Return the form of the method. */
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
        term: "Method",
        hint: describeMethod(chosen),
        problems: getProblems("method", "name"),
      },
      select(
        methods.map((one) => one.name),
        complete.method.name,
        (event) => change(event.target.value, methods),
      ),
    ),
    refinement(complete.method),
    generalizes
      ? null
      : numberField({
          path: ["method", "prove"],
          label: "Proof, in seconds",
          hint: HINTS.prove,
          value: complete.method.prove,
          min: 0,
        }),
    generalizes
      ? numberField({
          path: ["method", "suppression"],
          label: "Records that may be suppressed",
          term: "Suppress",
          hint: HINTS.suppression,
          value: complete.method.suppression,
          min: 0,
        })
      : null,
    chosen?.objectives.length
      ? choiceField({
          path: ["method", "objective"],
          label: "Objective to minimize",
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

function describeMethod(chosen) {
  if (!chosen) return "";
  const { sentence, needs } = chosen;
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.${needs.length ? ` Needs ${needs.join("; ")}.` : ""}`;
}

// Settings that belong to the previous method only are removed with it.
function change(name, methods) {
  const known = methods.find((one) => one.name === name)?.keys ?? [];
  const own = ["levels", "choices", "limit", "objective"].filter(
    (key) => key in (app.session.policy.values.method ?? {}) && !known.includes(key),
  );
  return decide([[["method", "name"], name], ...own.map((key) => [["method", key], null])], true);
}

function refinement(decided) {
  const value = decided.refine;
  const fixed = decided.refine_steps !== null && decided.refine_steps !== undefined;
  const hint = fixed
    ? `Repeats ${decided.refine_steps} steps, as method.refine_steps requires.`
    : HINTS.refine;
  const label = "Refinement, in seconds";
  return numberField({ path: ["method", "refine"], label, hint, value, type: "text", term: "Refinement" });
}

/** Return the form of the output. */
export function output(complete) {
  const { output: out = {} } = complete;
  return h(
    "div",
    { class: "form" },
    choiceField({
      path: ["output", "others"],
      label: "Columns without a role",
      hint: HINTS.others[out.others],
      value: out.others,
      choices: getChoices("others"),
    }),
    choiceField({ path: ["output", "format"], label: "Format", value: out.format, choices: getChoices("format") }),
    numberField({ path: ["output", "parts"], label: "Part files", hint: HINTS.parts, value: out.parts, type: "text" }),
    choiceField({
      path: ["output", "order"],
      label: "Order of the rows",
      hint: "Sorted by their released values, so that the order discloses nothing.",
      value: out.order,
      choices: getChoices("order"),
    }),
    choiceField({
      path: ["output", "suppressed"],
      label: "Suppressed records",
      hint: "Dropped, or kept with * in every quasi-identifier.",
      value: out.suppressed,
      choices: getChoices("suppressed"),
    }),
  );
}
