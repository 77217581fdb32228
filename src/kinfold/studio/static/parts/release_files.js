// The files of a release, what may leave and what must not apart; and the lines that make it again.

import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { app, note, tell } from "../store.js";
import { button } from "./sections.js";

const INSIDE =
  "The internal folder compares with the original records, and holds the policy and the seed. " +
  "Whoever has it can undo part of the protection: keep it where the original is kept.";

/** The folders, to be downloaded. */
export function files(run, session) {
  const base = `/api/runs/${run.id}`;
  const sure = app.ui.sure ?? false;
  return [
    h(
      "div",
      { class: "may-leave" },
      h("h3", {}, "May leave"),
      h("p", { class: "soft small" }, "The release, its certificate, and a report for those who get it."),
      h(
        "div",
        { class: "buttons" },
        h(
          "a",
          { class: "button main", id: "public", href: `${base}/public.zip`, download: "public.zip" },
          "Download public.zip",
        ),
        h(
          "a",
          { class: "button", href: `${base}/public/report.html`, target: "_blank", rel: "noopener" },
          "See its report",
        ),
      ),
    ),
    h(
      "div",
      { class: "internal", role: "group", "aria-labelledby": "must-not" },
      h("h3", { id: "must-not", class: "alarm" }, "Must not leave"),
      h("p", { class: "small" }, INSIDE),
      h(
        "div",
        { class: "buttons" },
        h(
          "label",
          { class: "tick" },
          h("input", {
            type: "checkbox",
            checked: sure,
            on: { change: (event) => note({ sure: event.target.checked }) },
          }),
          "It stays inside",
        ),
        sure
          ? h(
              "a",
              { class: "button danger", id: "internal", href: `${base}/internal.zip`, download: "internal.zip" },
              "Download internal.zip",
            )
          : h("button", { type: "button", class: "button", disabled: true }, "Download internal.zip"),
        h(
          "a",
          { class: "button", href: `${base}/internal/report.html`, target: "_blank", rel: "noopener" },
          "See its report",
        ),
      ),
    ),
    decisions(session.log ?? []),
    h(
      "p",
      { class: "soft small" },
      h("a", { href: "/api/project", download: "" }, "Save the project"),
      ": the policy, with the log of decisions.",
    ),
  ];
}

function decisions(log) {
  const items = log.map((one) => h("li", {}, h("time", { datetime: one.at }, timeOf(one.at)), " ", one.what));
  return h(
    "details",
    {},
    h("summary", {}, `${plural(log.length, "decision")} in this session`),
    h("ol", { class: "plain log" }, items),
  );
}

function timeOf(text) {
  const at = new Date(text);
  return Number.isNaN(at.valueOf()) ? text : at.toLocaleTimeString("en", { hour12: false });
}

/** The command and the lines of Python that do the same. */
export function again(run, lines) {
  return [
    h("h3", {}, "One command"),
    copyable("command", lines.command),
    h(
      "p",
      { class: "soft small" },
      "with ",
      h("a", { href: `/api/runs/${run.id}/policy.toml`, download: "policy.toml" }, "policy.toml"),
      " of this run",
    ),
    h("h3", { class: "part" }, "The same from Python"),
    copyable("python", lines.python),
  ];
}

function copyable(id, text) {
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(
      () => tell("Copied."),
      () => mark(id),
    );
  };
  return h(
    "div",
    { class: "copy" },
    h(
      "pre",
      { id: `lines-${id}`, tabindex: "0", "aria-label": id === "command" ? "The command" : "The Python lines" },
      text,
    ),
    button("Copy", copy, { slim: true, "aria-label": `Copy the ${id === "command" ? "command" : "Python lines"}` }),
  );
}

// Where the browser does not let a page copy, the lines are marked, ready for the key.
function mark(id) {
  getSelection().selectAllChildren(document.getElementById(`lines-${id}`));
}
