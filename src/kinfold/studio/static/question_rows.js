// The rows that show why a question is asked, from the first rows of the table. Pure.

const MOST = 5;

/** Return the parts of a key of the policy: columns."a.b".role has three. */
export function parseKey(key) {
  return [...key.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|([^.]+)/g)].map(
    ([, one, other, bare]) => one ?? other ?? bare,
  );
}

/** Return the column that a question is about, or null. */
export function findColumn({ question = "", sets, proposed, answers }, names) {
  const keys = (Array.isArray(sets) ? sets : [sets]).map(parseKey);
  const named = keys.find(([section, name]) => section === "columns" && names.includes(name));
  if (named) return named[1];
  const unit = keys.some((parts) => parts.join(".") === "privacy.unit" || parts.join(".") === "privacy.household");
  if (unit) return [proposed, ...answers].find((answer) => names.includes(answer)) ?? null;
  return findName(question, names);
}

// A question about columns of codes lists them after a colon.
function findName(question, names) {
  const listed = question.slice(question.indexOf(":") + 1).match(/[^,?]+/g) ?? [];
  return listed.map((part) => part.trim()).find((part) => names.includes(part)) ?? null;
}

/** Return rows that show why: the rows of one repeated value for a unit; for a column, rows with the values that
 *  the question is about, or with different values. Each row has its index. */
export function pickRows(question, names, cells) {
  const name = findColumn(question, names);
  const place = names.indexOf(name);
  if (place < 0) return { name: null, rows: [] };
  const rows = cells.map((row, index) => ({ index, cells: row })).filter((row) => row.cells[place] !== null);
  const byValue = new Map();
  for (const row of rows) byValue.set(row.cells[place], [...(byValue.get(row.cells[place]) ?? []), row]);
  const keys = (Array.isArray(question.sets) ? question.sets : [question.sets]).map((key) => parseKey(key).at(-1));
  if (keys.some((key) => key === "unit" || key === "household")) {
    const most = [...byValue.values()].sort((one, other) => other.length - one.length)[0] ?? [];
    return { name, rows: most.slice(0, MOST) };
  }
  const texts = question.answers.flatMap((answer) => answer.match(/[^\s,[\]"']+/g) ?? []);
  const meant = rows.filter((row) => texts.includes(row.cells[place]));
  const different = [...byValue.values()].map(([row]) => row);
  return { name, rows: (meant.length ? meant : different).slice(0, MOST) };
}
