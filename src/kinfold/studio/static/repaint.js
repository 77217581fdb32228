// Charts come as the printed report has them: their colours are replaced by those of the page, and axes of dates are
// written as the page's interpreter of expressions understands them.

/** Colours of the report, with the names of the page's colours that replace them. */
export const PRINT_COLOURS = {
  "#1d2830": "ink",
  "#4d5860": "soft",
  "#8b949b": "edge",
  "#b9c0c5": "edge",
  "#e4e7e9": "line",
  "#ffffff": "paper",
  "#175a6b": "accent",
  "#e0c796": "before",
  "#a9884a": "before-edge",
  "#7d5f22": "before-text",
  "#8c6519": "before-text",
  "#b8862b": "before-edge",
  "#a8361f": "alarm",
};

/** Colours of methods on the map, and the lighter ones of a dark page. */
const DARKER = {
  "#7a5195": "#c39adf",
  "#4f7d3a": "#93c47d",
  "#5b6770": "#a9b5bc",
  "#c2638d": "#e58fb5",
  "#b04a78": "#e58fb5",
  "#8c6a2f": "#d9bd83",
};

/** Return a specification with every colour of the report replaced; data is not changed. */
export function repaintChart(part, colours, dark) {
  if (typeof part === "string")
    return colours[PRINT_COLOURS[part.toLowerCase()]] ?? (dark ? DARKER[part.toLowerCase()] : undefined) ?? part;
  if (Array.isArray(part)) return part.map((item) => repaintChart(item, colours, dark));
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      key === "values" || key === "datasets" ? value : repaintChart(value, colours, dark),
    ]),
  );
}

/** Return a specification with the ends of an axis of dates as expressions. As numbers, Vega-Lite passes them to a
 *  function that the interpreter does not have with one number, or warns about them. */
export function writeDates(spec) {
  const scale = spec.encoding?.x?.scale;
  if (scale?.type !== "utc" || !scale.domain) return spec;
  const { domain, ...rest } = scale;
  const [domainMin, domainMax] = domain.map((moment) => ({ expr: String(moment) }));
  const x = { ...spec.encoding.x, scale: { ...rest, domainMin, domainMax } };
  return { ...spec, encoding: { ...spec.encoding, x } };
}
