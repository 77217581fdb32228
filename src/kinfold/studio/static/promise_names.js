// The names of the promises that a policy makes, for a sentence. Pure.

import { digits, share } from "./numbers.js";

const isSet = (value) => value !== null && value !== undefined;

/** Return the names of every promise of a policy, as the check names them. */
export function namePromises({ privacy, columns = {} }, known) {
  const confidential = known.filter((column) => column.role === "confidential").map((column) => column.name);
  const { k, unit, household, household_k: households } = privacy;
  const counted = unit ? ` (people, by ${unit})` : "";
  const few = privacy.combinations;
  return [
    few
      ? `${digits(k)}-anonymity of each combination of at most ${digits(few.size)} quasi-identifiers`
      : `${digits(k)}-anonymity${counted}`,
    few?.confidence ? `at most ${share(few.confidence)} of such a combination with one confidential value` : null,
    households ? `${digits(households)}-anonymity of households, by ${household}` : null,
    ...confidential.flatMap((name) => nameOf(name, privacy, columns[name] ?? {})),
    isSet(privacy.average_risk) ? `an average risk of at most ${share(privacy.average_risk)}` : null,
    privacy.risk_share
      ? `at most ${share(privacy.risk_share.most)} of the records at a risk above ${share(privacy.risk_share.above)}`
      : null,
    privacy.weighted ? "these levels by sampling weights, too" : null,
    isSet(privacy.individual_risk) ? `an individual risk of at most ${share(privacy.individual_risk)}` : null,
    privacy.population ? "promises about the population" : null,
    privacy.events_known ? `protection from those who know ${digits(privacy.events_known)} events of a person` : null,
  ].filter(Boolean);
}

function nameOf(name, privacy, own) {
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
