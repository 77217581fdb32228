// The names of the promises that a policy makes, for a sentence. Pure.

import { digits, plural, share } from "./numbers.js";
import { shortenName } from "./texts.js";

const isSet = (value) => value !== null && value !== undefined;

/** Return the names of every promise of a policy, as the check names them. */
export function namePromises({ privacy, columns = {} }, known) {
  const confidential = known.filter((column) => column.role === "confidential").map((column) => column.name);
  const { unit, household, household_k: households } = privacy;
  return [
    nameAnonymity(privacy, unit),
    ...nameCombinations(privacy.combinations, confidential),
    ...namePopulation(privacy.population),
    households ? `${digits(households)}-anonymity of households, by ${household}` : null,
    ...confidential.flatMap((name) => nameOf(name, privacy, columns[name] ?? {})),
    isSet(privacy.average_risk) ? `an average risk of at most ${share(privacy.average_risk)}` : null,
    privacy.risk_share
      ? `at most ${share(privacy.risk_share.most)} of the records at a risk above ${share(privacy.risk_share.above)}`
      : null,
    privacy.weighted ? "these levels by sampling weights, too" : null,
    isSet(privacy.individual_risk) ? `an individual risk of at most ${share(privacy.individual_risk)}` : null,
    privacy.events_known ? `protection from those who know ${digits(privacy.events_known)} events of a person` : null,
  ].filter(Boolean);
}

// With combinations, k is promised of these alone, not of all quasi-identifiers together.
function nameAnonymity({ k, combinations }, unit) {
  if (combinations) return `${digits(k)}-anonymity of every combination of at most ${nameSize(combinations)}`;
  return `${digits(k)}-anonymity${unit ? ` (people, by ${unit})` : ""}`;
}

function nameSize({ size }) {
  return plural(size, "quasi-identifier");
}

function nameCombinations(combinations, confidential) {
  if (!isSet(combinations?.confidence)) return [];
  const most = `confidence of at most ${digits(combinations.confidence)}`;
  return confidential.map((name) => `${most} in ${shortenName(name)} by ${nameSize(combinations)}`);
}

function namePopulation(population) {
  if (!population) return [];
  const { k, size, alpha, presence, uniques } = population;
  const whole = isSet(size) ? `${digits(k)} of ${digits(size)} people` : `${digits(k)} people of the population`;
  return [
    isSet(k) ? `${whole} in every class${isSet(size) ? ` (estimated, risk ${alpha})` : ""}` : null,
    presence ? `presence from ${presence[0]} to ${presence[1]}` : null,
    isSet(uniques) ? `at most ${share(uniques)} of the population unique` : null,
  ];
}

function nameOf(column, privacy, own) {
  const name = shortenName(column);
  const [l, t] = [own.l ?? privacy.l, own.t ?? privacy.t];
  return [
    isSet(l) ? `${privacy.l_kind} ${digits(l)}-diversity of ${name}` : null,
    isSet(t) ? `${digits(t)}-closeness of ${name}` : null,
    isSet(privacy.p) ? `${digits(privacy.p)}-sensitivity of ${name}` : null,
    isSet(privacy.alpha) ? `at most ${share(privacy.alpha)} of a class with one value of ${name}` : null,
    isSet(privacy.beta) ? `${privacy.beta_kind} ${digits(privacy.beta)}-likeness of ${name}` : null,
    isSet(privacy.delta) ? `${digits(privacy.delta)}-disclosure privacy of ${name}` : null,
  ];
}
