// Charts, drawn by the Vega-Lite bundle of the server. Expressions are interpreted, never evaluated.
// The bundle is a megabyte, so it is loaded with the first chart.

import { h } from "./dom.js";
import { repaintChart, writeDates } from "./repaint.js";
import { getColours, isDark } from "./theme.js";

let bundle = null;

function vega() {
  bundle ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/vega.js";
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => {
      bundle = null; // the next chart tries again
      reject(new Error("the charts could not be loaded"));
    });
    document.head.append(script);
  });
  return bundle;
}

/** Load the bundle before the first chart; a chart reports a failure. */
export function expectCharts() {
  vega().catch(() => {});
}

/** Return a chart: its specification, a text description, a function for clicks on a datum, and one that describes a
 *  datum under the pointer (null: it has no description). */
export function chart({ spec, label, onPick, describe, key }) {
  const drawing = { spec: spec.spec ?? spec, label, onPick, describe };
  return h("div", { key, class: "chart", role: "img", "aria-label": label, hook: hookOf(drawing) });
}

function hookOf(drawing) {
  return {
    mount: (node) => {
      node.repaint = () => draw(node, node.drawing, true);
      document.addEventListener("theme", node.repaint);
      draw(node, drawing, true);
    },
    update: (node) => draw(node, drawing),
    unmount: (node) => {
      document.removeEventListener("theme", node.repaint);
      node.view?.finalize();
      node.view = null;
      node.gone = true;
    },
  };
}

async function draw(node, drawing, anew = false) {
  node.drawing = drawing;
  const wanted = JSON.stringify(drawing.spec);
  if (!anew && node.drawn === wanted) return;
  node.drawn = wanted;
  await vega();
  if (node.gone || node.drawn !== wanted) return;
  const now = getColours();
  node.view?.finalize();
  const { view } = await window.vegaEmbed(
    node,
    { ...repaintChart(writeDates(drawing.spec), now, isDark()), config: makeChartTheme(now) },
    {
      ast: true,
      actions: false,
      defaultStyle: false,
      renderer: "svg",
      tooltip: false,
      logLevel: 1,
    },
  );
  node.view = view;
  fit(node);
  const tip = document.createElement("p");
  tip.className = "tip";
  tip.hidden = true;
  node.append(tip);
  view.addEventListener("mouseover", (event, item) => showTip(tip, event, item?.datum, node.drawing.describe));
  view.addEventListener("mouseout", () => (tip.hidden = true));
  view.addEventListener("click", (_event, item) => item?.datum && node.drawing.onPick?.(item.datum));
}

// Next to the pointer, and inside the window. The table beside a chart has the same numbers.
function showTip(tip, event, datum, describe) {
  const text = datum && describe?.(datum);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(Math.min(event.clientX + 14, innerWidth - width - 8), 8);
  const above = event.clientY + 18 + height > innerHeight;
  tip.style.setProperty("left", `${left}px`);
  tip.style.setProperty("top", `${above ? event.clientY - height - 10 : event.clientY + 18}px`);
}

// A chart has its own size, and shrinks if there is less space.
function fit(node) {
  const svg = node.querySelector("svg");
  node.style.setProperty("--width", `${svg.getAttribute("width")}px`);
  svg.setAttribute("aria-hidden", "true");
  node.setAttribute("role", "img"); // Vega sets names of its own on the element
  node.setAttribute("aria-label", node.drawing.label);
  node.removeAttribute("aria-roledescription");
  svg.querySelectorAll("[tabindex]").forEach((item) => item.removeAttribute("tabindex"));
}

/** Return a small histogram without axes; `heights` are counts. */
export function spark(heights, label) {
  const most = Math.max(...heights, 1);
  const bars = heights.map((height, index) => {
    const tall = height > 0 ? Math.max((height / most) * 30, 1) : 0;
    return h("rect", { x: index + 0.06, y: 32 - tall, width: 0.88, height: tall });
  });
  return h(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${Math.max(heights.length, 1)} 32`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    bars,
  );
}

const FONT = "Helvetica Neue, Arial, Liberation Sans, Noto Sans, DejaVu Sans, sans-serif";

// The theme of every chart: fonts, thin axes, no frame, colours of the page.
function makeChartTheme(colours) {
  const quiet = { labelColor: colours.soft, titleColor: colours.soft, titleFontWeight: "normal" };
  const small = { labelFontSize: 11, titleFontSize: 11 };
  return {
    background: null,
    aria: false,
    font: FONT,
    view: { stroke: null },
    range: { category: [colours.before, colours.after, colours.alarm, colours["before-edge"], colours.edge] },
    axis: { domain: false, ticks: false, grid: false, labelPadding: 6, ...quiet, ...small },
    axisX: {
      domain: true,
      domainColor: colours.edge,
      ticks: true,
      tickColor: colours.edge,
      tickSize: 4,
      labelFlush: true,
      labelOverlap: "greedy",
      labelSeparation: 6,
    },
    axisY: { grid: true, gridColor: colours.line, gridWidth: 1 },
    text: { color: colours.ink, fontSize: 11 },
    legend: { labelColor: colours.ink, titleColor: colours.soft, titleFontWeight: "normal", symbolSize: 70, ...small },
  };
}
