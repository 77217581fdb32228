// A run: its progress, and the curve of its loss.

import { cancel, run } from "../actions.js";
import { h } from "../dom.js";
import { listDifferences, dropDraft } from "../draft.js";
import { drawCurve } from "../loss_curve.js";
import { count, duration, plural, share } from "../numbers.js";
import { getAddress, app, discardProblems, query, updateUi } from "../store.js";
import { STATES, describeStage } from "../texts.js";
import { describeProblem, select } from "./fields.js";
import { countOpen } from "./questions.js";
import { button } from "./sections.js";

/** Return the buttons that start runs. */
export function runButtons(problems) {
  const off = problems.length > 0 || listDifferences().length > 0 || countOpen(app.session) > 0;
  return [
    tries(off),
    button("Run", () => run(), { main: true, id: "run", disabled: off, "aria-describedby": "run-off" }),
  ];
}

/** Return why runs are off, and the last run. */
export function lastRun() {
  const last = app.session.runs.at(-1);
  const different = listDifferences();
  const open = countOpen(app.session);
  return [different.length ? isOff(different) : open ? waits(open) : null, last ? runView(last) : null];
}

// The page differs from the policy.
function isOff(different) {
  const discard = () => {
    discardProblems();
    return dropDraft();
  };
  return h(
    "div",
    { class: "line", id: "run-off", role: "status" },
    h("p", { class: "alarm small" }, `No run can be started: ${different.join("; ")}.`),
    button("Go back to the last valid policy", discard, { slim: true }),
  );
}

// Only the data holder can answer the questions.
function waits(open) {
  return h(
    "p",
    { class: "alarm small", id: "run-off", role: "status" },
    `Runs are off: ${plural(open, "question is", "questions are")} open. `,
    h("a", { href: getAddress("open") }, "Answer in step 1, Open"),
    ".",
  );
}

const PROPOSED = { k: "3, 10, 20", l: "2, 3, 4", t: "0.1, 0.2, 0.3" };

// Runs with other values of k, l or t, which do not change the policy: more points for the map.
function tries(off) {
  const protects = app.session.columns.some((column) => column.role === "confidential");
  const key = protects ? (app.ui.tryKey ?? "k") : "k";
  const text = app.ui.tries ?? PROPOSED[key];
  const { values, wrong } = parseTries(text, app.session.source.rows, key);
  const submit = async (event) => {
    event.preventDefault();
    await Promise.all(values.map((value) => run({ [`privacy.${key}`]: value })));
  };
  const choose = (event) => updateUi({ tryKey: event.target.value, tries: null });
  return h(
    "form",
    { class: "line tries", on: { submit } },
    h("label", { for: "tries" }, "Also try"),
    select(protects ? Object.keys(PROPOSED) : ["k"], key, choose, null, { "aria-label": "Promise to try" }),
    h("input", {
      type: "text",
      id: "tries",
      size: "10",
      autocomplete: "off",
      value: text,
      "aria-invalid": wrong ? "true" : null,
      "aria-describedby": wrong ? "tries-wrong" : null,
      on: { input: (event) => updateUi({ tries: event.target.value }) },
    }),
    h("button", { class: "button", type: "submit", disabled: off || Boolean(wrong) }, "Try"),
    wrong ? h("p", { class: "alarm small", id: "tries-wrong", role: "alert" }, wrong) : null,
  );
}

/** Return the values of k, l or t in a text, and what is wrong with it. */
export function parseTries(text, records, key = "k") {
  const values = text
    .split(",")
    .filter((part) => part.trim())
    .map(Number);
  const fits = key === "t" ? (t) => t > 0 && t <= 1 : (level) => Number.isInteger(level) && level >= 2;
  if (!values.length || !values.every(fits)) {
    const what = key === "t" ? "numbers above 0, up to 1" : "whole numbers from 2";
    return { values: [], wrong: `Write ${what}, such as ${PROPOSED[key]}.` };
  }
  const large = values.find((level) => level > records);
  return large
    ? { values: [], wrong: `${count(large)} is more than the ${plural(records, "record")}.` }
    : { values, wrong: "" };
}

function runView(one) {
  const active = one.state === "running" || one.state === "queued";
  return h(
    "div",
    { class: "run", key: one.id },
    h("p", { class: "name" }, one.name, " ", h("span", { class: `state state-${one.state}` }, STATES[one.state])),
    active ? progressOf(one) : outcomeOf(one),
    lossCurve(one),
  );
}

function progressOf(one) {
  const left = one.left === null || one.left === undefined ? "" : `, about ${duration(one.left)} left`;
  const stage = one.state === "queued" ? `waiting: ${one.queued ?? 0} ahead` : describeStage(one.stage);
  return [
    h("progress", { class: "wide", max: "1", value: one.share ?? 0, "aria-label": `Progress of ${one.name}` }),
    h("p", { class: "soft small" }, `${stage}; ${share(one.share ?? 0)} after ${duration(one.seconds)}${left}`),
    button("Cancel", () => cancel(one.id), { slim: true, danger: true }),
  ];
}

function outcomeOf(one) {
  if (one.state === "failed")
    return h(
      "ul",
      { class: "plain wrongs" },
      one.problems.map((problem) => h("li", { class: "alarm" }, describeProblem(problem))),
    );
  if (one.state !== "done")
    return h("p", { class: "soft small" }, `After ${duration(one.seconds)}. Nothing of it was kept.`);
  const { summary } = one;
  return [
    h("p", {}, summary.headline),
    h(
      "p",
      { class: "soft small" },
      `${share(summary.loss)} of the information lost; ${duration(one.seconds)}. `,
      h("a", { href: getAddress("explore", one.id) }, "Show it"),
      " or ",
      h("a", { href: getAddress("release", one.id) }, "release it"),
      ".",
    ),
  ];
}

/** Return the curve of the loss over time, with its bound if it was proved; null without refinement. */
export function lossCurve(one) {
  const active = one.state === "running";
  const known = query(`/api/runs/${one.id}${active ? "?now" : ""}`, true).value; // the part before this page was opened
  const points = app.curves[one.id] ?? [];
  const began = points[0]?.[0] ?? Infinity;
  const curve = active
    ? [...(known?.curve ?? []).filter(([seconds]) => seconds < began), ...points]
    : (known?.curve ?? []);
  return curve.length > 1 ? drawn(one, curve, known?.bound ?? null) : null;
}

function drawn(one, curve, bound) {
  const [zero, first] = curve[0]; // the search starts here, after reading and compiling
  const [end, last] = curve.at(-1);
  const least = bound ? `; no classes reach less than ${share(bound)}` : "";
  const label = `The loss fell to ${share(last / first)} of its first value in ${duration(end - zero)}${least}`;
  const points = curve.map(([seconds, loss]) => [seconds - zero, loss]);
  return h(
    "figure",
    { class: "curve", key: `curve ${one.id}` },
    h("figcaption", { class: "small" }, label),
    drawCurve(points, bound, label),
  );
}
