// The forms that every step shares: its head, its sections, a strip of numbers.

import { h } from "../dom.js";
import { STEPS } from "../words.js";

/** The head of a step: where we are, what about, and the one sentence that matters. */
export function head(step, title, sentence = null) {
  const index = STEPS.findIndex((known) => known.id === step);
  return h(
    "header",
    {},
    h("p", { class: "kicker" }, `Step ${index + 1} of ${STEPS.length}, ${STEPS[index].name}`),
    h("h1", { tabindex: "-1", dir: "auto" }, title),
    sentence,
  );
}

/** The sentence that matters, and some that go with it. */
export function verdict(headline, further = [], broken = false, old = false) {
  const sentences = further.filter(Boolean).map((sentence) => h("p", {}, begun(together(sentence))));
  return h(
    "div",
    { class: `verdict ${broken ? "broken" : ""} ${old ? "old" : ""}`, "aria-busy": old ? "true" : null },
    h("p", { class: "headline" }, begun(together(headline))),
    sentences,
  );
}

// A sentence may begin with a number in words.
function begun(sentence) {
  return sentence.startsWith("above ") ? `A${sentence.slice(1)}` : sentence;
}

/** A sentence in which a letter, its sign and its number stay on one line: k = 10. */
export function together(sentence) {
  return sentence.replace(/ = /g, "\u00a0=\u00a0");
}

/** A section: its name and what it is at the side, its matter beside it. */
export function section(id, title, side, ...matter) {
  const words = (Array.isArray(side) ? side : [side])
    .filter(Boolean)
    .map((part) => (typeof part === "string" ? h("p", {}, part) : part));
  return h(
    "section",
    { key: id, "aria-labelledby": `s-${id}` },
    h("div", { class: "side" }, h("h2", { id: `s-${id}` }, title), words),
    h("div", { class: "matter" }, matter),
  );
}

/** A strip of numbers: [name, number, what it was before]. */
export function numbers(pairs) {
  const items = pairs
    .filter(Boolean)
    .map(([name, number, was]) =>
      h(
        "div",
        { key: name },
        h("dt", {}, name),
        h("dd", {}, number, was ? h("span", { class: "was" }, ` ${was}`) : null),
      ),
    );
  return h("dl", { class: "numbers" }, items);
}

/** What is shown where there is no table yet. */
export function nothingOpen() {
  return h("p", { class: "empty" }, "No table is open. ", h("a", { href: "#open" }, "Open one first."));
}

/** What is shown until an answer is there, or why there is none. */
export function pending(found) {
  if (!found.problems.length) return h("p", { class: "soft", role: "status" }, "Working it out …");
  return h(
    "p",
    { class: "alarm small" },
    found.problems.map(({ what, fix }) => (fix ? `${what}: ${fix}` : what)).join(" "),
  );
}

/** A button. */
export function button(text, click, { main = false, slim = false, danger = false, ...props } = {}) {
  const classes = ["button", main ? "main" : "", slim ? "slim" : "", danger ? "danger" : ""].filter(Boolean).join(" ");
  return h("button", { type: "button", class: classes, ...props, on: { click } }, text);
}
