// The form of promises about the population: known from a table of its people, or by its size.

import { send } from "../api.js";
import { h } from "../dom.js";
import { addProblem, app, attempt, getProblems } from "../store.js";
import { HINTS } from "../texts.js";
import { field, makeId, parseTyped, select } from "./fields.js";

const PATH = ["privacy", "population"];
const NUMBER = String.raw`(\d*\.?\d+)`;
const PEOPLE = String.raw`([\d,]+)`;

/** Return the fields of the population; `k` is promised of a table unless another number is set. */
export function population(decided, k) {
  const set = Object.fromEntries(Object.entries(decided ?? {}).filter(([, value]) => value !== null));
  const { table, presence, size, uniques, estimator } = set;
  const counted = set.table ? { table, k: set.k, presence } : {};
  const unique = uniques ? { size, uniques, estimator } : {};
  const estimated = set.alpha ? { size, k: set.k, alpha: set.alpha } : {};
  return [
    text({
      label: "People of the population in each class",
      hint: HINTS.population,
      example: "5 of 83,000,000 at 0.01",
      value: set.alpha ? `${set.k} of ${size} at ${set.alpha}` : "",
      form: new RegExp(`^(\\d+) of ${PEOPLE} at ${NUMBER}$`),
      read: ([, most, people, alpha]) => ({
        ...unique,
        k: Number(most),
        size: parseCount(people),
        alpha: Number(alpha),
      }),
      without: unique,
    }),
    text({
      key: "table",
      label: "Table of the population",
      hint: `${HINTS.population_table} ${app.session.workspace}`,
      example: "people.csv",
      value: table,
      form: /^(.+)$/,
      read: ([, path]) => ({ ...counted, k: counted.k ?? (presence ? undefined : k), table: path }),
      without: {},
    }),
    table &&
      text({
        key: "k",
        label: "People of this table in each class",
        hint: HINTS.population_k,
        example: "not required",
        value: set.k,
        form: /^(.+)$/,
        read: ([, typed]) => ({ ...counted, k: parseTyped(typed) }),
        without: { table, presence },
      }),
    table &&
      text({
        key: "presence",
        label: "Share of these people who are in the table",
        hint: HINTS.presence,
        example: "0.1 to 0.5",
        value: presence ? presence.join(" to ") : "",
        form: new RegExp(`^${NUMBER} to ${NUMBER}$`),
        read: ([, least, most]) => ({ ...counted, presence: [Number(least), Number(most)] }),
        without: { table, k: set.k },
      }),
    text({
      key: "uniques",
      label: "Share of the people who may be unique",
      hint: HINTS.uniques,
      example: "0.001 of 83,000,000",
      value: uniques ? `${uniques} of ${size}` : "",
      form: new RegExp(`^${NUMBER} of ${PEOPLE}$`),
      read: ([, share, people]) => ({ ...estimated, ...unique, uniques: Number(share), size: parseCount(people) }),
      without: estimated,
      extra: uniques ? chooseEstimator({ ...estimated, ...unique }) : null,
    }),
  ];
}

// A field with a text; without the text, the section has the other promises, or is removed.
function text({ key, label, hint, example, value, form, read, without, extra = null }) {
  const path = key ? [...PATH, key] : PATH;
  const change = (event) => {
    const typed = event.target.value.trim();
    if (!typed) return replace(path, without);
    const found = form.exec(typed);
    if (!found) return addProblem(path, [{ what: "this is not understood", fix: `write ${example}` }]);
    return replace(path, read(found));
  };
  return field(
    { id: makeId(path), label, hint, problems: getProblems(...path), extra },
    h("input", { type: "text", autocomplete: "off", placeholder: example, value: value ?? "", on: { change } }),
  );
}

function chooseEstimator(section) {
  const change = (event) => replace([...PATH, "uniques"], { ...section, estimator: event.target.value });
  return select(app.session.choices.estimator, section.estimator, change, null, { "aria-label": "Estimator" });
}

// Problems are shown at the field of `path`.
function replace(path, section) {
  const body = Object.keys(section).length ? { set: [[PATH, section]] } : { unset: [PATH] };
  return attempt(() => send("POST", "/api/decision", body), [path], true);
}

function parseCount(typed) {
  return Number(typed.replaceAll(",", ""));
}
