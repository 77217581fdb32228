// Elements of every step: its head, its sections, a row of numbers.

import { h } from "../dom.js";
import { STEPS } from "../texts.js";

/** Return the head of a step: its number, a title and the main sentence. */
export function stepHead(step, title, sentence = null) {
  const index = STEPS.findIndex((known) => known.id === step);
  return h(
    "header",
    {},
    h("p", { class: "kicker" }, `Step ${index + 1} of ${STEPS.length}, ${STEPS[index].name}`),
    h("h1", { tabindex: "-1", dir: "auto" }, title),
    sentence,
  );
}

/** Return the main sentence, and further ones. */
export function verdict(headline, further = [], broken = false, old = false) {
  const sentences = further.filter(Boolean).map((sentence) => h("p", {}, capitalize(keepTogether(sentence))));
  return h(
    "div",
    { class: `verdict ${broken ? "broken" : ""} ${old ? "old" : ""}`, "aria-busy": old ? "true" : null },
    h("p", { class: "headline" }, capitalize(keepTogether(headline))),
    sentences,
  );
}

// A sentence can start with 'above 99.9%'.
function capitalize(sentence) {
  return sentence.startsWith("above ") ? `A${sentence.slice(1)}` : sentence;
}

/** Return a sentence in which k = 10 is not broken across lines. */
export function keepTogether(sentence) {
  return sentence.replace(/ = /g, "\u00a0=\u00a0");
}

/** Return a section: its title and text at the side, and its content. */
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

/** Return a row of numbers: [name, number, previous number]. */
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

/** Return a notice that no table is open. */
export function nothingOpen() {
  return h("p", { class: "empty" }, "No table is open. ", h("a", { href: "#open" }, "Open one first."));
}

/** Return a notice until an answer arrives, or its problems. */
export function pending(answer) {
  if (!answer.problems.length) return h("p", { class: "soft", role: "status" }, "Computing …");
  return h(
    "p",
    { class: "alarm small" },
    answer.problems.map(({ what, fix }) => (fix ? `${what}: ${fix}` : what)).join(" "),
  );
}

/** Return a button. */
export function button(text, click, { main = false, slim = false, danger = false, ...props } = {}) {
  const classes = ["button", main ? "main" : "", slim ? "slim" : "", danger ? "danger" : ""].filter(Boolean).join(" ");
  return h("button", { type: "button", class: classes, ...props, on: { click } }, text);
}
