// Step 5: the verdict on the release, what is not promised, the files, and how to repeat it.

import { startJob, getJob } from "../actions.js";
import { send } from "../api.js";
import { h } from "../dom.js";
import { digits } from "../numbers.js";
import { select } from "../parts/fields.js";
import { explained, whatIs } from "../parts/help.js";
import { decisions, downloadPublic, repeatLines, files } from "../parts/release_files.js";
import { getSelectedRuns, unknownRun } from "../parts/run_table.js";
import { button, disclosure, nextStep, stepHead, nothingOpen, section, verdict } from "../parts/sections.js";
import { app, go, query } from "../store.js";

const CHECKERS = {
  engine: "the engine, which groups the written file again",
  plain: "plain Python, which shares no code with the engine",
};

/** Return the step. */
export function releaseStep() {
  const { session } = app;
  if (session.state !== "ready") return [stepHead("release", "Release"), nothingOpen()];
  const { shown: run } = getSelectedRuns();
  if (!run)
    return [
      stepHead(
        "release",
        session.source.name,
        verdict("Nothing to release yet.", ["A finished run can be released."]),
        nextStep("protect", "Run the policy first"),
      ),
    ];
  const answer = query(`/api/runs/${run.id}/verdict`, true);
  const facts = answer.value;
  if (!facts) return [stepHead("release", session.source.name, verdict("Reading the verdict …"))];
  return [
    stepHead("release", session.source.name, verdict(facts.headline, facts.further, !facts.holds), [
      chooser(session, run),
      downloadPublic(run),
    ]),
    unknownRun(),
    run.stale ? h("p", { class: "alarm" }, "The table is now read with other options: run again.") : null,
    listWarnings(facts),
    h(
      "div",
      { class: "halves even" },
      section(
        "kept",
        "Promises",
        ["Checked on the written file, grouped again from scratch.", whatIs("Verdict")],
        promises(facts.promises),
        checkers(run, facts),
      ),
      section(
        "files",
        "Files",
        ["What to share, and what to keep private.", whatIs("Certificate")],
        files(run, session),
      ),
    ),
    h(
      "div",
      { class: "parts" },
      disclosure("limits", "Not promised", "what no anonymized table can promise", () =>
        h(
          "ul",
          {},
          facts.not_promised.map((text) => h("li", {}, text)),
        ),
      ),
      disclosure("again", "Repeat", "the same release, byte for byte, by the command or in Python", () =>
        repeatLines(run, facts.again),
      ),
      disclosure("log", "Decisions", `${session.log.length} in this session`, () => decisions(session.log)),
    ),
  ];
}

function chooser(session, run) {
  return h(
    "div",
    { class: "line chooser" },
    h("label", { for: "release-run" }, "Release of"),
    select(
      session.runs.filter((one) => one.state === "done").map((one) => [one.id, one.name]),
      run.id,
      (event) => go("release", event.target.value),
      null,
      { id: "release-run" },
    ),
  );
}

function listWarnings(facts) {
  const all = [...(facts.warnings ?? [])];
  if (!all.length) return null;
  return h(
    "aside",
    { class: "warnings", "aria-labelledby": "look-here" },
    h("h2", { id: "look-here" }, "Check this before you share it"),
    h(
      "ul",
      {},
      all.map((text) => h("li", {}, text)),
    ),
  );
}

function promises(all) {
  const rows = all.map((one) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, one.promise, h("span", { class: "meaning" }, one.meaning)),
      h("td", { class: "number", "data-title": "required" }, digits(one.asked)),
      h("td", { class: "number", "data-title": "found" }, h("strong", {}, digits(one.found))),
      h(
        "td",
        { "data-title": "verdict" },
        one.holds ? h("span", { class: "kept" }, "✓ holds") : h("span", { class: "broken-word" }, "✕ fails"),
      ),
    ),
  );
  return h(
    "table",
    { class: "stacked" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "promise"),
        h("th", { scope: "col", class: "number" }, "required"),
        h("th", { scope: "col", class: "number" }, "found"),
        h("th", { scope: "col" }, "verdict"),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function checkers(run, facts) {
  const job = getJob(`verify ${run.id}`);
  const found = job?.result?.checkers ?? facts.checkers;
  const items = found.map((one) =>
    h(
      "li",
      {},
      h("span", { class: one.holds ? "kept" : "broken-word" }, one.holds ? "✓ agrees" : "✕ does not agree"),
      `: ${CHECKERS[one.name] ?? one.name}`,
    ),
  );
  const repeat = () => verifyAgain(run);
  return [
    explained(h("h3", {}, "Two checkers"), "Checker"),
    h("ul", { class: "plain" }, items),
    h(
      "div",
      { class: "buttons" },
      button("Check the file again", repeat, { disabled: job?.state === "running" }),
      job?.state === "running" ? h("span", { class: "soft", role: "status" }, "Checking …") : null,
      job?.result ? h("span", { class: "soft", role: "status" }, "Checked again just now.") : null,
    ),
  ];
}

async function verifyAgain(run) {
  await startJob(`verify ${run.id}`, null, () => send("POST", `/api/runs/${run.id}/verify`));
}
