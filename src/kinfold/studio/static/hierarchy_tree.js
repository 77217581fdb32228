// A hierarchy as the server tells it (a tree of labels with counts), asked for what the page shows of it. Pure.

/** The groups at a level: each with the labels below it; labels that stand for themselves come apart, as `alone`. */
export function groupsAt(tree, level) {
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

/** The levels at which labels can be put together: those that are there, and one more. */
export function levelsToBuild(height) {
  return Array.from({ length: Math.max(height, 1) }, (_, index) => index + 1);
}

/** The paths of nodes that are open at first: from the root down, while not too many are seen. */
export function openAtFirst(tree, most = 24) {
  const open = new Set();
  let front = [[tree, pathOf("", tree)]];
  let shown = 1;
  while (front.length) {
    const inside = front.flatMap(([node, path]) => (node.children ?? []).map((child) => [child, pathOf(path, child)]));
    if (!inside.length || shown + inside.length > most) break;
    front.forEach(([, path]) => open.add(path));
    shown += inside.length;
    front = inside;
  }
  if (!open.size) open.add(pathOf("", tree));
  return open;
}

/** A node's path from the root: labels may repeat on the way up, and levels tell them apart. */
export function pathOf(above, node) {
  return `${above}\u0000${node.level}\u0001${node.label}`;
}

/** Whether two labels, dropped on one another, can be put together: not onto itself. */
export function dropped(dragged, target) {
  const labels = [...new Set([...dragged, target])];
  return labels.length > 1 ? labels : null;
}
