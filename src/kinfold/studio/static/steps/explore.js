// Step 4: all runs, one or two of them in detail, the lattice and the outliers.

import { h } from "../dom.js";
import { count, plural, share } from "../numbers.js";
import { columnPairs } from "../parts/column_pairs.js";
import { whatIs } from "../parts/help.js";
import { latticePart } from "../parts/lattice.js";
import { outliersPart } from "../parts/outliers.js";
import { runClasses, runColumns, showSideBySide, runSummary } from "../parts/run_details.js";
import { releaseClasses, releaseRows } from "../parts/release_rows.js";
import { runRisk } from "../parts/run_risk.js";
import { getMap, getSelectedRuns, runMap, runTable, unknownRun } from "../parts/run_table.js";
import { sliders } from "../parts/tried.js";
import { nextStep, nothingOpen, stepHead, tabs, verdict } from "../parts/sections.js";
import { app } from "../store.js";

const KEY = ["before", "after"];

/** Return the step. */
export function exploreStep() {
  const { session } = app;
  if (session.state !== "ready") return [stepHead("explore", "Explore"), nothingOpen()];
  const { shown, compared } = getSelectedRuns();
  const runs = [shown, compared].filter(Boolean);
  const action = shown ? nextStep(`release/${shown.id}`, "Release →") : nextStep("protect", "Start a run");
  return [
    stepHead("explore", session.source.name, sentence(session), action),
    unknownRun(),
    session.runs.length
      ? h(
          "section",
          { class: "halves table-first", key: "runs", "aria-label": "Runs" },
          h("div", { class: "matter" }, runTable(session.runs, shown, compared), sliders(session.runs, shown)),
          h("div", { class: "matter map-box" }, runMap(shown)),
        )
      : null,
    h("section", { key: "details", "aria-label": "Details" }, tabs("explore", "Details", listTabs(runs))),
  ];
}

function sentence(session) {
  const done = session.runs.filter((run) => run.state === "done").length;
  if (!done)
    return verdict("Nothing to compare yet.", [
      "Run the policy in the previous step. Other values of k add points to the map.",
    ]);
  if (done === 1) return verdict(session.runs.find((run) => run.state === "done").summary.headline);
  const [headline, ...further] = describeFront(getMap()?.points ?? [], session.runs);
  return verdict(headline ?? `${plural(done, "run")} to compare.`, further);
}

/** Describe the runs that no other beats: how many, and the two ends of the front. */
export function describeFront(points, runs) {
  const front = points.filter((point) => point.pareto).sort((one, other) => one.loss - other.loss);
  if (points.length < 2) return [];
  const describe = ({ run, risk, loss }) =>
    `${runs.find(({ id }) => id === run)?.name}: loss ${share(loss)}, risk ${share(risk)}.`;
  const some = `${count(front.length)} of ${plural(points.length, "run")} ${front.length === 1 ? "is" : "are"}`;
  const headline = `${some} unbeaten: no other has less risk and less loss.`;
  if (front.length === 1) return [headline, describe(front[0])];
  return [headline, `Least loss: ${describe(front[0])}`, `Least risk: ${describe(front.at(-1))}`];
}

function listTabs(runs) {
  const shown = [
    ["summary", "Summary", () => showSideBySide(runs, runSummary)],
    ["rows", "Rows", () => showSideBySide(runs.slice(0, 1), releaseRows)],
    ["columns", "Columns", () => [key(), runColumns(runs)]],
    ["pairs", "Pairs", () => columnPairs(runs)],
    [
      "risk",
      "Risk",
      () => [
        note(
          "The probability of finding each record by its quasi-identifiers. This shows the original: keep it private. ",
          "Disclosure risk",
        ),
        showSideBySide(runs, (run) => runRisk(run, runs.length > 1)),
      ],
    ],
    [
      "classes",
      "Classes",
      () => [
        note("A class is a group of records with the same values of all quasi-identifiers. ", "Class"),
        showSideBySide(runs, runClasses),
        showSideBySide(runs.slice(0, 1), releaseClasses),
      ],
    ],
  ];
  return [
    ...(runs.length ? shown : []),
    [
      "lattice",
      "Lattice",
      () => [
        note("All full-domain generalizations under the policy. A minimal node holds, and no finer one does. ", "Node"),
        latticePart(),
      ],
    ],
    [
      "outliers",
      "Outliers",
      () => [
        note("As in mu-Argus: count combinations that are too rare, choose a column to generalize, count again."),
        outliersPart(),
      ],
    ],
  ];
}

function note(text, term = null) {
  return h("p", { class: "soft small" }, text, term ? whatIs(term) : null);
}

function key() {
  return h(
    "div",
    { class: "key" },
    KEY.map((side) => h("span", { class: side === "after" ? side : "" }, side)),
  );
}
