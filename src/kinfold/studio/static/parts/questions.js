// The questions of the policy, with a button for each answer. Nothing is released while one is open.

import { h } from "../dom.js";
import { plural } from "../numbers.js";
import { findColumn, pickRows } from "../question_rows.js";
import { app, decide, query } from "../store.js";
import { field } from "./fields.js";
import { rowTable } from "./row_table.js";
import { button, disclosure, section } from "./sections.js";

const MOST_COLUMNS = 9;

/** Count the open questions. */
export function countOpen(session) {
  return session.questions.filter(isOpen).length;
}

function isOpen(one) {
  return !one.answer && !one.accepted;
}

/** Return the section of the questions; null without questions. */
export function questions(session) {
  const all = session.questions;
  if (!all.length) return null;
  const open = countOpen(session);
  const state = open ? `${plural(open, "question is", "questions are")} open.` : "All questions are answered.";
  return section(
    "questions",
    "Questions",
    ["Only you can answer them. Nothing is released while one is open.", h("p", { role: "status" }, state)],
    h(
      "ul",
      { class: "plain questions" },
      all.map((one) => question(one, one === all.find(isOpen))),
    ),
    h(
      "div",
      { class: "line review" },
      reviewer(session),
      open
        ? button("Accept all proposals without review", () => decide([[["review", "accept_proposal"], true]]), {
            slim: true,
          })
        : null,
    ),
  );
}

function question(one, first) {
  const id = `question-${one.name}`;
  const [asked, further] = splitQuestion(one.question);
  return h(
    "li",
    { key: one.name, class: one.answer || one.accepted ? "question" : "question open" },
    h("h3", { id, dir: "auto" }, asked),
    h("p", { class: "soft small", dir: "auto" }, [one.seen, further].filter(Boolean).join(". ")),
    h(
      "div",
      { class: "buttons", role: "group", "aria-labelledby": id },
      one.answers.map((answer) => choice(one, answer)),
    ),
    one.accepted ? h("p", { class: "alarm small" }, "The proposal is accepted without review.") : null,
    isOpen(one) ? evidence(one, first) : null,
  );
}

/** Split a question from the advice that follows it. */
export function splitQuestion(text) {
  const end = text.search(/\?(\s|$)/) + 1;
  return end ? [text.slice(0, end), text.slice(end).trim()] : [text, ""];
}

// A few rows of the table, with the column in question first.
function evidence(one, first) {
  const names = app.session.columns.map((column) => column.name);
  if (!findColumn(one, names)) return null;
  return disclosure(
    `rows-${one.name}`,
    "Rows that show why",
    "",
    () => {
      const answer = query("/api/rows?from=0&count=200");
      if (!answer.value) return null;
      const { name, rows } = pickRows(one, names, answer.value.cells);
      const place = names.indexOf(name);
      const order = [place, ...names.keys()].filter((index, at) => at === 0 || index !== place).slice(0, MOST_COLUMNS);
      return rowTable("Rows that show why", order, names, rows);
    },
    first,
  );
}

function choice(one, answer) {
  const proposed = answer === one.proposed;
  const chosen = one.answer ? isMeant(one, answer) : one.accepted && proposed;
  return h(
    "button",
    {
      type: "button",
      class: `button slim ${chosen ? "main" : ""}`,
      "aria-pressed": String(Boolean(chosen)),
      on: { click: () => decide([[["review", one.name, "answer"], answer]]) },
    },
    answer,
    proposed ? h("span", { class: "small" }, " (proposed)") : null,
  );
}

// A text of the policy may say yes or no instead of an answer.
function isMeant(one, answer) {
  const word = one.answer.trim().toLowerCase();
  if (one.answers.includes(one.answer.trim())) return one.answer.trim() === answer;
  return (word === "no") !== (answer === one.proposed);
}

function reviewer(session) {
  const change = (event) => decide([[["review", "reviewer"], event.target.value.trim() || null]]);
  return field(
    { id: "reviewer", label: "Reviewer", hint: "Your name, for the audit and the internal report. Not released." },
    h("input", {
      type: "text",
      autocomplete: "name",
      value: session.policy.complete.review.reviewer ?? "",
      on: { change },
    }),
  );
}
