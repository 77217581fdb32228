// Where the nodes of a lattice are drawn: a row for each height, the finest at the bottom. Pure.

export const MOST_DOTS = 400; // drawn; of a larger lattice the minimal nodes and the best one, over its silhouette
const MOST_EDGES = 160; // nodes up to which the lines between them are drawn

/** A node's name: its levels. */
export function nameOf(levels) {
  return levels.join(",");
}

/** The nodes to draw. */
export function drawable(lattice) {
  if (lattice.nodes.length <= MOST_DOTS) return lattice.nodes;
  const best = nameOf(lattice.best ?? []);
  return lattice.nodes.filter((node) => node.minimal || nameOf(node.levels) === best);
}

/** Places of nodes in a picture of this width: {node, x, y}, and how high the picture is. */
export function placed(nodes, heights, width) {
  const top = heights.reduce((sum, height) => sum + height, 0);
  const rows = new Map();
  for (const node of nodes) {
    const height = node.levels.reduce((sum, level) => sum + level, 0);
    rows.set(height, [...(rows.get(height) ?? []), node]);
  }
  const step = Math.min(44, Math.max(18, 460 / (top + 1)));
  const places = [];
  for (const [height, row] of rows) {
    const gap = Math.min(46, width / row.length);
    row.forEach((node, index) =>
      places.push({ node, x: width / 2 + (index - (row.length - 1) / 2) * gap, y: (top - height) * step + 16, gap }),
    );
  }
  return { places, height: top * step + 32, step };
}

/** A larger lattice as bars, one for each height, as wide as it has nodes there; `holds` is the part that does. */
export function silhouette(nodes, heights, width) {
  if (nodes.length <= MOST_DOTS) return [];
  const rows = new Map();
  for (const node of nodes) {
    const height = node.levels.reduce((sum, level) => sum + level, 0);
    const row = rows.get(height) ?? { height, all: 0, holds: 0 };
    rows.set(height, { height, all: row.all + 1, holds: row.holds + (node.holds ? 1 : 0) });
  }
  const most = Math.max(...[...rows.values()].map((row) => row.all));
  const { step } = placed([], heights, width);
  const top = heights.reduce((sum, height) => sum + height, 0);
  return [...rows.values()].map(({ height, all, holds }) => {
    const wide = Math.max((all / most) * width, 2);
    return { y: (top - height) * step + 16, step, x: (width - wide) / 2, wide, holds: (holds / all) * wide, all };
  });
}

/** Lines from each node to those one step above it; none where they would hide the picture. */
export function edges(places) {
  if (places.length > MOST_EDGES) return [];
  const known = new Map(places.map((place) => [nameOf(place.node.levels), place]));
  return places.flatMap((below) =>
    below.node.levels.flatMap((level, index) => {
      const above = known.get(nameOf(below.node.levels.with(index, level + 1)));
      return above ? [[below, above]] : [];
    }),
  );
}

/** How large the dots are, so that neighbours do not touch. */
export function radius(places) {
  const gap = Math.min(...places.map((place) => place.gap), 40);
  return Math.max(Math.min(gap * 0.36, 7), 1.6);
}
