// The visible rows of a long table. Browsers limit the height of a box to some million pixels, so a longer table is
// compressed: the scroll bar moves faster than the rows, which keep their height.

export const MAX_HEIGHT = 12_000_000; // pixels; the limit of Firefox is about 17 million

/** Return the height of the scrolling box. */
export function getBoxHeight(rows, rowHeight) {
  return Math.min(rows * rowHeight, MAX_HEIGHT);
}

/** Return the visible rows at a position of the scroll bar: from `first`, drawn at `offset` pixels. */
export function getVisibleRows(rows, rowHeight, viewHeight, scrollTop) {
  const box = getBoxHeight(rows, rowHeight);
  const way = Math.max(box - viewHeight, 1);
  const rowsWay = Math.max(rows * rowHeight - viewHeight, 0);
  const top = Math.min(Math.max(scrollTop, 0), way);
  const exact = box < rows * rowHeight ? (top / way) * rowsWay : top;
  const first = Math.max(Math.min(Math.floor(exact / rowHeight), rows - 1), 0);
  const amount = Math.min(Math.ceil(viewHeight / rowHeight) + 1, rows - first);
  return { first, amount, offset: top - (exact - first * rowHeight) };
}

/** Return the position of the scroll bar that shows a row first. */
export function getScrollTop(row, rows, rowHeight, viewHeight) {
  const box = getBoxHeight(rows, rowHeight);
  if (box >= rows * rowHeight) return row * rowHeight;
  const rowsWay = Math.max(rows * rowHeight - viewHeight, 1);
  return (Math.min(row * rowHeight, rowsWay) / rowsWay) * (box - viewHeight);
}

/** Return the pages of `size` rows that contain these rows. */
export function listPages(first, amount, size) {
  const pages = [];
  for (let page = Math.floor(first / size); page * size < first + amount; page += 1) pages.push(page);
  return pages;
}
