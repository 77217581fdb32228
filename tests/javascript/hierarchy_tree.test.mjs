import assert from "node:assert/strict";
import test from "node:test";
import {
  arrangeTree,
  compareLabels,
  getDropAction,
  listGroups,
  listLevels,
  getInitiallyOpen,
  getPath,
} from "../../src/kinfold/studio/static/hierarchy_tree.js";
import { findColumn, parseKey, pickRows } from "../../src/kinfold/studio/static/question_rows.js";

const leaf = (label, count) => ({ label, level: 0, count, children: [] });
const FLAT = {
  label: "*",
  level: 1,
  count: 6,
  children: [leaf("flu", 3), leaf("asthma", 2), leaf("ulcer", 1)],
  more: 4,
};
const GROUPED = {
  label: "*",
  level: 2,
  count: 6,
  children: [
    { label: "lung", level: 1, count: 5, children: [leaf("flu", 3), leaf("asthma", 2)], more: 0 },
    { label: "ulcer", level: 1, count: 1, children: [leaf("ulcer", 1)], more: 0 },
  ],
};

test("without a level between, every value stands alone", () => {
  const { groups, alone, unseen } = listGroups(FLAT, 1);
  assert.deepEqual(groups, []);
  assert.deepEqual(
    alone.map((node) => node.label),
    ["flu", "asthma", "ulcer"],
  );
  assert.equal(unseen, 4);
});

test("a group holds its labels, and one that stands for itself is alone", () => {
  const { groups, alone } = listGroups(GROUPED, 1);
  assert.deepEqual(
    groups.map((group) => [group.label, group.count, group.labels.length]),
    [["lung", 5, 2]],
  );
  assert.deepEqual(
    alone.map((node) => node.label),
    ["ulcer"],
  );
});

test("at a new level the labels of the level below can be put together", () => {
  const { groups, alone } = listGroups(GROUPED, 2);
  assert.deepEqual(groups, []);
  assert.deepEqual(
    alone.map((node) => node.label),
    ["lung", "ulcer"],
  );
});

test("there is always one level more to build", () => {
  assert.deepEqual(listLevels(1), [1]);
  assert.deepEqual(listLevels(3), [1, 2, 3]);
  assert.deepEqual(listLevels(0), [1]);
});

test("a tree is open as far as it can be seen", () => {
  assert.equal(getInitiallyOpen(GROUPED, 24).size, 3);
  assert.equal(getInitiallyOpen(GROUPED, 3).size, 1);
  const wide = { label: "*", level: 1, count: 99, children: Array.from({ length: 99 }, (_, i) => leaf(`v${i}`, 1)) };
  assert.deepEqual([...getInitiallyOpen(wide)], [getPath("", wide)]);
});

test("a label that repeats on the way up has a path of its own", () => {
  const below = getPath(getPath("", GROUPED), GROUPED.children[1]);
  assert.notEqual(below, getPath(below, GROUPED.children[1].children[0]));
});

test("nothing is put together with itself", () => {
  assert.equal(getDropAction(["flu"], "flu"), null);
  assert.deepEqual(getDropAction(["flu"], "asthma"), ["flu", "asthma"]);
});

test("labels are in natural order", () => {
  const sorted = (labels, order) => [...labels].sort((one, other) => compareLabels(one, other, order));
  assert.deepEqual(sorted(["40-59", "100-119", "0-19", "20-39"]), ["0-19", "20-39", "40-59", "100-119"]);
  assert.deepEqual(sorted(["*", "18-24", "<18", "b", "a"]), ["<18", "18-24", "a", "b", "*"]);
  assert.deepEqual(sorted(["-10", "5", "-2"]), ["-10", "-2", "5"]);
  assert.deepEqual(sorted(["master", "primary"], ["primary", "master"]), ["primary", "master"]);
});

test("chains of single children are one node", () => {
  const chain = (label, level, children, more = 0) => ({ label, level, count: 3, children, more });
  const tree = chain("*", 3, [
    chain("20-39", 2, [chain("20-29", 1, [leaf("21", 1), leaf("20", 2)])]),
    chain("0-19", 2, [chain("0-19", 1, [leaf("9", 3)], 4)]),
  ]);
  const arranged = arrangeTree(tree);
  assert.deepEqual(
    arranged.children.map((node) => node.label),
    ["0-19", "20-39 › 20-29"],
  );
  assert.deepEqual(
    arranged.children[1].children.map((node) => node.label),
    ["20", "21"],
  );
  assert.deepEqual(
    arranged.children[0].children.map((node) => node.label),
    ["9"],
  ); // rarer labels are not shown, so 9 is not the only child
});

test("a question shows the rows that it is about", () => {
  assert.deepEqual(parseKey('columns."a.b".role'), ["columns", "a.b", "role"]);
  const names = ["pid", "age"];
  const cells = [
    ["p1", "30"],
    ["p2", "999"],
    ["p2", "31"],
    ["p3", null],
  ];
  const unit = { sets: "privacy.unit", proposed: "pid", answers: ["pid", "none"] };
  assert.equal(findColumn(unit, names), "pid");
  assert.deepEqual(
    pickRows(unit, names, cells).rows.map((row) => row.index),
    [1, 2],
  );
  const codes = { sets: "columns.age.na", proposed: "['999']", answers: ["['999']", "none"] };
  assert.deepEqual(
    pickRows(codes, names, cells).rows.map((row) => row.index),
    [1],
  );
  const role = { sets: ["columns.age.role"], proposed: "other", answers: ["other"] };
  assert.deepEqual(
    pickRows(role, names, cells).rows.map((row) => row.index),
    [0, 1, 2],
  );
  const left = { question: "Shall these 2 columns of codes be left out: zz, age? To keep one, …", sets: "output.others" };
  assert.equal(findColumn({ ...left, proposed: "drop", answers: ["drop"] }, names), "age");
  assert.deepEqual(pickRows({ sets: "output.others", proposed: "drop", answers: ["drop"] }, names, cells).rows, []);
});
