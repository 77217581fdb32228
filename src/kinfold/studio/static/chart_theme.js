// The theme of every chart: fonts, thin axes, no frame, colours of the page.

const FONT = "Helvetica Neue, Arial, Liberation Sans, Noto Sans, DejaVu Sans, sans-serif";

/** Return the settings of a chart in these colours. */
export function makeChartTheme(colours) {
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
