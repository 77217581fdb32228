// The words of the page for what the policy names by a key. What a setting does to a table the server says.

export const STEPS = [
  { id: "open", name: "Open" },
  { id: "generalize", name: "Generalize" },
  { id: "protect", name: "Protect" },
  { id: "explore", name: "Explore" },
  { id: "release", name: "Release" },
];

export const ROLES = [
  { id: "identifier", name: "identifier", letter: "i", means: "names a person; removed" },
  {
    id: "quasi-identifier",
    name: "quasi-identifier",
    letter: "q",
    means: "somebody else may know it; changed until nobody stands alone",
  },
  { id: "confidential", name: "confidential", letter: "c", means: "not to be learnt about anybody" },
  { id: "other", name: "other", letter: "o", means: "released as it is" },
];

export const TYPES = ["continuous", "ordinal", "nominal", "date"];

/** Units of the calendar, and encodings that a file may have. */
export const CALENDAR = ["day", "month", "quarter", "year", "decade"];
export const ENCODINGS = ["utf-8", "utf-16", "latin-1", "windows-1252"];

export const STATES = { queued: "waiting", running: "running", done: "done", failed: "failed", cancelled: "cancelled" };

/** Stages of a run; parts of planning have names of their own, and are told as planning. */
const STAGES = {
  queued: "waiting for its turn",
  compile: "compiling, once for this machine",
  read: "reading the table",
  bind: "checking the policy against the table",
  plan: "looking for the best classes",
  cut: "cutting the table into blocks",
  blocks: "looking for the best classes, block by block",
  borders: "looking at where blocks meet",
  repair: "mending classes that miss a promise",
  refine: "looking for better classes",
  apply: "recoding",
  verify: "checking what was made",
  measure: "measuring risk and loss",
  write: "writing the release",
  report: "writing the reports",
  check: "checking the file that was written",
  explain: "preparing what can be looked at",
};

/** A stage in words. */
export function stageTold(stage) {
  return STAGES[stage] ?? STAGES.plan;
}

const LONGEST = 40; // letters of a name within a sentence
const MOST = 8; // names within a sentence

/** A name as a sentence has it: of a very long one the beginning. */
export function shortName(name) {
  const letters = [...name];
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : name;
}

/** Names in a sentence: a, b and c; of very many the first, and how many more. */
export function listed(names) {
  const some = names.length > MOST + 1 ? [...names.slice(0, MOST), `${names.length - MOST} more`] : names;
  const short = some.map(shortName);
  if (short.length < 2) return short.join("");
  return `${short.slice(0, -1).join(", ")} and ${short.at(-1)}`;
}
