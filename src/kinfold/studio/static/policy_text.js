// Lines of the policy's text. Pure.

/** Group problems by line; problems without a line are under 0. */
export function groupByLine(problems) {
  const lines = new Map();
  for (const problem of problems) {
    const line = problem.line ?? 0;
    lines.set(line, [...(lines.get(line) ?? []), problem]);
  }
  return lines;
}

/** Return the start and the end of a line in the text; lines count from 1. */
export function getLineRange(text, line) {
  const lines = text.split("\n");
  const index = Math.min(Math.max(line, 1), lines.length) - 1;
  const start = lines.slice(0, index).reduce((sum, one) => sum + one.length + 1, 0);
  return [start, start + lines[index].length];
}
