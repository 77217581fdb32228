// The curve of the loss during a search: a step line with its ends labelled, and the bound if it is proved.
// It needs no bundle, so it is visible from the first second of a run.

import { h } from "./dom.js";
import { duration, share } from "./numbers.js";

const WIDTH = 420;
const HEIGHT = 150;
const EDGE = { left: 52, right: 56, top: 14, bottom: 24 };

/** Return the path of a curve, and the places of its ends and its bound. */
export function placePoints(points, bound) {
  const end = points.at(-1)[0] || 1;
  const losses = [...points.map(([, loss]) => loss), ...(bound === null ? [] : [bound])];
  const [least, most] = [Math.min(...losses), Math.max(...losses)];
  const x = (seconds) => EDGE.left + ((WIDTH - EDGE.left - EDGE.right) * seconds) / end;
  const fall = (loss) => (most === least ? 0 : (most - loss) / (most - least));
  const y = (loss) => EDGE.top + (HEIGHT - EDGE.top - EDGE.bottom) * fall(loss);
  const steps = points.map(([seconds, loss], index) =>
    index ? `H${x(seconds).toFixed(1)}V${y(loss).toFixed(1)}` : `M${x(seconds).toFixed(1)} ${y(loss).toFixed(1)}`,
  );
  const [seconds, loss] = points.at(-1);
  return { path: steps.join(""), last: [x(seconds), y(loss)], bound: bound === null ? null : y(bound) };
}

/** Draw a curve; `points` are seconds and shares of the first loss. */
export function drawCurve(points, bound, label) {
  const places = placePoints(points, bound);
  const [right, low] = places.last;
  const near = places.bound !== null && places.bound - low < 14; // the two labels would overlap
  const text = (x, y, anchor, words, kind = "") => h("text", { x, y, "text-anchor": anchor, class: kind }, words);
  return h(
    "svg",
    { class: "falling", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    h("path", { class: "axis", d: `M${EDGE.left} ${EDGE.top - 6}V${HEIGHT - EDGE.bottom}H${WIDTH - EDGE.right}` }),
    text(EDGE.left - 8, EDGE.top + 4, "end", share(points[0][1])),
    text(EDGE.left, HEIGHT - 6, "middle", "0 s"),
    text(right, HEIGHT - 6, "middle", duration(points.at(-1)[0])),
    places.bound === null
      ? null
      : [
          h("path", { class: "bound", d: `M${EDGE.left} ${places.bound}H${WIDTH - EDGE.right}` }),
          text(EDGE.left - 8, places.bound + 4, "end", share(bound), "least"),
        ],
    h("path", { class: "line", d: places.path }),
    h("circle", { cx: right, cy: low, r: 3 }),
    text(right + 8, near ? low - 2 : low + 4, "start", share(points.at(-1)[1]), "now"),
  );
}
