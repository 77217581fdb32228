// The text of the policy: lines, and where a place of the text is. Pure.

/** Problems by the line they are at; those without a line are under 0. */
export function byLine(problems) {
  const lines = new Map();
  for (const problem of problems) {
    const line = problem.line ?? 0;
    lines.set(line, [...(lines.get(line) ?? []), problem]);
  }
  return lines;
}

/** Where a line begins and ends in the text; lines count from 1. */
export function rangeOf(text, line) {
  const lines = text.split("\n");
  const index = Math.min(Math.max(line, 1), lines.length) - 1;
  const start = lines.slice(0, index).reduce((sum, one) => sum + one.length + 1, 0);
  return [start, start + lines[index].length];
}
