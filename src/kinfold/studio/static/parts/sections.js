// Elements of every step: its head, its sections, tabs, a row of numbers.

import { h } from "../dom.js";
import { app, updateUi } from "../store.js";
import { STEPS } from "../texts.js";

/** Return the head of a step: its number, a title, the main sentence, and the main buttons of the step.
 *  The sentence is small once the step was visited. */
export function stepHead(step, title, sentence = null, actions = null) {
  const index = STEPS.findIndex((known) => known.id === step);
  return h(
    "header",
    { class: app.visited.has(step) ? "step-head seen" : "step-head" },
    h(
      "div",
      { class: "title" },
      h("h1", { tabindex: "-1", dir: "auto" }, title),
      h("p", { class: "kicker" }, `Step ${index + 1} of ${STEPS.length}, ${STEPS[index].name}`),
    ),
    actions ? h("div", { class: "buttons actions" }, actions) : null,
    sentence,
  );
}

/** Return the main sentence, and further ones. */
export function verdict(headline, further = [], broken = false, old = false) {
  const sentences = further.filter(Boolean).map((sentence) => capitalize(keepTogether(sentence)));
  return h(
    "div",
    { class: `verdict ${broken ? "broken" : ""} ${old ? "old" : ""}`, "aria-busy": old ? "true" : null },
    h("p", { class: "headline" }, capitalize(keepTogether(headline))),
    sentences.length ? h("p", { class: "further" }, sentences.join(" ")) : null,
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

/** Return a section: its title, a line on what it shows, and its content. */
export function section(id, title, side, ...matter) {
  const parts = (Array.isArray(side) ? side : [side]).filter(Boolean);
  const isText = (part) => typeof part === "string" || part.tag === "button"; // a text, and what explains its term
  const words = [parts.some(isText) ? h("p", {}, parts.filter(isText)) : null, parts.filter((part) => !isText(part))];
  return h(
    "section",
    { key: id, "aria-labelledby": `s-${id}` },
    h("div", { class: "side" }, h("h2", { id: `s-${id}` }, title), words),
    h("div", { class: "matter" }, matter),
  );
}

/** Return a section that is closed until somebody opens it; `key` saves that. Its content is made when it is open. */
export function disclosure(id, title, hint, make, open = false) {
  const key = `open ${id}`;
  const isOpen = app.ui[key] ?? open;
  return h(
    "details",
    { key: id, id: `d-${id}`, class: "part", open: isOpen, on: { toggle: (event) => follow(key, event) } },
    h("summary", {}, title, hint ? h("span", { class: "soft small" }, " ", hint) : null),
    isOpen ? h("div", { class: "matter" }, make()) : null,
  );
}

function follow(key, event) {
  const { open } = event.currentTarget;
  if ((app.ui[key] ?? null) !== open) updateUi({ [key]: open });
}

/** Return tabs, and the content of the one that is selected. Tabs are [id, title, function]. */
export function tabs(name, label, items) {
  const key = `tab ${name}`;
  const chosen = items.find(([id]) => id === app.ui[key]) ?? items[0];
  const steer = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = items[(items.indexOf(chosen) + by + items.length) % items.length];
    updateUi({ [key]: next[0] });
    document.getElementById(`tab-${name}-${next[0]}`)?.focus();
    event.preventDefault();
  };
  const buttons = items.map((item) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        key: item[0],
        id: `tab-${name}-${item[0]}`,
        "aria-selected": String(item === chosen),
        "aria-controls": `panel-${name}`,
        tabindex: item === chosen ? "0" : "-1",
        on: { click: () => updateUi({ [key]: item[0] }), keydown: steer },
      },
      item[1],
    ),
  );
  return [
    h("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons),
    h(
      "div",
      { role: "tabpanel", id: `panel-${name}`, key: chosen[0], "aria-labelledby": `tab-${name}-${chosen[0]}` },
      h("h2", { class: "aside" }, chosen[1]),
      chosen[2](),
    ),
  ];
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

/** Return a link to a step that looks like its main button. */
export function nextStep(step, text) {
  return h("a", { class: "button main", href: `#${step}` }, text);
}
