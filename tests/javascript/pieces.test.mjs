import assert from "node:assert/strict";
import test from "node:test";
import { PRINT_COLOURS, repaintChart, writeDates } from "../../src/kinfold/studio/static/repaint.js";
import { placePoints } from "../../src/kinfold/studio/static/loss_curve.js";
import { countAtLeast } from "../../src/kinfold/studio/static/risk_curve.js";
import { getShortcut } from "../../src/kinfold/studio/static/keys.js";
import { joinNames, joinParts, shortenName, describeStage } from "../../src/kinfold/studio/static/texts.js";
import { makeId, parseList, describeProblem, parseTyped } from "../../src/kinfold/studio/static/parts/fields.js";
import { parseNumbers, getBuilder } from "../../src/kinfold/studio/static/parts/builders.js";
import { moveItem } from "../../src/kinfold/studio/static/parts/recoding.js";
import { namePromises } from "../../src/kinfold/studio/static/promise_names.js";
import { parseTries } from "../../src/kinfold/studio/static/parts/run_view.js";
import { filterColumns, getRole, getRoleByKey, listRoleChanges } from "../../src/kinfold/studio/static/roles.js";
import { keepTogether } from "../../src/kinfold/studio/static/parts/sections.js";
import { splitQuestion } from "../../src/kinfold/studio/static/parts/questions.js";
import { compareColumns } from "../../src/kinfold/studio/static/parts/run_details.js";
import { ringPoint } from "../../src/kinfold/studio/static/parts/run_table.js";
import { describeFront } from "../../src/kinfold/studio/static/steps/explore.js";
import { getAddress } from "../../src/kinfold/studio/static/store.js";

test("charts get the colours of the page, and their data stays", () => {
  const spec = {
    data: { values: [{ label: "#175a6b" }] },
    mark: { color: "#175A6B" },
    range: ["#ffffff", "#123456", "#7a5195"],
  };
  const colours = { accent: "A", paper: "P" };
  assert.deepEqual(repaintChart(spec, colours, false), {
    data: { values: [{ label: "#175a6b" }] },
    mark: { color: "A" },
    range: ["P", "#123456", "#7a5195"],
  });
  assert.equal(repaintChart("#7a5195", colours, true), "#c39adf");
  assert.ok(Object.keys(PRINT_COLOURS).every((colour) => colour === colour.toLowerCase()));
});

test("risk falls from all records to none", () => {
  const points = countAtLeast([
    [1, 2],
    [0.2, 8],
  ]);
  assert.deepEqual(points, [
    { risk: 0, share: 1 },
    { risk: 0.2, share: 1 },
    { risk: 1, share: 0.2 },
    { risk: 1, share: 0 },
    { risk: 1, share: 0 },
  ]);
  assert.deepEqual(countAtLeast([]), []);
});

test("keys are shortcuts only with their command", () => {
  const key = (pressed, more = {}) =>
    getShortcut({ key: pressed, code: "", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more });
  assert.equal(key("z"), null);
  assert.equal(key("z", { ctrlKey: true }), "undo");
  assert.equal(key("Z", { metaKey: true, shiftKey: true }), "redo");
  assert.equal(key("y", { ctrlKey: true }), "redo");
  assert.equal(key("¡", { altKey: true, code: "Digit1" }), "step 1");
});

test("what is typed becomes a value of the policy", () => {
  assert.equal(parseTyped(" 0.2 "), 0.2);
  assert.equal(parseTyped(""), null);
  assert.equal(parseTyped("auto"), "auto");
  assert.deepEqual(parseList("NA, n/a,"), ["NA", "n/a"]);
  assert.equal(parseList(" , "), null);
  assert.deepEqual(parseNumbers("5, 10, x"), [5, 10, "x"]);
});

test("ids of fields are of letters only, and apart", () => {
  assert.match(makeId(["columns", '"><script>', "t"]), /^[\w-]+$/);
  assert.notEqual(makeId(["columns", "a b", "t"]), makeId(["columns", "a_b", "t"]));
});

test("problems are told with what to do", () => {
  assert.equal(describeProblem({ what: "k is 1", fix: "take at least 2" }), "k is 1: take at least 2");
  assert.equal(describeProblem({ what: "k is 1" }), "k is 1");
});

