// What helps to read the page: the glossary and the tour, the runs that were tried, the order of columns.
import assert from "node:assert/strict";
import test from "node:test";
import { readFileSync, readdirSync } from "node:fs";
import { findEntries } from "../../src/kinfold/studio/static/parts/help.js";
import { orderColumns } from "../../src/kinfold/studio/static/parts/release_rows.js";
import { describePoint } from "../../src/kinfold/studio/static/parts/run_table.js";
import { listLargest } from "../../src/kinfold/studio/static/parts/run_risk.js";
import { sumByName } from "../../src/kinfold/studio/static/parts/run_details.js";
import { findRun, listTried } from "../../src/kinfold/studio/static/parts/tried.js";
import { TOUR } from "../../src/kinfold/studio/static/parts/tour.js";
import { getDependency } from "../../src/kinfold/studio/static/store.js";
import { STEPS } from "../../src/kinfold/studio/static/texts.js";
import { parseTries } from "../../src/kinfold/studio/static/parts/run_view.js";

const STATIC = new URL("../../src/kinfold/studio/static/", import.meta.url);

test("the glossary finds terms, and has every term that the page asks for", () => {
  const entries = JSON.parse(readFileSync(new URL("glossary.json", STATIC), "utf8"));
  const names = entries.map(({ term }) => term);
  assert.equal(findEntries(entries, "", "Node")[0].term, "Node");
  assert.equal(findEntries(entries, "los")[0].term, "Loss");
  assert.ok(findEntries(entries, "diagnosis").some(({ term }) => term === "Confidential column"));
  assert.deepEqual(findEntries(entries, "no such word"), []);
  const scripts = readdirSync(STATIC, { recursive: true }).filter((name) => name.endsWith(".js"));
  const text = scripts.map((name) => readFileSync(new URL(name, STATIC), "utf8")).join("\n");
  const asked = [...text.matchAll(/whatIs\("([^"]+)"\)|\bterm: "([^"]+)"|explained\(.*, "([^"]+)"\)/g)].map(([, ...found]) => found.find(Boolean));
  assert.ok(asked.length > 14);
  assert.deepEqual(asked.filter((term) => !names.includes(term)), []);
});

test("the tour has every step", () => assert.deepEqual(Object.keys(TOUR), STEPS.map((step) => step.id)));

test("columns of a release are shown first if they can identify, last if they are removed", () => {
  const columns = [
    { name: "id", released: false },
    { name: "disease", released: true },
    { name: "age", released: true },
  ];
  assert.deepEqual(orderColumns(columns, new Map([["age", "quasi-identifier"]])), [2, 1, 0]);
});

test("a slider goes over what was tried, to the run most like the one that is shown", () => {
  const made = (id, k, t, loss, method = "mdav") => ({ id, asked: { k, l: null, t, method }, summary: { loss } });
  const runs = [made("a", 5, 0.2, 0.3), made("b", 10, 0.3, 0.1), made("c", 10, 0.2, 0.4), made("d", 10, 0.2, 0.35)];
  assert.deepEqual(listTried(runs), { k: [5, 10], t: [0.2, 0.3] });
  assert.equal(findRun(runs, runs[0], "k", 10).id, "d");
  assert.equal(findRun(runs, runs[1], "k", 5).id, "a");
  assert.deepEqual(listTried(runs.slice(2)), {});
});

test("a point of the map says which runs it is", () => {
  const summary = { classes: 1, suppressed: 0 };
  const runs = [{ id: "a", name: "mdav, k = 5", summary }];
  const points = [{ run: "a", risk: 0.2, loss: 0.1 }];
  const text = "mdav, k = 5: risk 20%, loss 10%, 1 class, 0 suppressed";
  assert.equal(describePoint(points, runs, { risk: 0.2, loss: 0.1 }), text);
  assert.equal(describePoint(points, runs, { risk: 0.3, loss: 0.1 }), null);
});

test("stages with one name are one, and the largest contributions come first", () => {
  const name = (stage) => stage.slice(0, 1);
  assert.deepEqual(sumByName({ plan: 1, read: 4, pad: 2 }, name), [["r", 4], ["p", 3]]);
  assert.equal(listLargest({ age: 20, sex: 0, zip: 60 }), "zip 60%, age 20%");
});

test("other values of l and t can be tried", () => {
  assert.deepEqual(parseTries("0.1, 0.35", 100, "t").values, [0.1, 0.35]);
  assert.match(parseTries("0, 0.1", 100, "t").wrong, /above 0/);
  assert.match(parseTries("1.5", 100, "l").wrong, /whole numbers/);
});

test("an answer is asked for again only if what it depends on has changed", () => {
  const session = { source: { name: "a.csv", rows: 9 }, runs: [], policy: { text: "k = 5" }, log: [{ at: "now" }], step: "open" };
  const later = { ...session, version: 8, step: "protect" };
  const decided = { ...later, policy: { text: "k = 6" } };
  const ran = { ...decided, runs: [{ id: "r1", state: "done" }] };
  const other = { ...ran, source: { name: "b.csv", rows: 9 } };
  const steps = [session, later, decided, ran, other];
  const changes = (address) => steps.slice(1).map((one, at) => getDependency(address, one) !== getDependency(address, steps[at]));
  assert.deepEqual(changes("/api/rows?from=0"), [false, false, false, true]);
  assert.deepEqual(changes("/api/risk"), [false, true, false, true]);
  assert.deepEqual(changes("/api/map?width=300"), [false, false, true, false]);
});
