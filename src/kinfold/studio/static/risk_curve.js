// The curve of risks: the share of records with at least a risk. Pure.

/** Convert [[risk, records]] to [{risk, share}]: the share of the records with at least this risk. */
export function countAtLeast(counts) {
  const ordered = [...counts].sort(([one], [other]) => one - other);
  const total = ordered.reduce((sum, [, records]) => sum + records, 0);
  if (!total) return [];
  const points = [{ risk: 0, share: 1 }];
  let left = total;
  for (const [risk, records] of ordered) {
    points.push({ risk, share: left / total });
    left -= records;
  }
  points.push({ risk: ordered.at(-1)[0], share: 0 }, { risk: 1, share: 0 });
  return points;
}
