// The files of a release, public and internal; and the commands that repeat it.

import { send } from "../api.js";
import { h } from "../dom.js";
import { app, attempt, updateUi, notify } from "../store.js";
import { button } from "./sections.js";

const INSIDE =
  "The internal folder compares the release with the original records, and contains the policy and the seed. " +
  "It can be used to undo part of the protection: keep it where the original is kept.";

/** Return the folders to download or save. */
export function files(run, session) {
  const base = `/api/runs/${run.id}`;
  const sure = app.ui.sure ?? false;
  return [
    h(
      "div",
      { class: "may-leave" },
      h("h3", {}, "Share"),
      h("p", { class: "soft small" }, "The release, its certificate, and a report for recipients."),
      h(
        "div",
        { class: "buttons" },
        h(
          "a",
          { class: "button", href: `${base}/public/report.html`, target: "_blank", rel: "noopener" },
          "Show the report for recipients",
        ),
      ),
      saver(run, "public", session),
    ),
    h(
      "div",
      { class: "internal", role: "group", "aria-labelledby": "must-not" },
      h("h3", { id: "must-not", class: "alarm" }, "Keep private"),
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
            on: { change: (event) => updateUi({ sure: event.target.checked }) },
          }),
          "I keep it private",
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
          "Show the internal report",
        ),
      ),
      sure ? saver(run, "internal", session) : null,
    ),
  ];
}

/** Return the main button of the step. */
export function downloadPublic(run) {
  const href = `/api/runs/${run.id}/public.zip`;
  return h("a", { class: "button main", id: "public", href, download: "public.zip" }, "Download public.zip");
}

// Save into the workspace; the name must be new.
function saver(run, part, session) {
  const key = `save ${part}`;
  const proposed = `${session.source.name.replace(/\.[^.]*$/, "")}-${part}`;
  const submit = async (event) => {
    event.preventDefault();
    const folder = event.target.elements.folder.value.trim();
    const done = await attempt(() => send("POST", `/api/runs/${run.id}/${part}/save`, { folder }));
    if (done) updateUi({ [`saved ${run.id} ${part}`]: done.path });
  };
  const at = app.ui[`saved ${run.id} ${part}`];
  return h(
    "form",
    { class: "line saver", on: { submit } },
    h("label", { for: `folder-${part}` }, "or save it as folder"),
    h("input", {
      type: "text",
      id: `folder-${part}`,
      name: "folder",
      required: true,
      autocomplete: "off",
      spellcheck: "false",
      value: app.ui[key] ?? proposed,
      on: { input: (event) => updateUi({ [key]: event.target.value }) },
    }),
    h("button", { class: `button ${part === "public" ? "" : "danger"}`, type: "submit" }, "Save"),
    h("p", { class: "soft small where", role: "status" }, at ? `Saved: ${at}` : `in ${session.workspace}`),
  );
}

/** Return the log of decisions. */
export function decisions(log) {
  const items = log.map((one) => h("li", {}, h("time", { datetime: one.at }, timeOf(one.at)), " ", one.what));
  return [
    h("ol", { class: "plain log" }, items),
    h(
      "p",
      { class: "soft small" },
      h("a", { href: "/api/project", download: "" }, "Save the project"),
      ": the policy, with the log of decisions.",
    ),
  ];
}

function timeOf(text) {
  const at = new Date(text);
  return Number.isNaN(at.valueOf()) ? text : at.toLocaleTimeString("en", { hour12: false });
}

/** Return the command and the Python code that repeat the run. */
export function repeatLines(run, lines) {
  return [
    h("h3", {}, "Command"),
    copyable("command", lines.command),
    h(
      "p",
      { class: "soft small" },
      "with ",
      h("a", { href: `/api/runs/${run.id}/policy.toml`, download: "policy.toml" }, "policy.toml"),
      " of this run",
    ),
    h("h3", { class: "part" }, "Python"),
    copyable("python", lines.python),
  ];
}

function copyable(id, text) {
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(
      () => notify("Copied."),
      () => mark(id),
    );
  };
  return h(
    "div",
    { class: "copy" },
    h("pre", { id: `lines-${id}`, tabindex: "0", "aria-label": id === "command" ? "Command" : "Python code" }, text),
    button("Copy", copy, { slim: true, "aria-label": `Copy the ${id === "command" ? "command" : "Python code"}` }),
  );
}

// If the browser does not allow a page to copy, select the lines.
function mark(id) {
  getSelection().selectAllChildren(document.getElementById(`lines-${id}`));
}
