// A run as it goes: how far, how long, and the loss as it falls.

import { cancel, run } from "../actions.js";
import { h } from "../dom.js";
import { differences, dropDraft } from "../draft.js";
import { fallingLine } from "../falling_line.js";
import { duration, share } from "../numbers.js";
import { addressOf, app, discardRefused, look, note } from "../store.js";
import { STATES, stageTold } from "../words.js";
import { told } from "./fields.js";
import { button } from "./sections.js";

/** The buttons that begin runs, and the last run. */
export function runner(problems) {
  const { runs } = app.session;
  const last = runs.at(-1);
  const different = differences();
  const off = problems.length > 0 || different.length > 0;
  return [
    h(
      "div",
      { class: "buttons" },
      button("Run", () => run(), { main: true, id: "run", disabled: off, "aria-describedby": "run-off" }),
      tries(off),
    ),
    different.length ? isOff(different) : null,
    last
      ? runView(last)
      : h(
          "p",
          { class: "soft" },
          "Nothing was run yet. A run goes on if this page is closed, and is here when it comes back.",
        ),
  ];
}

// The page shows something that is not the policy.
function isOff(different) {
  const discard = () => {
    discardRefused();
    return dropDraft();
  };
  return h(
    "div",
    { class: "line", id: "run-off", role: "status" },
    h("p", { class: "alarm small" }, `Run is off: ${different.join("; ")}.`),
    button("Go back to the last valid policy", discard, { slim: true }),
  );
}

// Other values of k, tried and not decided: points for the map.
function tries(off) {
  const text = app.ui.tries ?? "3, 10, 20";
  const submit = async (event) => {
    event.preventDefault();
    const wanted = event.target.elements.tries.value;
    const values = wanted.split(",").map(Number);
    await Promise.all(values.filter((k) => Number.isInteger(k) && k > 1).map((k) => run({ "privacy.k": k })));
  };
  return h(
    "form",
    { class: "line tries", on: { submit } },
    h("label", { for: "tries" }, "Try also k ="),
    h("input", {
      type: "text",
      id: "tries",
      size: "10",
      autocomplete: "off",
      value: text,
      on: { input: (event) => note({ tries: event.target.value }) },
    }),
    h("button", { class: "button", type: "submit", disabled: off }, "Try"),
  );
}

/** One run. */
export function runView(one) {
  const going = one.state === "running" || one.state === "queued";
  return h(
    "div",
    { class: "run", key: one.id },
    h("p", { class: "name" }, one.name, " ", h("span", { class: `state state-${one.state}` }, STATES[one.state])),
    going ? progressOf(one) : outcomeOf(one),
    lossCurve(one),
  );
}

function progressOf(one) {
  const left = one.left === null || one.left === undefined ? "" : `, about ${duration(one.left)} left`;
  const stage = one.state === "queued" ? `waiting: ${one.queued ?? 0} before it` : stageTold(one.stage);
  return [
    h("progress", { class: "wide", max: "1", value: one.share ?? 0, "aria-label": `How far ${one.name} is` }),
    h("p", { class: "soft small" }, `${stage}; ${share(one.share ?? 0)} after ${duration(one.seconds)}${left}`),
    button("Cancel", () => cancel(one.id), { slim: true, danger: true }),
  ];
}

function outcomeOf(one) {
  if (one.state === "failed")
    return h(
      "ul",
      { class: "plain wrongs" },
      one.problems.map((problem) => h("li", { class: "alarm" }, told(problem))),
    );
  if (one.state !== "done")
    return h("p", { class: "soft small" }, `After ${duration(one.seconds)}. Nothing was kept of it.`);
  const { summary } = one;
  return [
    h("p", {}, summary.headline),
    h(
      "p",
      { class: "soft small" },
      `${share(summary.loss)} of the information lost; ${duration(one.seconds)}. `,
      h("a", { href: addressOf("explore", one.id) }, "Look at it"),
      " or ",
      h("a", { href: addressOf("release", one.id) }, "release it"),
      ".",
    ),
  ];
}

/** The curve of the loss over time, with its bound where that was proved; nothing where nothing was refined. */
export function lossCurve(one) {
  const going = one.state === "running";
  const known = look(`/api/runs/${one.id}${going ? "?now" : ""}`, true).value; // what was before this page listened
  const heard = app.heard[one.id] ?? [];
  const began = heard[0]?.[0] ?? Infinity;
  const curve = going
    ? [...(known?.curve ?? []).filter(([seconds]) => seconds < began), ...heard]
    : (known?.curve ?? []);
  return curve.length > 1 ? drawn(one, curve, known?.bound ?? null) : null;
}

function drawn(one, curve, bound) {
  const [zero, first] = curve[0]; // the search begins there: what was before is reading, or compiling
  const [end, last] = curve.at(-1);
  const least = bound ? `; no classes can reach below ${share(bound)}` : "";
  const label = `Loss fell to ${share(last / first)} of that of the first classes in ${duration(end - zero)}${least}`;
  const points = curve.map(([seconds, loss]) => [seconds - zero, loss]);
  return h(
    "figure",
    { class: "curve", key: `curve ${one.id}` },
    h("figcaption", { class: "small" }, label),
    fallingLine(points, bound, label),
  );
}
