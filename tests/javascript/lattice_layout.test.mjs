import assert from "node:assert/strict";
import test from "node:test";
import { MAX_DOTS, selectNodes, edges, getNodeName, placeNodes, radius } from "../../src/kinfold/studio/static/lattice_layout.js";

function lattice(heights) {
  let all = [[]];
  for (const height of heights)
    all = all.flatMap((levels) => Array.from({ length: height + 1 }, (_, level) => [...levels, level]));
  return {
    heights,
    best: heights,
    nodes: all.map((levels) => ({ levels, holds: false, minimal: levels.every((level) => level === 1) })),
  };
}

test("finer nodes are lower, and no two share a place", () => {
  const { nodes, heights } = lattice([2, 3, 1]);
  const { places, height } = placeNodes(nodes, heights, 600);
  const sum = (place) => place.node.levels.reduce((a, b) => a + b, 0);
  assert.equal(places.length, 24);
  assert.equal(new Set(places.map(({ x, y }) => `${x} ${y}`)).size, 24);
  for (const one of places) for (const other of places) if (sum(one) > sum(other)) assert.ok(one.y < other.y);
  assert.ok(places.every(({ x, y }) => x >= 0 && x <= 600 && y > 0 && y < height));
});

test("dots of one row do not touch", () => {
  const { nodes, heights } = lattice([3, 3, 3, 3]);
  const { places } = placeNodes(nodes, heights, 680);
  const r = radius(places);
  for (const one of places) {
    const nearest = Math.min(
      ...places.filter((other) => other !== one && other.y === one.y).map((other) => Math.abs(other.x - one.x)),
      Infinity,
    );
    assert.ok(nearest >= 2 * r);
  }
});

test("lines join nodes one step apart", () => {
  const { nodes, heights } = lattice([1, 2]);
  const { places } = placeNodes(nodes, heights, 300);
  const names = edges(places).map(([below, above]) => `${getNodeName(below.node.levels)}>${getNodeName(above.node.levels)}`);
  assert.equal(names.length, 7);
  assert.ok(names.includes("0,0>1,0") && names.includes("0,1>0,2") && !names.includes("0,0>0,2"));
});

test("of a large lattice the minimal nodes and the best one are drawn", () => {
  const large = lattice([12, 12, 12]);
  assert.ok(large.nodes.length > MAX_DOTS);
  assert.deepEqual(
    selectNodes(large).map((node) => getNodeName(node.levels)),
    ["1,1,1", "12,12,12"],
  );
  assert.deepEqual(edges(placeNodes(large.nodes, large.heights, 600).places), []);
});
