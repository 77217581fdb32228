// Step 3: what is promised, how it is made, the policy beside it, and the run.

import { expectCharts } from "../charts.js";
import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { problemList } from "../parts/fields.js";
import { policyEditor } from "../parts/policy_editor.js";
import { method, output } from "../parts/method_form.js";
import { promises, wordsOf } from "../parts/promises.js";
import { runner } from "../parts/run_view.js";
import { head, nothingOpen, section, verdict } from "../parts/sections.js";
import { app, look } from "../store.js";

/** The step as it stands. */
export function protectStep() {
  const { session } = app;
  if (session.state !== "ready") return [head("protect", "Protect"), nothingOpen()];
  expectCharts(); // they are wanted next
  const check = look("/api/check");
  const problems = check.value?.problems ?? [];
  const { complete } = session.policy;
  return [
    head("protect", session.source.name, sentence(complete, problems, check.value)),
    problemList(problems, "This stands in the way"),
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
          "What will hold on the file that leaves, and is checked on it.",
          promises(complete, session.columns),
        ),
        section("method", "Method", "How the classes are made.", method(complete, session.methods)),
        section("output", "Output", "How the release is written.", output(complete)),
      ),
      h(
        "div",
        { class: "beside" },
        h("h2", {}, "Policy"),
        h("p", { class: "soft small" }, "The same as the form, as the command reads it. Edit either."),
        policyEditor(session.policy),
      ),
    ),
  ];
}

function sentence(complete, problems, known) {
  if (!known) return verdict("Checking the policy against the table …");
  if (problems.length)
    return verdict(
      `${plural(problems.length, "thing")} to settle before it can run.`,
      ["They are listed below, and told at their fields and lines."],
      true,
    );
  const words = wordsOf();
  const who = complete.privacy.unit ? "people" : "records";
  return verdict(
    words.sentence ?? `At least ${complete.privacy.k} ${who} will share every combination of quasi-identifiers.`,
    words.further ?? [],
  );
}
