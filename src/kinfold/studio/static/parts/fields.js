// Fields of a form that decide a key of the policy each, with a sentence and, where it was refused, the reason.

import { h } from "../dom.js";
import { decide, refuse, refused } from "../store.js";

/** What the reader typed, as a value of the policy: a number where it is one, null where it is empty. */
export function typed(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const number = Number(trimmed);
  return Number.isNaN(number) ? trimmed : number;
}

/** Words apart by commas, as a list; null where there is none. */
export function listTyped(text) {
  const items = text
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
  return items.length ? items : null;
}

/** A field: label, control, sentence, and what is wrong. */
export function field({ id, label, hint, problems = [], extra = null }, control) {
  const described = [hint ? `${id}-hint` : null, problems.length ? `${id}-wrong` : null].filter(Boolean).join(" ");
  Object.assign(control.props, {
    id,
    "aria-describedby": described || null,
    "aria-invalid": problems.length ? "true" : null,
  });
  return h(
    "div",
    { class: "field", key: id },
    h("label", { for: id }, label),
    h("div", { class: "line" }, control, extra),
    hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null,
    problems.length ? h("p", { class: "wrong", id: `${id}-wrong`, role: "alert" }, problems.map(told).join(" ")) : null,
  );
}

/** A problem in words. */
export function told(problem) {
  return problem.fix ? `${problem.what}: ${problem.fix}` : problem.what;
}

/** The id of the field of a path. */
export function idOf(path) {
  return `f-${path.join("-").replace(/[^\w-]/g, (letter) => `_${letter.codePointAt(0).toString(16)}`)}`;
}

/** A number, or another text where `read` makes it one. */
export function numberField({
  path,
  label,
  hint,
  value,
  min,
  max,
  step = "any",
  placeholder = "",
  read = typed,
  type = "number",
  extra,
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
  return field({ id: idOf(path), label, hint, problems: refused(...path), extra }, control);
}

/** Decide what a field of a number holds; a browser gives no text where it is no number, and nothing is decided. */
export function decideNumber(path, input, read = typed) {
  if (input.validity.badInput) return refuse(path, [{ what: "this is not a number", fix: "write digits" }]);
  return decide([[path, read(input.value)]], true);
}

/** One of some choices; `none` is the choice of no key at all. */
export function choiceField({ path, label, hint, value, choices, none = null, extra }) {
  const change = (event) => decide([[path, event.target.value === "" ? null : event.target.value]], true);
  return field(
    { id: idOf(path), label, hint, problems: refused(...path), extra },
    select(choices, value, change, none),
  );
}

/** A list to choose from: choices are texts, or pairs of a value and its name. */
export function select(choices, value, change, none = null, props = {}) {
  const pairs = choices.map((choice) => (Array.isArray(choice) ? choice : [choice, choice]));
  if (value && !pairs.some(([id]) => id === value)) pairs.unshift([value, value]);
  const options = [...(none === null ? [] : [["", none]]), ...pairs].map(([id, name]) =>
    h("option", { value: id, key: id, selected: id === (value ?? "") }, name),
  );
  return h("select", { ...props, value: value ?? "", on: { change } }, options);
}

/** Problems as they are told: at the top of what they are about. */
export function problemList(problems, heading) {
  if (!problems.length) return null;
  return h(
    "div",
    { class: "warnings wrong", role: "alert" },
    h("h3", {}, heading),
    h(
      "ul",
      {},
      problems.map((problem) => h("li", {}, told(problem))),
    ),
  );
}
