// Step 3: the promises, the method, the text of the policy, and the run.

import { expectCharts } from "../charts.js";
import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { problemList } from "../parts/fields.js";
import { explained, whatIs } from "../parts/help.js";
import { countOpen } from "../parts/questions.js";
import { policyEditor } from "../parts/policy_editor.js";
import { method, output } from "../parts/method_form.js";
import { people } from "../parts/people_form.js";
import { promises } from "../parts/promises.js";
import { lastRun, runButtons } from "../parts/run_view.js";
import { disclosure, stepHead, nothingOpen, section, verdict } from "../parts/sections.js";
import { namePromises } from "../promise_names.js";
import { app, query } from "../store.js";
import { joinParts } from "../texts.js";

/** Return the step. */
export function protectStep() {
  const { session } = app;
  if (session.state !== "ready") return [stepHead("protect", "Protect"), nothingOpen()];
  expectCharts(); // the next step needs them
  const check = query("/api/check");
  const all = check.value?.problems ?? [];
  // open questions have a line of their own
  const problems = all.filter((problem) => problem.key?.[0] !== "review");
  const { complete } = session.policy;
  return [
    stepHead("protect", session.source.name, sentence(session, problems, check.value), runButtons(all)),
    problemList(problems, "Problems"),
    h("div", { class: "runner", role: "region", "aria-label": "Run" }, lastRun()),
    h(
      "div",
      { class: "protect" },
      h(
        "div",
        { class: "settings" },
        section(
          "promises",
          "Promises",
          ["What will hold on the released file, and is checked on it.", whatIs("Promise")],
          promises(complete, session.columns),
          people(complete, session.columns),
        ),
        section("method", "Method", "How the classes are formed.", method(complete, session.methods)),
        disclosure("output", "Output", "how the release is written", () => output(complete)),
      ),
      h(
        "div",
        { class: "policy-side" },
        explained(h("h2", {}, "Policy"), "Policy"),
        h("p", { class: "soft small" }, "The settings of the form as a text, for the command. You can edit either."),
        policyEditor(session.policy),
      ),
    ),
  ];
}

function sentence(session, problems, known) {
  if (!known) return verdict("Checking the policy against the table …");
  if (problems.length)
    return verdict(
      `${plural(problems.length, "problem")} to solve before a run.`,
      ["They are listed below, and shown at their fields and lines."],
      true,
    );
  const open = countOpen(session);
  if (open) return verdict(`${plural(open, "question")} to answer before a run.`, [], true);
  const names = namePromises(session.policy.complete, session.columns);
  return verdict(`The release will have ${joinParts(names)}.`);
}
