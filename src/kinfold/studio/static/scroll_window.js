// Which rows of a long table are seen. Browsers hold boxes of some millions of pixels only, so a longer table is
// squeezed: the scroll bar then moves over rows faster than one row's height, and the rows stay as high as they are.

export const TALLEST = 12_000_000; // pixels; Firefox ends at about 17 million

/** How high the box that scrolls is. */
export function boxHeight(rows, rowHeight) {
  return Math.min(rows * rowHeight, TALLEST);
}

/** The rows seen at a place of the scroll bar: from `first` on, the first one drawn at `offset` pixels of the box. */
export function seen(rows, rowHeight, viewHeight, scrollTop) {
  const box = boxHeight(rows, rowHeight);
  const way = Math.max(box - viewHeight, 1);
  const rowsWay = Math.max(rows * rowHeight - viewHeight, 0);
  const top = Math.min(Math.max(scrollTop, 0), way);
  const exact = box < rows * rowHeight ? (top / way) * rowsWay : top;
  const first = Math.max(Math.min(Math.floor(exact / rowHeight), rows - 1), 0);
  const amount = Math.min(Math.ceil(viewHeight / rowHeight) + 1, rows - first);
  return { first, amount, offset: top - (exact - first * rowHeight) };
}

/** Where the scroll bar stands so that a row is the first one seen. */
export function placeOf(row, rows, rowHeight, viewHeight) {
  const box = boxHeight(rows, rowHeight);
  if (box >= rows * rowHeight) return row * rowHeight;
  const rowsWay = Math.max(rows * rowHeight - viewHeight, 1);
  return (Math.min(row * rowHeight, rowsWay) / rowsWay) * (box - viewHeight);
}

/** The pages of `size` rows that hold these rows. */
export function pagesOf(first, amount, size) {
  const pages = [];
  for (let page = Math.floor(first / size); page * size < first + amount; page += 1) pages.push(page);
  return pages;
}