test("a hierarchy's way is known by its key", () => {
  assert.equal(getBuilder(null), "none");
  assert.equal(getBuilder({ intervals: [5], top: 90 }), "intervals");
  assert.equal(getBuilder({ levels: [] }), "levels");
});

test("categories move within their order", () => {
  assert.deepEqual(moveItem(["a", "b", "c"], 0, 1), ["b", "a", "c"]);
  assert.deepEqual(moveItem(["a", "b", "c"], 2, 1), ["a", "b", "c"]);
  assert.deepEqual(moveItem(["a", "b", "c"], 0, -1), ["a", "b", "c"]);
});

test("a stage that has no words of its own is a part of planning", () => {
  assert.equal(describeStage("read"), "reading the table");
  assert.equal(describeStage("flash, level 3"), describeStage("plan"));
});

test("a letter and its number stay on one line", () => {
  assert.equal(keepTogether("Take mdav with k = 10."), "Take mdav with k\u00a0=\u00a010.");
});

test("a role has a key, and names are read as a list", () => {
  assert.equal(getRoleByKey("Q"), "quasi-identifier");
  assert.equal(getRoleByKey("x"), null);
  assert.equal(joinNames(["a", "b", "c"]), "a, b and c");
  assert.equal(joinNames([]), "");
  const parts = ["4 of 9,000 people in every class (estimated, risk 0.05)", ..."abcdefgh"];
  assert.equal(joinParts(parts), `${parts.slice(0, 8).join(", ")} and h`);
  assert.equal(getAddress("generalize", "a/b #1"), "#generalize/a%2Fb%20%231");
});

test("a curve falls from its first loss to its last, above its bound", () => {
  const free = placePoints(
    [
      [0, 1],
      [2, 0.8],
      [4, 0.6],
    ],
    null,
  );
  assert.match(free.path, /^M52\.0 14\.0H208\.0V70\.0H364\.0V126\.0$/);
  assert.equal(free.bound, null);
  const bounded = placePoints(
    [
      [0, 1],
      [4, 0.6],
    ],
    0.5,
  );
  assert.ok(bounded.bound > bounded.last[1], "the bound is below the line");
  assert.deepEqual(placePoints([[0, 1]], null).last, [52, 14]);
});

test("a sentence stays a sentence, however long or many the names are", () => {
  assert.equal(shortenName("x".repeat(40)), "x".repeat(40));
  assert.equal(shortenName("x".repeat(41)), `${"x".repeat(39)}…`);
  const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
  assert.equal(joinNames(names), "n0, n1, n2, n3, n4, n5, n6, n7 and 4 more");
  assert.equal(joinNames(names.slice(0, 9)), "n0, n1, n2, n3, n4, n5, n6, n7 and n8");
});

test("a unit is a role on the page, and a key of the policy", () => {
  const privacy = { unit: "pid" };
  assert.equal(getRole({ name: "pid", role: "identifier" }, privacy), "unit");
  assert.deepEqual(listRoleChanges(["pid"], "other", privacy), [
    [["privacy", "unit"], null],
    [["columns", "pid", "role"], "other"],
  ]);
  assert.deepEqual(listRoleChanges(["home"], "household", privacy), [
    [["privacy", "household"], "home"],
    [["columns", "home", "role"], "identifier"],
  ]);
  const columns = [
    { name: "pid", role: "identifier" },
    { name: "Age", role: "quasi-identifier" },
  ];
  assert.deepEqual(filterColumns(columns, { text: " AG" }, privacy), [columns[1]]);
  assert.deepEqual(filterColumns(columns, { role: "unit" }, privacy), [columns[0]]);
  assert.deepEqual(filterColumns(columns, { role: "identifier" }, privacy), []);
});

