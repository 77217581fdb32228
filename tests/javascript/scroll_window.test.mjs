import assert from "node:assert/strict";
import test from "node:test";
import { MAX_HEIGHT, getBoxHeight, listPages, getScrollTop, getVisibleRows } from "../../src/kinfold/studio/static/scroll_window.js";

const ROW = 30;
const VIEW = 600;

test("a short table scrolls pixel by pixel", () => {
  assert.deepEqual(getVisibleRows(1000, ROW, VIEW, 45), { first: 1, amount: 21, offset: 30 });
});

for (const rows of [1, 19, 1000, 399_999, 400_001, 1_000_000, 250_000_000]) {
  test(`the first and the last of ${rows} rows can be seen, and every place shows a full view`, () => {
    const bottom = Math.max(getBoxHeight(rows, ROW) - VIEW, 0);
    assert.ok(getBoxHeight(rows, ROW) <= MAX_HEIGHT);
    assert.equal(getVisibleRows(rows, ROW, VIEW, 0).first, 0);
    const last = getVisibleRows(rows, ROW, VIEW, bottom);
    assert.equal(last.first + last.amount, rows);
    for (let step = 0; step <= 50; step += 1) {
      const top = (bottom * step) / 50;
      const { first, amount, offset } = getVisibleRows(rows, ROW, VIEW, top);
      assert.ok(first >= 0 && amount >= 1 && first + amount <= rows);
      assert.ok(
        offset <= top + 1e-6 && offset > top - ROW - 1e-6,
        "the first row begins above the view, by less than a row",
      );
      assert.ok(offset + amount * ROW >= Math.min(top + VIEW, rows * ROW) - 1e-6 || first + amount === rows);
    }
  });

  test(`a row of ${rows} is found again by its place`, () => {
    for (const row of [0, 1, Math.floor(rows / 2), Math.max(rows - 21, 0)]) {
      if (row >= rows) continue;
      const { first, amount } = getVisibleRows(rows, ROW, VIEW, getScrollTop(row, rows, ROW, VIEW));
      assert.ok(first - 1 <= row && row <= first + amount, `${row} not near ${first}`);
    }
  });
}

test("rows lie on pages", () => {
  assert.deepEqual(listPages(190, 20, 100), [1, 2]);
  assert.deepEqual(listPages(0, 100, 100), [0]);
  assert.deepEqual(listPages(200, 1, 100), [2]);
});
