import assert from "node:assert/strict";
import test from "node:test";
import { groupByLine, getLineRange } from "../../src/kinfold/studio/static/policy_text.js";

const TEXT = "[privacy]\nk = 1\n\n[method]\n";

test("a line is found in the text", () => {
  assert.equal(TEXT.slice(...getLineRange(TEXT, 2)), "k = 1");
  assert.equal(TEXT.slice(...getLineRange(TEXT, 3)), "");
  assert.equal(TEXT.slice(...getLineRange(TEXT, 1)), "[privacy]");
});

test("a line that is not there is the nearest one", () => {
  assert.deepEqual(getLineRange(TEXT, 99), [TEXT.length, TEXT.length]);
  assert.equal(TEXT.slice(...getLineRange(TEXT, 0)), "[privacy]");
});

test("problems are gathered by line, those without one at the top", () => {
  const lines = groupByLine([{ what: "a", line: 2 }, { what: "b" }, { what: "c", line: 2 }]);
  assert.deepEqual([...lines.keys()], [2, 0]);
  assert.equal(lines.get(2).length, 2);
});
