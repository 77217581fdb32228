// The text of the policy next to the form. A typed text is checked at once; a valid one becomes the policy, and
// problems are shown at their lines.

import { h } from "../dom.js";
import { getDraft, dropDraft, sendDraft, typeDraft } from "../draft.js";
import { groupByLine, getLineRange } from "../policy_text.js";
import { describeProblem } from "./fields.js";
import { button } from "./sections.js";

/** Return the editor. */
export function policyEditor(policy) {
  const draft = getDraft();
  const text = draft?.text ?? policy.text;
  const lines = groupByLine(draft?.problems ?? []);
  return h(
    "div",
    { class: "policy" },
    h("div", { class: "paper" }, h("div", { class: "sheet" }, mirror(text, lines), area(text, lines))),
    status(draft),
    messages(draft?.problems ?? []),
  );
}

// An invisible copy of the lines: it numbers them, and gives the field its height when lines wrap.
function mirror(text, lines) {
  const items = text.split("\n").map((line, index) => {
    const wrong = lines.has(index + 1);
    const number = h("span", { class: `nth ${wrong ? "wrong" : ""}` }, wrong ? `✕ ${index + 1}` : index + 1);
    return h("div", {}, number, h("span", { class: "ghost" }, line || " "));
  });
  return h("div", { class: "mirror", "aria-hidden": "true" }, items);
}

function area(text, lines) {
  const input = (event) => typeDraft(event.target.value);
  const keydown = (event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && sendDraft();
  return h("textarea", {
    id: "policy",
    spellcheck: "false",
    autocomplete: "off",
    "aria-label": "The policy, as a text",
    "aria-invalid": lines.size ? "true" : null,
    "aria-describedby": "policy-problems",
    value: text,
    on: { input, keydown, blur: sendDraft },
  });
}

function status(draft) {
  if (!draft) return h("p", { class: "soft small" }, "Same as the form.");
  if (!draft.problems.length) return h("p", { class: "soft small" }, "Checking …");
  return h(
    "div",
    { class: "line" },
    h("p", { class: "alarm small" }, "The text is not valid. The form shows the last valid policy; runs are blocked."),
    button("Go back to it", dropDraft, { slim: true }),
  );
}

function messages(problems) {
  const jump = (line) => {
    const editor = document.getElementById("policy");
    editor.focus();
    editor.setSelectionRange(...getLineRange(editor.value, line));
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
      describeProblem(problem),
    ),
  );
  return h("div", { id: "policy-problems", role: "status" }, h("ul", { class: "plain wrongs" }, items));
}