test("every promise of a policy is named", () => {
  const columns = [
    { name: "ill", role: "confidential" },
    { name: "age", role: "quasi-identifier" },
  ];
  const privacy = { k: 5, l: 2, l_kind: "distinct", t: 0.2, average_risk: 0.1, risk_share: { above: 0.2, most: 0.05 } };
  assert.deepEqual(namePromises({ privacy, columns: { ill: { t: 0.1 } } }, columns), [
    "5-anonymity",
    "distinct 2-diversity of ill",
    "0.1-closeness of ill",
    "an average risk of at most 10%",
    "at most 5% of the records at a risk above 20%",
  ]);
  assert.deepEqual(namePromises({ privacy: { k: 3, unit: "pid" } }, []), ["3-anonymity (people, by pid)"]);
  const combined = { k: 5, combinations: { size: 2, confidence: 0.5 }, population: { size: 900, k: 3, alpha: 0.05 } };
  assert.deepEqual(namePromises({ privacy: combined }, columns), [
    "5-anonymity of every combination of at most 2 quasi-identifiers",
    "confidence of at most 0.5 in ill by 2 quasi-identifiers",
    "3 of 900 people in every class (estimated, risk 0.05)",
  ]);
  const counted = { k: 5, population: { table: "people.csv", k: 3, presence: [0, 0.4] } };
  assert.deepEqual(namePromises({ privacy: counted }, []).slice(1), [
    "3 people of the population in every class",
    "presence from 0 to 0.4",
  ]);
  assert.deepEqual(namePromises({ privacy: { k: 3, combinations: { size: 2 }, individual_risk: 0.02 } }, []), [
    "3-anonymity of every combination of at most 2 quasi-identifiers",
    "an individual risk of at most 2%",
  ]);
});

test("values of k that cannot be reached are refused where they are typed", () => {
  assert.deepEqual(parseTries("3, 10", 100), { values: [3, 10], wrong: "" });
  assert.match(parseTries("3, 101", 100).wrong, /101 is more than the 100 records/);
  assert.match(parseTries("3, x", 100).wrong, /whole numbers/);
  assert.match(parseTries("1", 100).wrong, /whole numbers/);
});

test("the ends of an axis of dates are expressions, those of numbers stay", () => {
  const make = (scale) => ({ encoding: { x: { field: "start", scale } } });
  assert.deepEqual(writeDates(make({ type: "utc", domain: [1, 2] })).encoding.x, {
    field: "start",
    scale: { type: "utc", domainMin: { expr: "1" }, domainMax: { expr: "2" } },
  });
  const numbers = make({ zero: false, domain: [1, 2] });
  assert.equal(writeDates(numbers), numbers);
});

test("the headline of several runs names the ends of the front", () => {
  const runs = ["a", "b", "c"].map((id) => ({ id, name: `run ${id}` }));
  const points = [
    { run: "a", risk: 0.2, loss: 0.1, pareto: true },
    { run: "b", risk: 0.1, loss: 0.3, pareto: true },
    { run: "c", risk: 0.2, loss: 0.3, pareto: false },
  ];
  const [headline, least, safest] = describeFront(points, runs);
  assert.equal(headline, "2 of 3 runs are unbeaten: no other has less risk and less loss.");
  assert.equal(least, "Least loss: run a: loss 10%, risk 20%.");
  assert.equal(safest, "Least risk: run b: loss 30%, risk 10%.");
  assert.deepEqual(describeFront(points.slice(0, 1), runs), []);
  assert.equal(describeFront(points.slice(1), runs)[0], "1 of 2 runs is unbeaten: no other has less risk and less loss.");
});

test("the map has a ring around one point, or none", () => {
  const spec = { layer: ["points"] };
  assert.equal(ringPoint(spec, undefined), spec);
  const ringed = ringPoint(spec, { risk: 0.1, loss: 0.2, run: "a" });
  assert.deepEqual(ringed.layer[1].data.values, [{ risk: 0.1, loss: 0.2 }]);
  assert.deepEqual(spec.layer, ["points"]);
});

test("a question is split from its advice", () => {
  assert.deepEqual(splitQuestion("Leave out: a, b? To keep one, …"), ["Leave out: a, b?", "To keep one, …"]);
  assert.deepEqual(splitQuestion("Is it one person?"), ["Is it one person?", ""]);
  assert.deepEqual(splitQuestion("Choose one."), ["Choose one.", ""]);
});

test("columns are ordered by what was lost, or by their shift", () => {
  const columns = [
    { name: "a", role: "confidential", lost: null, shift: 0.4 },
    { name: "b", role: "quasi-identifier", lost: 0.1, shift: null },
    { name: "c", role: "quasi-identifier", lost: 0.2, shift: 0.1 },
  ];
  const order = (key) => columns.toSorted((one, other) => compareColumns(one, other, key)).map(({ name }) => name);
  assert.deepEqual(order("lost"), ["c", "b", "a"]);
  assert.deepEqual(order("shift"), ["a", "c", "b"]);
});
