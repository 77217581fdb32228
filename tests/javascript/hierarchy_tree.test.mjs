import assert from "node:assert/strict";
import test from "node:test";
import {
  getDropAction,
  listGroups,
  listLevels,
  getInitiallyOpen,
  getPath,
} from "../../src/kinfold/studio/static/hierarchy_tree.js";

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
