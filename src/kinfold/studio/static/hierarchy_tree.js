// Functions on a hierarchy: a tree of labels with counts, from the server. Pure.

/** Return the groups at a level, each with the labels below it; ungrouped labels are in `alone`. */
export function listGroups(tree, level) {
  const groups = [];
  const alone = [];
  let unseen = 0;
  const visit = (node) => {
    unseen += node.more ?? 0;
    for (const child of node.children ?? []) {
      if (child.level === level - 1) alone.push(child);
      else if (child.level === level) place(child);
      else visit(child);
    }
  };
  const place = (node) => {
    const below = node.children ?? [];
    if (below.length === 1 && below[0].label === node.label) alone.push(below[0]);
    else groups.push({ label: node.label, count: node.count, labels: below, more: node.more ?? 0 });
  };
  visit(tree);
  return { groups, alone, unseen };
}

/** Return the levels at which labels can be grouped: the existing ones, and a new one. */
export function listLevels(height) {
  return Array.from({ length: Math.max(height, 1) }, (_, index) => index + 1);
}

/** Return the paths of nodes that are open at first: from the root down, up to a number of visible nodes. */
export function getInitiallyOpen(tree, most = 24) {
  const open = new Set();
  let front = [[tree, getPath("", tree)]];
  let shown = 1;
  while (front.length) {
    const inside = front.flatMap(([node, path]) => (node.children ?? []).map((child) => [child, getPath(path, child)]));
    if (!inside.length || shown + inside.length > most) break;
    front.forEach(([, path]) => open.add(path));
    shown += inside.length;
    front = inside;
  }
  if (!open.size) open.add(getPath("", tree));
  return open;
}

/** Return the path of a node from the root; levels distinguish repeated labels. */
export function getPath(above, node) {
  return `${above}\u0000${node.level}\u0001${node.label}`;
}

/** Return the two labels of a drop, or nothing if a label was dropped onto itself. */
export function getDropAction(dragged, target) {
  const labels = [...new Set([...dragged, target])];
  return labels.length > 1 ? labels : null;
}
