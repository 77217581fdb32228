// The layout of a lattice: a row for each height, the finest at the bottom. Pure.

export const MAX_DOTS = 400; // of a larger lattice only the minimal nodes and the best one are drawn
const MAX_NODES_WITH_EDGES = 160; // with more nodes no lines are drawn

/** Return the name of a node: its levels. */
export function getNodeName(levels) {
  return levels.join(",");
}

/** Return the nodes to draw. */
export function selectNodes(lattice) {
  if (lattice.nodes.length <= MAX_DOTS) return lattice.nodes;
  const best = getNodeName(lattice.best ?? []);
  return lattice.nodes.filter((node) => node.minimal || getNodeName(node.levels) === best);
}

/** Return the places of nodes, {node, x, y}, and the height of the picture. */
export function placeNodes(nodes, heights, width) {
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

/** Return a large lattice as bars, one for each height; `holds` is the number of nodes that hold. */
export function silhouette(nodes, heights, width) {
  if (nodes.length <= MAX_DOTS) return [];
  const rows = new Map();
  for (const node of nodes) {
    const height = node.levels.reduce((sum, level) => sum + level, 0);
    const row = rows.get(height) ?? { height, all: 0, holds: 0 };
    rows.set(height, { height, all: row.all + 1, holds: row.holds + (node.holds ? 1 : 0) });
  }
  const most = Math.max(...[...rows.values()].map((row) => row.all));
  const { step } = placeNodes([], heights, width);
  const top = heights.reduce((sum, height) => sum + height, 0);
  return [...rows.values()].map(({ height, all, holds }) => {
    const wide = Math.max((all / most) * width, 2);
    return { y: (top - height) * step + 16, step, x: (width - wide) / 2, wide, holds: (holds / all) * wide, all };
  });
}

/** Return the lines between neighbouring nodes; none if there are too many. */
export function edges(places) {
  if (places.length > MAX_NODES_WITH_EDGES) return [];
  const known = new Map(places.map((place) => [getNodeName(place.node.levels), place]));
  return places.flatMap((below) =>
    below.node.levels.flatMap((level, index) => {
      const above = known.get(getNodeName(below.node.levels.with(index, level + 1)));
      return above ? [[below, above]] : [];
    }),
  );
}

/** Return the radius of the dots, so that neighbours do not touch. */
export function radius(places) {
  const gap = Math.min(...places.map((place) => place.gap), 40);
  return Math.max(Math.min(gap * 0.36, 7), 1.6);
}
