// The policy file beside the form, always in step: what is typed is checked at once, decided when it is right, and what
// is wrong is told at its line.

import { send } from "../api.js";
import { h } from "../dom.js";
import { byLine, rangeOf } from "../policy_text.js";
import { app, note, refresh } from "../store.js";
import { told } from "./fields.js";
import { button } from "./sections.js";

const PAUSE = 500; // milliseconds without a key, then it is checked

let timer = null;
let turn = 0;

/** The editor. */
export function policyEditor(policy) {
  const draft = app.ui.draft ?? null; // {text, problems}: typed, and not decided yet
  const text = draft?.text ?? policy.text;
  const lines = byLine(draft?.problems ?? []);
  return h(
    "div",
    { class: "policy" },
    h("div", { class: "paper" }, h("div", { class: "sheet" }, mirror(text, lines), area(text, lines))),
    status(draft),
    messages(draft?.problems ?? []),
  );
}

// The lines once more, unseen: they number the text, and make the field as high as it needs to be where lines wrap.
function mirror(text, lines) {
  const items = text.split("\n").map((line, index) => {
    const wrong = lines.has(index + 1);
    const number = h("span", { class: `nth ${wrong ? "wrong" : ""}` }, wrong ? `✕ ${index + 1}` : index + 1);
    return h("div", {}, number, h("span", { class: "ghost" }, line || " "));
  });
  return h("div", { class: "mirror", "aria-hidden": "true" }, items);
}

function area(text, lines) {
  const input = (event) => type(event.target.value);
  const keydown = (event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && settle();
  return h("textarea", {
    id: "policy",
    spellcheck: "false",
    autocomplete: "off",
    "aria-label": "The policy, as a text",
    "aria-invalid": lines.size ? "true" : null,
    "aria-describedby": "policy-problems",
    value: text,
    on: { input, keydown, blur: settle },
  });
}

function type(text) {
  note({ draft: { text, problems: app.ui.draft?.problems ?? [], waiting: true } });
  clearTimeout(timer);
  timer = setTimeout(settle, PAUSE);
}

// A text that is right is decided; one that is wrong stays as it was typed, with what is wrong.
async function settle() {
  clearTimeout(timer);
  const { draft } = app.ui;
  if (!draft?.waiting) return;
  const mine = (turn += 1);
  note({ draft: { ...draft, waiting: false } });
  let problems = [];
  try {
    await send("PUT", "/api/policy", { text: draft.text });
  } catch (error) {
    problems = error.problems ?? [{ what: String(error) }];
  }
  if (mine !== turn || app.ui.draft?.text !== draft.text) return;
  if (!problems.length) await refresh();
  note({ draft: problems.length ? { text: draft.text, problems } : null });
}

function status(draft) {
  if (!draft) return h("p", { class: "soft small" }, "In step with the form.");
  if (!draft.problems.length) return h("p", { class: "soft small" }, "Checking …");
  return h(
    "div",
    { class: "line" },
    h("p", { class: "alarm small" }, "Not decided: the form still shows the last policy that was right."),
    button("Go back to it", () => note({ draft: null }), { slim: true }),
  );
}

function messages(problems) {
  const jump = (line) => {
    const editor = document.getElementById("policy");
    editor.focus();
    editor.setSelectionRange(...rangeOf(editor.value, line));
  };
  const items = problems.map((problem) =>
    h(
      "li",
      {},
      problem.line
        ? h(
            "button",
            { type: "button", class: "link", on: { click: () => jump(problem.line) } },
            `Line ${problem.line}`,
          )
        : null,
      problem.line ? ": " : null,
      told(problem),
    ),
  );
  return h("div", { id: "policy-problems", role: "status" }, h("ul", { class: "plain wrongs" }, items));
}
