// Counts by risk as a falling curve: how many records have at least so much. Pure.

/** From [[risk, records]] to [{risk, share}]: the share of the records with at least this risk, from 0 to 1. */
export function atLeast(counts) {
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
