// Step 4: everything tried so far, one run or two in detail, and other ways to get there.

import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { latticePart } from "../parts/lattice.js";
import { outliersPart } from "../parts/outliers.js";
import { classesOf, columnsOf, sideBySide, summaryOf } from "../parts/run_details.js";
import { attackOf, recordsOf } from "../parts/run_risk.js";
import { chosenRuns, mapNow, runMap, runTable } from "../parts/run_table.js";
import { head, nothingOpen, section, verdict } from "../parts/sections.js";
import { app } from "../store.js";

/** The step as it stands. */
export function exploreStep() {
  const { session } = app;
  if (session.state !== "ready") return [head("explore", "Explore"), nothingOpen()];
  const { shown, beside } = chosenRuns();
  const runs = [shown, beside].filter(Boolean);
  return [
    head("explore", session.source.name, sentence(session)),
    section("map", "Risk and utility", "Every run of this session: what it risks, and what it loses.", runMap()),
    section(
      "runs",
      "Runs",
      "Follow a name to see the run; tick a second one to have it beside.",
      session.runs.length
        ? runTable(session.runs, shown, beside)
        : h("p", { class: "soft" }, "Nothing was run yet. ", h("a", { href: "#protect" }, "Protect has the button.")),
    ),
    runs.length ? details(runs) : null,
    section(
      "lattice",
      "Lattice",
      "Every way to generalize whole columns, as the policy stands. Minimal nodes are the finest that do.",
      latticePart(),
    ),
    section(
      "outliers",
      "Outliers",
      "As in mu-Argus: look at the combinations that stand out, choose a column to make coarser, look again.",
      outliersPart(),
    ),
  ];
}

function sentence(session) {
  const done = session.runs.filter((run) => run.state === "done").length;
  if (!done)
    return verdict("Nothing to compare yet.", [
      "Run the policy in the step before. Other values of k give the map more points.",
    ]);
  const map = mapNow();
  return verdict(map?.choice ?? `${plural(done, "run")} to compare.`, [map?.price]);
}

function details(runs) {
  const names = runs.map((run) => run.name).join(" beside ");
  return [
    section("summary", "This run", runs.length > 1 ? "Two side by side." : names, sideBySide(runs, summaryOf)),
    section(
      "before",
      "Before and after",
      [
        "How each column is spread in the original, and in the release.",
        h("div", { class: "key" }, h("span", {}, "before"), h("span", { class: "after" }, "after")),
      ],
      columnsOf(runs),
    ),
    section(
      "classes",
      "Classes",
      "A class is a group of records that share all of their quasi-identifiers.",
      sideBySide(runs, classesOf),
    ),
    section(
      "risk",
      "Records at risk",
      "How likely each record is found by its quasi-identifiers. This is about the original: it must not leave.",
      sideBySide(runs, recordsOf),
    ),
    section(
      "attack",
      "A linkage attacker",
      "Somebody who has the quasi-identifiers of the original and looks for the nearest released record.",
      sideBySide(runs, attackOf),
    ),
  ];
}
