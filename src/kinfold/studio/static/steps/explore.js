// Step 4: all runs, one or two of them in detail, the lattice and the outliers.

import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { latticePart } from "../parts/lattice.js";
import { outliersPart } from "../parts/outliers.js";
import { runClasses, runColumns, showSideBySide, runSummary } from "../parts/run_details.js";
import { runAttack, runRecords } from "../parts/run_risk.js";
import { getSelectedRuns, getMap, runMap, runTable } from "../parts/run_table.js";
import { stepHead, nothingOpen, section, verdict } from "../parts/sections.js";
import { app } from "../store.js";

/** Return the step. */
export function exploreStep() {
  const { session } = app;
  if (session.state !== "ready") return [stepHead("explore", "Explore"), nothingOpen()];
  const { shown, compared } = getSelectedRuns();
  const runs = [shown, compared].filter(Boolean);
  return [
    stepHead("explore", session.source.name, sentence(session)),
    section("map", "Risk and utility", "The risk and the loss of every run of this session.", runMap()),
    section(
      "runs",
      "Runs",
      "Select a run to show it; tick a second one to compare.",
      session.runs.length
        ? runTable(session.runs, shown, compared)
        : h("p", { class: "soft" }, "There is no run yet. ", h("a", { href: "#protect" }, "Start one in Protect.")),
    ),
    runs.length ? details(runs) : null,
    section(
      "lattice",
      "Lattice",
      "All full-domain generalizations under the policy. A minimal node holds, and no finer one does.",
      latticePart(),
    ),
    section(
      "outliers",
      "Outliers",
      "As in mu-Argus: count combinations that are too rare, choose a column to generalize, count again.",
      outliersPart(),
    ),
  ];
}

function sentence(session) {
  const done = session.runs.filter((run) => run.state === "done").length;
  if (!done)
    return verdict("Nothing to compare yet.", [
      "Run the policy in the previous step. Other values of k add points to the map.",
    ]);
  const map = getMap();
  return verdict(map?.choice ?? `${plural(done, "run")} to compare.`, [map?.price]);
}

function details(runs) {
  const names = runs.map((run) => run.name).join(" and ");
  return [
    section("summary", "This run", runs.length > 1 ? "Side by side." : names, showSideBySide(runs, runSummary)),
    section(
      "before",
      "Before and after",
      [
        "The distribution of each column in the original and in the release.",
        h("div", { class: "key" }, h("span", {}, "before"), h("span", { class: "after" }, "after")),
      ],
      runColumns(runs),
    ),
    section(
      "classes",
      "Classes",
      "A class is a group of records with the same values of all quasi-identifiers.",
      showSideBySide(runs, runClasses),
    ),
    section(
      "risk",
      "Records at risk",
      "The probability of finding each record by its quasi-identifiers. This shows the original: keep it private.",
      showSideBySide(runs, runRecords),
    ),
    section(
      "attack",
      "Linkage attack",
      "An attacker knows the quasi-identifiers of the original, and links each record to the nearest released one.",
      showSideBySide(runs, runAttack),
    ),
  ];
}
