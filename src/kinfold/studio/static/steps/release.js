// Step 5: the verdict on what was made, what is not promised, the files, and how to do it again.

import { beginJob, jobOf } from "../actions.js";
import { send } from "../api.js";
import { h } from "../dom.js";
import { digits } from "../numbers.js";
import { select } from "../parts/fields.js";
import { again, files } from "../parts/release_files.js";
import { chosenRuns } from "../parts/run_table.js";
import { button, head, nothingOpen, section, verdict } from "../parts/sections.js";
import { app, go, look } from "../store.js";

const CHECKERS = {
  engine: "the engine's, which groups the file again",
  plain: "the second one, in plain Python, which shares no code with the first",
};

/** The step as it stands. */
export function releaseStep() {
  const { session } = app;
  if (session.state !== "ready") return [head("release", "Release"), nothingOpen()];
  const { shown: run } = chosenRuns();
  if (!run)
    return [
      head("release", session.source.name, verdict("Nothing to release yet.", ["A run that is done can be released."])),
      h("p", {}, h("a", { href: "#protect" }, "Run the policy first.")),
    ];
  const found = look(`/api/runs/${run.id}/verdict`, true);
  const said = found.value;
  if (!said) return [head("release", session.source.name, verdict("Reading the verdict …"))];
  return [
    head("release", session.source.name, verdict(said.headline, said.further, !said.holds)),
    h(
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
      run.stale ? h("span", { class: "alarm" }, "The table is read otherwise now: run again.") : null,
    ),
    warned(said),
    section("kept", "Promises", "Checked on the file as written, grouped again from scratch.", promises(said.promises)),
    section(
      "checkers",
      "Two checkers",
      "They share no code, and both must agree before a release gets its name.",
      checkers(run, said),
    ),
    section(
      "limits",
      "Not promised",
      "What no table of this kind can promise.",
      h(
        "ul",
        {},
        said.not_promised.map((text) => h("li", {}, text)),
      ),
    ),
    section("files", "Files", "What may leave, and what must not.", files(run, session)),
    section("again", "Again", "The same release, byte for byte, without this page.", again(run, said.again)),
  ];
}

function warned(said) {
  const all = [...(said.warnings ?? [])];
  if (!all.length) return null;
  return h(
    "aside",
    { class: "warnings", "aria-labelledby": "look-here" },
    h("h2", { id: "look-here" }, "Look here before it leaves"),
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
      h("td", { class: "number", "data-title": "asked" }, digits(one.asked)),
      h("td", { class: "number", "data-title": "found" }, h("strong", {}, digits(one.found))),
      h(
        "td",
        { "data-title": "verdict" },
        one.holds ? h("span", { class: "kept" }, "✓ kept") : h("span", { class: "broken-word" }, "✕ broken"),
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
        h("th", { scope: "col", class: "number" }, "asked"),
        h("th", { scope: "col", class: "number" }, "found"),
        h("th", { scope: "col" }, "verdict"),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function checkers(run, said) {
  const job = jobOf(`verify ${run.id}`);
  const found = job?.result?.checkers ?? said.checkers;
  const items = found.map((one) =>
    h(
      "li",
      {},
      h("span", { class: one.holds ? "kept" : "broken-word" }, one.holds ? "✓ agrees" : "✕ does not agree"),
      ` ${CHECKERS[one.name] ?? one.name}`,
    ),
  );
  const repeat = () => verifyAgain(run);
  return [
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
  await beginJob(`verify ${run.id}`, null, () => send("POST", `/api/runs/${run.id}/verify`));
}
