// Step 3: the promises, the method, the text of the policy, and the run.

import { expectCharts } from "../charts.js";
import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { problemList } from "../parts/fields.js";
import { policyEditor } from "../parts/policy_editor.js";
import { method, output } from "../parts/method_form.js";
import { promises } from "../parts/promises.js";
import { runner } from "../parts/run_view.js";
import { stepHead, nothingOpen, section, verdict } from "../parts/sections.js";
import { app, query } from "../store.js";

/** Return the step. */
export function protectStep() {
  const { session } = app;
  if (session.state !== "ready") return [stepHead("protect", "Protect"), nothingOpen()];
  expectCharts(); // the next step needs them
  const check = query("/api/check");
  const problems = check.value?.problems ?? [];
  const { complete } = session.policy;
  return [
    stepHead("protect", session.source.name, sentence(complete, problems, check.value)),
    problemList(problems, "Problems"),
    h("div", { class: "runner", role: "region", "aria-label": "Run" }, runner(problems)),
    h(
      "div",
      { class: "protect" },
      h(
        "div",
        { class: "settings" },
        section(
          "promises",
          "Promises",
          "What will hold on the released file, and is checked on it.",
          promises(complete, session.columns),
        ),
        section("method", "Method", "How the classes are formed.", method(complete, session.methods)),
        section("output", "Output", "How the release is written.", output(complete)),
      ),
      h(
        "div",
        { class: "policy-side" },
        h("h2", {}, "Policy"),
        h("p", { class: "soft small" }, "The settings of the form as a text, for the command. You can edit either."),
        policyEditor(session.policy),
      ),
    ),
  ];
}

function sentence(complete, problems, known) {
  if (!known) return verdict("Checking the policy against the table …");
  if (problems.length)
    return verdict(
      `${plural(problems.length, "problem")} to solve before a run.`,
      ["They are listed below, and shown at their fields and lines."],
      true,
    );
  const units = complete.privacy.unit ? "people" : "records";
  return verdict(`At least ${complete.privacy.k} ${units} will share every combination of quasi-identifiers.`);
}
