// Help: what a term means, from the glossary of the documentation. A small button next to a term opens it there.

import { h } from "../dom.js";
import { app, query, updateUi } from "../store.js";
import { button } from "./sections.js";
import { startTour } from "./tour.js";

/** Return the button that explains a term of the glossary. */
export function whatIs(term) {
  const label = `What is this? ${term}`;
  const click = (event) => {
    event.preventDefault(); // in the head of a part that opens and closes
    openGlossary(term);
  };
  return h("button", { type: "button", class: "what", "aria-label": label, title: label, on: { click } }, "?");
}

/** Return a heading with the button that explains its term, which is no part of its name. */
export function explained(heading, term) {
  return h("div", { class: "explained" }, heading, whatIs(term));
}

/** Open the glossary, at a term or at its start. */
export function openGlossary(term = "") {
  updateUi({ glossary: { term, typed: "" } });
}

/** Return the entries that a text is in; the chosen term first, then terms that start with the text. */
export function findEntries(entries, typed, chosen = "") {
  const wanted = typed.trim().toLowerCase();
  const rank = ({ term }) => {
    if (!wanted) return term === chosen ? 0 : 1;
    return term.toLowerCase().startsWith(wanted) ? 0 : 1;
  };
  return entries
    .filter(({ term, text }) => `${term} ${text}`.toLowerCase().includes(wanted))
    .sort((one, other) => rank(one) - rank(other));
}

/** Return the glossary, if it is open. */
export function glossary() {
  const open = app.ui.glossary;
  if (!open) return null;
  const entries = query("/static/glossary.json", true).value ?? [];
  const found = findEntries(entries, open.typed, open.term);
  const close = (event) => event.currentTarget.closest("dialog").close(); // the focus returns to where it was
  return h(
    "dialog",
    {
      class: "glossary",
      key: "glossary",
      "aria-labelledby": "glossary-title",
      hook: { mount: (node) => node.showModal() },
      on: { close: () => updateUi({ glossary: null }) },
    },
    h(
      "div",
      { class: "glossary-head" },
      h("h2", { id: "glossary-title", tabindex: "-1", autofocus: true }, "Glossary"),
      button("Close", close, { slim: true }),
    ),
    h(
      "div",
      { class: "line toolbar" },
      h("input", {
        type: "text", // in a field of type search, Escape clears the field and leaves the glossary open
        class: "slim",
        placeholder: "Find a term",
        "aria-label": "Find a term",
        value: open.typed,
        on: { input: (event) => updateUi({ glossary: { ...open, typed: event.target.value } }) },
      }),
      h("span", { class: "soft small", role: "status" }, found.length ? "" : "No term matches."),
    ),
    h(
      "dl",
      { class: "terms", tabindex: "0", "aria-label": "Terms" },
      found.map(({ term, text }) =>
        h(
          "div",
          { key: term, class: term === open.term && !open.typed ? "chosen" : "" },
          h("dt", {}, term),
          h("dd", {}, text),
        ),
      ),
    ),
    app.session.state === "ready" && !app.ui.tour
      ? h(
          "p",
          { class: "small" },
          button("Take the tour of five steps", (event) => (close(event), startTour()), { slim: true }),
        )
      : null,
  );
}
