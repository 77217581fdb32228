// The frame around every step: navigation, the bar of the current run, notices.

import { cancel, redo, undo } from "./actions.js";
import { h } from "./dom.js";
import { glossary, openGlossary } from "./parts/help.js";
import { tour } from "./parts/tour.js";
import { duration, share } from "./numbers.js";
import { getAddress, app, dismiss, redraw } from "./store.js";
import { getTheme, getNextTheme, applyTheme } from "./theme.js";
import { STEPS, describeStage } from "./texts.js";

const PATHS = {
  undo: ["M9 4 4 9l5 5", "M4 9h10a5 5 0 0 1 0 10h-3"],
  redo: ["m15 4 5 5-5 5", "M20 9H10a5 5 0 0 0 0 10h3"],
  help: ["M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4", "M12 17.5v.5", "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z"],
  auto: ["M12 3a9 9 0 1 0 0 18z", "M12 3a9 9 0 0 1 0 18"],
  light: [
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
    "M12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5",
  ],
  dark: ["M20 14A8.5 8.5 0 1 1 10 4a7 7 0 0 0 10 10z"],
};

const THEME_LABELS = { auto: "Colours of the system", light: "Light colours", dark: "Dark colours" };

/** Return the page around a step. */
export function shell(step) {
  return [
    h("a", { class: "skip", href: "#main", on: { click: skip } }, "Skip to the step"),
    h("header", { class: "bar" }, h("div", {}, brand(), navigation(), tools())),
    h("main", { id: "main", tabindex: "-1", key: `${app.step} ${app.discarded}` }, step, stepLinks()),
    h("div", { class: "dock" }, serverNotice(), compiling(), runBar(), tour()),
    notices(),
    glossary(),
    h("p", { class: "aside", role: "status", "aria-live": "polite" }, announcement()),
  ];
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function brand() {
  return h(
    "a",
    { class: "brand", href: getAddress("open"), title: "First step" },
    h("img", { src: "/static/icon.svg", alt: "", width: "24", height: "24" }),
    h("span", { class: "word" }, "kinfold"),
  );
}

function navigation() {
  const now = STEPS.findIndex((step) => step.id === app.step);
  const items = STEPS.map((step, index) => {
    const current = index === now;
    return h(
      "li",
      {},
      h(
        "a",
        {
          href: getAddress(step.id),
          class: index < now ? "done" : "",
          "aria-current": current ? "step" : null,
          title: `${step.name} (Alt+${index + 1})`,
        },
        h("span", { class: "aside" }, "Step "),
        h("span", { class: "index" }, index + 1),
        h("span", { class: "word" }, " ", step.name),
      ),
    );
  });
  return h("nav", { "aria-label": "Steps" }, h("ol", { class: "steps" }, items));
}

function tools() {
  const { undo: back, redo: again } = app.session;
  const theme = getTheme();
  return h(
    "div",
    { class: "tools", role: "group", "aria-label": "Undo, redo, help and colours" },
    tool("undo", back.next ? `Undo: ${back.next}` : "Nothing to undo", !back.steps, undo),
    tool("redo", again.next ? `Redo: ${again.next}` : "Nothing to redo", !again.steps, redo),
    tool("help", "Help: the glossary", false, () => openGlossary()),
    tool(
      theme,
      `${THEME_LABELS[theme]}; press to change`,
      false,
      changeTheme,
      "optional",
    ),
  );
}

function tool(icon, label, disabled, click, extra = "") {
  const paths = PATHS[icon].map((d) => h("path", { d }));
  return h(
    "button",
    { type: "button", class: `icon ${extra}`, "aria-label": label, title: label, disabled, on: { click } },
    h("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, paths),
  );
}

function changeTheme() {
  applyTheme(getNextTheme(getTheme()));
  document.dispatchEvent(new Event("theme"));
  redraw();
}

function stepLinks() {
  const now = STEPS.findIndex((step) => step.id === app.step);
  const link = (step, text) =>
    step
      ? h(
          "a",
          { href: getAddress(step.id), rel: text === "→" ? "next" : "prev" },
          text === "→" ? `${step.name} →` : `← ${step.name}`,
        )
      : h("span");
  return h(
    "nav",
    { class: "onward", "aria-label": "Previous and next step" },
    link(STEPS[now - 1], "←"),
    link(STEPS[now + 1], "→"),
  );
}

/** Return the bar of the current run. */
function runBar() {
  const active = app.session.runs.filter((run) => run.state === "running" || run.state === "queued");
  const run = active.find((known) => known.state === "running") ?? active[0];
  if (!run || app.step === "protect") return null; // that step shows the run itself
  const waiting = active.length > 1 ? ` (${active.length - 1} more waiting)` : "";
  return h(
    "div",
    { class: "run-bar", role: "region", "aria-label": "Run" },
    h(
      "div",
      {},
      h("strong", {}, run.name),
      h("span", { class: "soft" }, run.state === "queued" ? "waiting in the queue" : describeStage(run.stage), waiting),
      h("progress", { max: "1", value: run.share ?? 0, "aria-label": `Progress of ${run.name}` }),
      h("span", { class: "soft" }, timing(run)),
      h("button", { type: "button", class: "button slim danger", on: { click: () => cancel(run.id) } }, "Cancel"),
    ),
  );
}

function timing(run) {
  if (run.state === "queued") return "";
  const left = run.left === null || run.left === undefined ? "" : `, about ${duration(run.left)} left`;
  return `${share(run.share ?? 0)} after ${duration(run.seconds)}${left}`;
}

function serverNotice() {
  if (!app.ui.away) return null;
  const text = "The studio's server does not answer. Check that it still runs in its terminal.";
  return h("div", { class: "run-bar away", role: "alert" }, h("div", {}, h("strong", { class: "alarm" }, text)));
}

function compiling() {
  if (!app.session.compiling) return null;
  const text = "Compiling for this machine, once. The first run may have to wait; everything else works.";
  return h("div", { class: "run-bar", role: "status", id: "compiling" }, h("div", { class: "soft" }, text));
}

function notices() {
  const items = app.notices.map((notice) =>
    h(
      "div",
      { key: notice.id, class: `notice ${notice.wrong ? "wrong" : ""}`, role: notice.wrong ? "alert" : null },
      h("p", {}, notice.text, notice.fix ? [getJoint(notice.text), h("span", { class: "fix" }, notice.fix)] : null),
      h(
        "button",
        { type: "button", class: "icon", "aria-label": "Dismiss", on: { click: () => dismiss(notice) } },
        "×",
      ),
    ),
  );
  return h("div", { class: "notices" }, items);
}

// A problem that is a sentence ends with a full stop; otherwise a colon precedes the fix.
function getJoint(text) {
  return /[.!?]$/.test(text) ? " " : ": ";
}

function announcement() {
  const run = app.session.runs.at(-1);
  const last = app.notices.filter((notice) => !notice.wrong).at(-1);
  if (last) return last.text;
  return run && run.state !== "running" ? `${run.name}: ${run.state}` : "";
}

/** Return the page for a session that the server does not know any more. */
export function sessionEnded(problems) {
  const lines = problems.map((problem) => h("p", {}, problem.what, " ", problem.fix ?? ""));
  return h(
    "main",
    {},
    h(
      "header",
      {},
      h("p", { class: "kicker" }, "kinfold studio"),
      h("div", { class: "verdict broken" }, h("p", { class: "headline" }, "This session has ended."), lines),
    ),
  );
}
