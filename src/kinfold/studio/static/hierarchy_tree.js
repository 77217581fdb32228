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

const COLLATOR = new Intl.Collator("en", { numeric: true });
const NUMBER = /^[^\d*]*?(-?\d+(?:\.\d+)?)/;

/** Compare labels in natural order: by the declared order, their first number, or as texts; * is last. */
export function compareLabels(one, other, order = []) {
  const [first, second] = [order.indexOf(one), order.indexOf(other)];
  if (first >= 0 && second >= 0) return first - second;
  if ((one === "*") !== (other === "*")) return one === "*" ? 1 : -1;
  const [left, right] = [one, other].map((label) => Number(NUMBER.exec(label)?.[1] ?? NaN));
  if (!Number.isNaN(left - right) && left !== right) return left - right;
  const [low, high] = [one, other].map((label) => (/^\s*[<≤]/.test(label) ? 0 : 1));
  return low - high || COLLATOR.compare(one, other);
}

/** Return a tree with its labels in natural order, and each chain of single children as one node. */
export function arrangeTree(node, order = []) {
  const children = (node.children ?? []).map((child) => arrangeTree(child, order));
  children.sort((one, other) => compareLabels(one.label, other.label, order));
  const [only] = children;
  if (children.length !== 1 || node.more || node.label === "*") return { ...node, children };
  const label = only.label === node.label ? node.label : `${node.label} › ${only.label}`;
  return { ...only, label, level: node.level };
}
