// Fields of a form, each for a key of the policy, with a hint and the problems of a refused value.

import { h } from "../dom.js";
import { decide, addProblem, getProblems } from "../store.js";
import { whatIs } from "./help.js";

/** Parse a typed text: a number if it is one, null if it is empty. */
export function parseTyped(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const number = Number(trimmed);
  return Number.isNaN(number) ? trimmed : number;
}

/** Parse a comma-separated list; null if it is empty. */
export function parseList(text) {
  const items = text
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
  return items.length ? items : null;
}

/** Return a field: label, control, hint and problems; `term` is its word in the glossary. */
export function field({ id, label, hint, problems = [], extra = null, term = null }, control) {
  const described = [hint ? `${id}-hint` : null, problems.length ? `${id}-wrong` : null].filter(Boolean).join(" ");
  Object.assign(control.props, {
    id,
    "aria-describedby": described || null,
    "aria-invalid": problems.length ? "true" : null,
  });
  return h(
    "div",
    { class: "field", key: id },
    h("div", { class: "label" }, h("label", { for: id }, label), term ? whatIs(term) : null),
    h("div", { class: "line" }, control, extra),
    hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null,
    problems.length
      ? h("p", { class: "wrong", id: `${id}-wrong`, role: "alert" }, problems.map(describeProblem).join(" "))
      : null,
  );
}

/** Describe a problem in one line. */
export function describeProblem(problem) {
  return problem.fix ? `${problem.what}: ${problem.fix}` : problem.what;
}

/** Return the id of the field of a path. */
export function makeId(path) {
  return `f-${path.join("-").replace(/[^\w-]/g, (letter) => `_${letter.codePointAt(0).toString(16)}`)}`;
}

/** Return a field for a number; `read` parses its text. */
export function numberField({
  path,
  label,
  hint,
  value,
  min,
  max,
  step = "any",
  placeholder = "",
  read = parseTyped,
  type = "number",
  extra,
  term,
}) {
  const control = h("input", {
    type,
    inputmode: "decimal",
    autocomplete: "off",
    min,
    max,
    step: type === "number" ? step : null,
    placeholder,
    value: value ?? "",
    on: { change: (event) => decideNumber(path, event.target, read) },
  });
  return field({ id: makeId(path), label, hint, problems: getProblems(...path), extra, term }, control);
}

/** Set the value of a number field; a browser returns no text if it is not a number. */
export function decideNumber(path, input, read = parseTyped) {
  if (input.validity.badInput) return addProblem(path, [{ what: "this is not a number", fix: "write digits" }]);
  return decide([[path, read(input.value)]], true);
}

/** Return a field with choices; `none` is the choice that removes the key. */
export function choiceField({ path, label, hint, value, choices, none = null, extra, term }) {
  const change = (event) => decide([[path, event.target.value === "" ? null : event.target.value]], true);
  return field(
    { id: makeId(path), label, hint, problems: getProblems(...path), extra, term },
    select(choices, value, change, none),
  );
}

/** Return a select element; choices are texts, or pairs of a value and its name. */
export function select(choices, value, change, none = null, props = {}) {
  const pairs = choices.map((choice) => (Array.isArray(choice) ? choice : [choice, choice]));
  if (value && !pairs.some(([id]) => id === value)) pairs.unshift([value, value]);
  const options = [...(none === null ? [] : [["", none]]), ...pairs].map(([id, name]) =>
    h("option", { value: id, key: id, selected: id === (value ?? "") }, name),
  );
  return h("select", { ...props, value: value ?? "", on: { change } }, options);
}

/** Return a list of problems. */
export function problemList(problems, heading) {
  if (!problems.length) return null;
  return h(
    "div",
    { class: "warnings wrong", role: "alert" },
    h("h3", {}, heading),
    h(
      "ul",
      {},
      problems.map((problem) => h("li", {}, describeProblem(problem))),
    ),
  );
}
