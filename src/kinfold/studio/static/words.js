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

export const STAGES = {
  read: "reading the table",
  bind: "checking the policy against the table",
  plan: "looking for the best classes",
  apply: "recoding",
  verify: "checking what was made",
  measure: "measuring risk and loss",
  report: "writing the reports",
  save: "writing the release and checking it",
};

/** Names in a sentence: a, b and c. */
export function listed(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
