// The lattice of generalizations. A node can be selected, also by its levels, and run.

import { startJob, cancelJob, decideAndRun, getJob } from "../actions.js";
import { h } from "../dom.js";
import { selectNodes, edges, getNodeName, placeNodes, radius, silhouette } from "../lattice_layout.js";
import { count, plural, share } from "../numbers.js";
import { app, updateUi } from "../store.js";
import { problemList } from "./fields.js";
import { button } from "./sections.js";

const WIDTH = 720;

/** Return the section of the page. */
export function latticePart() {
  const job = getJob("lattice");
  const stale = job && job.policy !== app.session.policy.text && job.state === "done";
  return [
    h(
      "div",
      { class: "buttons" },
      button(job ? "Draw it again" : "Draw the lattice", () => startJob("lattice", { kind: "lattice" }), {
        disabled: job?.state === "running",
      }),
      job?.state === "running" ? button("Stop", () => cancelJob("lattice"), { slim: true, danger: true }) : null,
      job?.state === "running" ? h("span", { class: "soft", role: "status" }, "Searching …") : null,
      stale ? h("span", { class: "soft small" }, "The policy has changed since it was drawn.") : null,
    ),
    problemList(job?.problems ?? [], "It cannot be drawn"),
    job?.result?.nodes ? drawn(job.result) : null,
  ];
}

function drawn(lattice) {
  const byName = new Map(lattice.nodes.map((node) => [getNodeName(node.levels), node]));
  const chosenName = app.ui.node ?? getNodeName(lattice.best ?? lattice.nodes[0]?.levels ?? []);
  const chosen = byName.get(chosenName) ?? { levels: chosenName.split(",").map(Number) };
  const minimal = lattice.nodes.filter((node) => node.minimal);
  return [
    h(
      "p",
      {},
      `${plural(lattice.size, "node")}; ${count(minimal.length)} of them minimal: no finer node holds. `,
      lattice.best
        ? `The best is ${describeNode(lattice, lattice.best)}${lattice.proved ? ", proved." : "."}`
        : "No node meets the promises.",
    ),
    lattice.partial && lattice.nodes.length
      ? h(
          "p",
          { class: "soft small" },
          "The lattice is too large to list: the minimal nodes and the best one are shown.",
        )
      : null,
    h("div", { class: "lattice" }, picture(lattice, chosenName), details(lattice, chosen, byName)),
  ];
}

function describeNode(lattice, levels) {
  return lattice.columns.map((name, index) => `${name} ${levels[index]}`).join(", ");
}

function picture(lattice, chosen) {
  const { places, height } = placeNodes(selectNodes(lattice), lattice.heights, WIDTH - 40);
  const r = radius(places);
  const best = getNodeName(lattice.best ?? []);
  const lines = edges(places).map(([one, other]) => h("line", { x1: one.x, y1: one.y, x2: other.x, y2: other.y }));
  const bars = silhouette(lattice.nodes, lattice.heights, WIDTH - 40).map(bar);
  const dots = places.map((place) => dot(lattice, place, { r, chosen, best }));
  return h(
    "figure",
    { class: "lattice-picture" },
    h(
      "svg",
      {
        viewBox: `-20 0 ${WIDTH} ${height}`,
        role: "group",
        "aria-label": "The lattice, finest at the bottom; minimal nodes can be reached with the tab key",
      },
      h("g", { class: "bars" }, bars),
      h("g", { class: "edges" }, lines),
      dots,
    ),
    h(
      "figcaption",
      { class: "key" },
      ["fails", "holds", "minimal", "best"].map((kind) => h("span", { class: `dot-key ${kind}` }, kind)),
    ),
  );
}

function bar({ x, y, wide, holds, step, all }) {
  const shape = { y: y - step / 2 + 1, height: step - 2 };
  return h(
    "g",
    {},
    h("title", {}, plural(all, "node")),
    h("rect", { class: "fails", x, width: wide, ...shape }),
    holds ? h("rect", { class: "holds", x: x + (wide - holds) / 2, width: holds, ...shape }) : null,
  );
}

function dot(lattice, { node, x, y }, { r, chosen, best }) {
  const name = getNodeName(node.levels);
  const kinds = [
    node.holds ? "holds" : "fails",
    node.minimal ? "minimal" : "",
    name === best ? "best" : "",
    name === chosen ? "chosen" : "",
  ].filter(Boolean);
  const reach = node.minimal || name === best || name === chosen;
  const pick = () => updateUi({ node: name });
  const keydown = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), pick());
  const label = `${describeNode(lattice, node.levels)}: ${kinds.join(", ")}`;
  return h(
    "circle",
    {
      key: name,
      class: `node ${kinds.join(" ")}`,
      cx: x,
      cy: y,
      r: node.minimal || name === best ? Math.max(r, 4) : r,
      role: reach ? "button" : null,
      tabindex: reach ? "0" : null,
      "aria-label": reach ? label : null,
      "aria-pressed": reach ? String(name === chosen) : null,
      "data-levels": name,
      on: { click: pick, keydown },
    },
    h("title", {}, label),
  );
}

function details(lattice, node, byName) {
  const walk = (index, value) =>
    updateUi({ node: getNodeName(node.levels.with(index, Math.min(Math.max(value, 0), lattice.heights[index]))) });
  const rows = lattice.columns.map((name, index) =>
    h(
      "tr",
      { key: name },
      h("th", { scope: "row", dir: "auto" }, name),
      h(
        "td",
        { class: "number" },
        h("input", {
          type: "number",
          min: "0",
          max: lattice.heights[index],
          value: node.levels[index],
          "aria-label": `Level of ${name}`,
          on: { change: (event) => walk(index, Number(event.target.value)) },
        }),
      ),
      h("td", { class: "soft" }, `of ${lattice.heights[index]}`),
    ),
  );
  const levels = Object.fromEntries(lattice.columns.map((name, index) => [name, node.levels[index]]));
  return h(
    "div",
    { class: "node-details" },
    h("h3", {}, "This node"),
    h("table", { class: "tight" }, h("tbody", {}, rows)),
    byName.has(getNodeName(node.levels))
      ? facts(node)
      : h("p", { class: "soft small" }, "There are no results for this node."),
    button(
      "Use this node",
      () =>
        decideAndRun([
          [["method", "name"], "lattice"],
          [["method", "levels"], levels],
        ]),
      { main: true, id: "take-node" },
    ),
    h("p", { class: "soft small" }, "Sets the lattice method with these levels, and runs it."),
  );
}

function facts(node) {
  const sentences = [
    node.holds ? "Every promise holds." : "A promise does not hold.",
    node.classes !== null && node.classes !== undefined ? `${plural(node.classes, "class", "classes")}.` : "",
    node.outliers ? `${plural(node.outliers, "record")} in classes that are too small.` : "",
    node.loss !== null && node.loss !== undefined ? `${share(node.loss)} of the granularity lost.` : "",
  ];
  return h("p", { class: "small" }, sentences.filter(Boolean).join(" "));
}
