// The tour: a sentence or two on each of the five steps. It follows the step that is shown, until it is left.

import { h } from "../dom.js";
import { app, go, updateUi } from "../store.js";
import { STEPS } from "../texts.js";
import { button } from "./sections.js";

export const TOUR = {
  open: [
    "Check the roles",
    "Each row is a column of the table, with a proposed role. Choose another role in its list, or press its letter. " +
      "The sentence at the top says how many records are unique.",
  ],
  generalize: [
    "Make values coarser",
    "Choose a column at the left. Its hierarchy says what a value becomes, level by level: an age becomes an interval.",
  ],
  protect: [
    "Promise, then run",
    "With k = 5, each record shares its quasi-identifiers with at least four others. Press Run; the page shows the " +
      "progress.",
  ],
  explore: [
    "Look at the release",
    "Rows shows each record before and after. Try other values of k in step 3: the map shows what each costs.",
  ],
  release: [
    "Share one folder, keep the other",
    "Two checkers have tested every promise on the file. Share public.zip. The internal folder stays with you.",
  ],
};

/** Start the tour at its first step. */
export function startTour() {
  updateUi({ tour: true });
  go(STEPS[0].id);
}

/** Return the tour at the step that is shown, if it was started. */
export function tour() {
  if (!app.ui.tour || app.session.state !== "ready") return null;
  const index = STEPS.findIndex((step) => step.id === app.step);
  const next = STEPS[index + 1];
  const [title, text] = TOUR[app.step];
  const leave = () => updateUi({ tour: false });
  return h(
    "div",
    { class: "run-bar tour", key: "tour", role: "region", "aria-label": "Tour" },
    h(
      "div",
      {},
      h("p", { role: "status" }, h("strong", {}, `Tour, ${index + 1} of ${STEPS.length}: ${title}.`), ` ${text}`),
      h(
        "div",
        { class: "buttons" },
        next ? button(`Next: ${next.name}`, () => go(next.id), { slim: true }) : null,
        button(next ? "Leave the tour" : "End the tour", leave, { slim: true }),
      ),
    ),
  );
}
