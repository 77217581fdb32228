// Texts of the page for keys of the policy and stages of a run. Texts about the table come from the server.

export const STEPS = [
  { id: "open", name: "Open" },
  { id: "generalize", name: "Generalize" },
  { id: "protect", name: "Protect" },
  { id: "explore", name: "Explore" },
  { id: "release", name: "Release" },
];

export const ROLES = [
  { id: "identifier", name: "identifier", letter: "i", means: "identifies a person; removed" },
  {
    id: "quasi-identifier",
    name: "quasi-identifier",
    letter: "q",
    means: "others may know it; changed until no record is unique",
  },
  { id: "confidential", name: "confidential", letter: "c", means: "must not be disclosed about a person" },
  { id: "other", name: "other", letter: "o", means: "released unchanged" },
  { id: "weight", name: "weight", letter: "w", means: "people per record, for risk measures; removed, or by class" },
  { id: "remove", name: "remove", letter: "r", means: "not released" },
  { id: "unit", name: "unit (person)", letter: "u", means: "names the person, who can have several rows; removed" },
  { id: "household", name: "household", letter: "h", means: "names the household; removed" },
];

export const TYPES = ["continuous", "ordinal", "nominal", "date"];

/** Units of the calendar, and encodings of files. */
export const CALENDAR = ["day", "month", "quarter", "year", "5 years", "decade", "20 years", "40 years"];
export const ENCODINGS = ["utf-8", "utf-16", "latin-1", "windows-1252"];

export const STATES = { queued: "waiting", running: "running", done: "done", failed: "failed", cancelled: "cancelled" };

/** Hints for keys of the policy, and for each value of some keys. */
export const HINTS = {
  unit: "The promises hold for people, even if a person has several rows.",
  average_risk: "The largest average risk of a record: classes over records.",
  risk_share: "At most the first share of the records has a risk above the second number.",
  combinations: "k holds for every combination of so many quasi-identifiers, instead of all together.",
  population: "Enough records that so many of all people share their values (k-map), up to a risk of a wrong estimate.",
  population_table: "A file with a row for each person and all quasi-identifiers, in this folder or below:",
  population_k: "At least this many people of the table fit each class (k-map).",
  presence: "Of the people who fit a class, the least and the largest share that are its records (delta-presence).",
  uniques: "The largest share of all people who may be unique in the population, by an estimate.",
  individual_risk: "The largest chance that a record is found in the population; needs a column of weights.",
  weighted: "The levels also hold with each record counted by its weight; needs a column of weights.",
  p: "Each class has at least this many values of each confidential column.",
  alpha: "No confidential value makes up more than this share of a class.",
  household: "A column that names households: its attributes are the same for all members.",
  household_k: "At least this many households share each class of household attributes.",
  people: "The rows of a person are recoded alike, and k, l and t count people.",
  events_known: "Others may know this many events of a person.",
  days_known: "Others may know the dates of these events to within so many days: 1 for the exact day, 0 for no dates.",
  shift_days: "The first event of each person moves by a random number of days, up to this.",
  surrogate: "A new key stands in the place of the number of a person or household.",
  refine: "Keeps the promises and loses less information; takes the given number of seconds.",
  prove: "Seconds after the run to prove how far the loss is from the minimum: the bound in the loss curve.",
  suppression: "At most this many records, or this share of them, may be suppressed.",
  parts: "Their number, or the size of each: 16, 256MB. Empty: one file.",
  missing: {
    refuse: "The run stops, so that you can decide.",
    separate: "Records that lack the same values form their own classes.",
    mean: "Missing values are released as the mean of their class, and the report says so.",
    drop: "Records with a missing value are dropped.",
  },
  average: {
    mean: "The mean of the class.",
    median: "The middle value of the class.",
    "convex-median": "The middle value, weighted so that the spread of an ordered scale is kept.",
    mode: "The most frequent value of the class.",
    generalize: "The narrowest true statement about the whole class.",
    suppress: "The value if the whole class has it; otherwise it is missing.",
  },
  others: {
    refuse: "A column that the policy does not name stops the run.",
    release: "Columns that the policy does not name are released unchanged.",
    drop: "Columns that the policy does not name are dropped.",
  },
};

/** Stages of a run; a stage that is not listed is part of planning. */
const STAGES = {
  queued: "waiting in the queue",
  compile: "compiling, once for this machine",
  read: "reading the table",
  bind: "checking the policy against the table",
  plan: "searching for the best classes",
  cut: "cutting the table into blocks",
  blocks: "searching for the best classes, block by block",
  borders: "grouping across blocks",
  repair: "repairing classes that break a promise",
  refine: "improving the classes",
  apply: "recoding",
  verify: "verifying the release",
  measure: "measuring risk and loss",
  write: "writing the release",
  report: "writing the reports",
  check: "verifying the written file",
  explain: "preparing the results",
};

/** Describe a stage. */
export function describeStage(stage) {
  return STAGES[stage] ?? STAGES.plan;
}

const MAX_NAME_LENGTH = 40; // characters of a name in a sentence
const MAX_NAMES = 8; // in a sentence

/** Shorten a very long name for a sentence. */
export function shortenName(name) {
  const letters = [...name];
  return letters.length > MAX_NAME_LENGTH ? `${letters.slice(0, MAX_NAME_LENGTH - 1).join("")}…` : name;
}

/** Join names for a sentence: a, b and c; of many only the first and the number of the others. */
export function joinNames(names) {
  const long = names.length > MAX_NAMES + 1;
  const first = long ? [...names.slice(0, MAX_NAMES), `${names.length - MAX_NAMES} more`] : names;
  return joinParts(first.map(shortenName));
}

/** Join all parts of a sentence: a, b and c. */
export function joinParts(parts) {
  if (parts.length < 2) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
