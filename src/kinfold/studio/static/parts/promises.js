// The form of the promises: each key with its meaning and the remaining risk, from the server.

import { h } from "../dom.js";
import { addProblem, app, decide, getProblems } from "../store.js";
import { HINTS } from "../texts.js";
import { decideNumber, field, makeId, numberField, select } from "./fields.js";
import { population } from "./population_form.js";
import { disclosure } from "./sections.js";

/** Return the allowed values of a key. */
export function getChoices(key) {
  return app.session.choices[key] ?? [];
}

/** Return the form of the promises. */
export function promises(complete, columns) {
  const { privacy } = complete;
  const meanings = app.session.policy.promises;
  const l = isSet(privacy.l);
  return [
    h(
      "div",
      { class: "form" },
      numberField({
        path: ["privacy", "k"],
        label: "k: records that share each combination",
        term: "k-anonymity",
        hint: meanings.k,
        value: privacy.k,
        min: 2,
        step: 1,
      }),
      numberField({
        path: ["privacy", "l"],
        label: "l: different confidential values in each class",
        term: "l-diversity",
        hint: meanings.l,
        value: privacy.l,
        min: 1,
        placeholder: "not required",
        extra: l ? chooseKind("l_kind", privacy, "Kind of diversity") : null,
      }),
      l && privacy.l_kind === "recursive"
        ? numberField({ path: ["privacy", "c"], label: "c of recursive diversity", value: privacy.c, min: 0 })
        : null,
      numberField({
        path: ["privacy", "t"],
        label: "t: distance of a class from the whole table",
        term: "t-closeness",
        hint: meanings.t,
        value: privacy.t,
        min: 0,
        max: 1,
        step: 0.05,
        placeholder: "not required",
      }),
    ),
    ownLevels(columns),
    disclosure("more-promises", "More promises", describeMore(privacy), () => more(privacy, meanings)),
  ];
}

// The promises in the closed part that are set.
function describeMore(privacy) {
  const keys = ["beta", "delta", "average_risk", "risk_share", "p", "alpha", "combinations", "population"];
  const set = [...keys, "individual_risk", "weighted"].filter((key) => isSet(privacy[key]) && privacy[key] !== false);
  return set.length ? set.join(", ").replaceAll("_", " ") : "beta, delta, average risk and others";
}

function more(privacy, meanings) {
  const number = (key, label, hint, further = {}) =>
    numberField({
      path: ["privacy", key],
      label,
      hint,
      value: privacy[key],
      min: 0,
      placeholder: "not required",
      ...further,
    });
  return h(
    "div",
    { class: "form" },
    number("beta", "beta: largest gain of a confidential value in a class", meanings.beta, {
      extra: isSet(privacy.beta) ? chooseKind("beta_kind", privacy, "Kind of likeness") : null,
    }),
    number("delta", "delta: every confidential value in each class", meanings.delta),
    number("average_risk", "Average risk", HINTS.average_risk, { max: 1 }),
    riskShare(privacy.risk_share),
    number("p", "p: different values, as in p-sensitive k-anonymity", HINTS.p, { step: 1 }),
    number("alpha", "alpha: largest share of one confidential value in a class", HINTS.alpha, { max: 1 }),
    combinations(privacy.combinations),
    population(privacy.population, privacy.k),
    number("individual_risk", "Individual risk by sampling weights", HINTS.individual_risk, { max: 1 }),
    weighted(privacy.weighted),
  );
}

// The size alone: a confidence that the policy has stays.
function combinations(decided) {
  const path = ["privacy", "combinations"];
  const change = (event) => {
    const size = Number(event.target.value);
    return decide([[path, size ? { ...decided, size } : null]], true);
  };
  return field(
    {
      id: makeId(path),
      label: "Quasi-identifiers that others know together",
      hint: HINTS.combinations,
      problems: getProblems(...path),
    },
    h("input", { type: "number", min: "1", step: "1", placeholder: "all", value: decided?.size ?? "", on: { change } }),
  );
}

function weighted(decided) {
  const path = ["privacy", "weighted"];
  const change = (event) => decide([[path, event.target.checked || null]], true);
  return field(
    { id: makeId(path), label: "Also by sampling weights", hint: HINTS.weighted, problems: getProblems(...path) },
    h("input", { type: "checkbox", checked: Boolean(decided), on: { change } }),
  );
}

// Both numbers are set together: at most this share of the records above that risk.
function riskShare(decided) {
  const path = ["privacy", "risk_share"];
  const change = (event) => {
    const text = event.target.value.trim();
    if (!text) return decide([[path, null]], true);
    const [most, above] = text.split("above").map(Number);
    if (!(most >= 0 && above > 0))
      return addProblem(path, [{ what: "this is not understood", fix: "write 0.05 above 0.2" }]);
    return decide([[path, { above, most }]], true);
  };
  const value = decided ? `${decided.most} above ${decided.above}` : "";
  return field(
    {
      id: makeId(path),
      label: "Share of the records above a risk",
      hint: HINTS.risk_share,
      problems: getProblems(...path),
    },
    h("input", { type: "text", autocomplete: "off", placeholder: "0.05 above 0.2", value, on: { change } }),
  );
}

function isSet(value) {
  return value !== null && value !== undefined;
}

function chooseKind(key, privacy, label) {
  return select(getChoices(key), privacy[key], (event) => decide([[["privacy", key], event.target.value]]), null, {
    "aria-label": label,
  });
}

function ownLevels(columns) {
  const confidential = columns.filter((column) => column.role === "confidential");
  if (!confidential.length)
    return h("p", { class: "soft small" }, "No column is confidential: l and t have nothing to protect.");
  const rows = confidential.map((column) => {
    const path = (key) => ["columns", column.name, key];
    return h(
      "tr",
      { key: column.name },
      h("th", { scope: "row", dir: "auto" }, column.name),
      h("td", { "data-title": "l" }, cell(path("l"), `l of ${column.name}`, column.declared?.l)),
      h("td", { "data-title": "t" }, cell(path("t"), `t of ${column.name}`, column.declared?.t)),
    );
  });
  return h(
    "table",
    { class: "stacked dense own" },
    h("caption", {}, "Levels of single confidential columns"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["column", "l", "t"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function cell(path, label, value) {
  const problems = getProblems(...path);
  return [
    h("input", {
      type: "number",
      step: "any",
      min: "0",
      id: makeId(path),
      "aria-label": label,
      "aria-invalid": problems.length ? "true" : null,
      placeholder: "as above",
      value: value ?? "",
      on: { change: (event) => decideNumber(path, event.target) },
    }),
    problems.length
      ? h("p", { class: "wrong small alarm", role: "alert" }, problems.map((problem) => problem.what).join(" "))
      : null,
  ];
}
