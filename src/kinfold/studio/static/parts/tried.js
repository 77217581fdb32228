// Sliders over what was tried: each value of k, l and t that at least one run has shows the best run with it.

import { h } from "../dom.js";
import { digits, share } from "../numbers.js";
import { getAddress } from "../store.js";

const LEVELS = ["k", "l", "t"];
const ALIKE = [...LEVELS, "method", "refine", "suppression"];

/** Return the values of k, l and t that runs have, ascending; a level with one value is left out. */
export function listTried(runs) {
  const pairs = LEVELS.map((key) => {
    const values = new Set(runs.map((run) => run.asked[key]).filter((value) => value !== null && value !== undefined));
    return [key, [...values].sort((one, other) => one - other)];
  });
  return Object.fromEntries(pairs.filter(([, values]) => values.length > 1));
}

/** Return the run with this value that is most like the one that is shown; of several the one with the least loss. */
export function findRun(runs, shown, key, value) {
  const alike = (run) => ALIKE.filter((other) => other !== key && run.asked[other] === shown.asked[other]).length;
  return runs
    .filter((run) => run.asked[key] === value)
    .sort((one, other) => alike(other) - alike(one) || one.summary.loss - other.summary.loss)[0];
}

/** Return the sliders; null if no level has two values. */
export function sliders(runs, shown) {
  const done = runs.filter((run) => run.state === "done" && !run.stale);
  const tried = Object.entries(listTried(done));
  if (!tried.length || !shown) return null;
  return h(
    "div",
    { class: "sliders", role: "group", "aria-label": "Values that were tried" },
    tried.map(([key, values]) => slider(key, values, done, shown)),
  );
}

function slider(key, values, runs, shown) {
  const index = values.indexOf(shown.asked[key]);
  const text = index < 0 ? "not required" : `${digits(values[index])}`;
  const { loss, risk } = shown.summary;
  const change = (event) => {
    const run = findRun(runs, shown, key, values[Number(event.target.value)]);
    location.replace(getAddress("explore", run.id)); // no entry of its own in the history for each value
  };
  return h(
    "div",
    { key, class: "line" },
    h("label", { for: `tried-${key}` }, `${key} tried`),
    h("input", {
      type: "range",
      id: `tried-${key}`,
      min: "0",
      max: String(values.length - 1),
      step: "1",
      value: String(Math.max(index, 0)),
      "aria-valuetext": `${key} ${text}, loss ${share(loss)}, risk ${share(risk)}`,
      on: { input: change },
    }),
    h("output", { for: `tried-${key}` }, h("strong", {}, text)),
  );
}
