// The draft of the policy: a text that is not sent yet or not valid. The server keeps an invalid text, so that a reload
// and other tabs show it. Until it is sent, this tab keeps it.

import { send } from "./api.js";
import { waitForAnswers, app, updateUi, refresh } from "./store.js";

const SEND_DELAY = 500; // milliseconds after the last key
const STORAGE_KEY = "kinfold-draft"; // in this tab, until the server has the text

let timer = null;
let sending = Promise.resolve();

/** Return the draft, or null if the text on the page is the policy. */
export function getDraft() {
  return app.ui.draft ?? app.session?.policy?.draft ?? null;
}

/** Save a text while it is typed, and send it soon. */
export function typeDraft(text) {
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ text, instead: app.session.policy.text }));
  updateUi({ draft: { text, problems: getDraft()?.problems ?? [], waiting: true } });
  clearTimeout(timer);
  timer = setTimeout(sendDraft, SEND_DELAY);
}

/** Restore the text that was typed before a reload, unless the policy has changed. */
export function restoreDraft() {
  const kept = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null");
  if (kept && kept.instead === app.session?.policy?.text) typeDraft(kept.text);
  else sessionStorage.removeItem(STORAGE_KEY);
}

/** Send the typed text: a valid text becomes the policy, an invalid one stays the draft. */
export function sendDraft() {
  clearTimeout(timer);
  const { draft } = app.ui;
  if (draft?.waiting) {
    updateUi({ draft: { ...draft, waiting: false } });
    sending = putDraft(draft.text);
  }
  return sending;
}

async function putDraft(text) {
  let problems = [];
  try {
    await send("PUT", "/api/policy", { text });
  } catch (error) {
    problems = error.problems ?? [{ what: String(error) }];
  }
  await refresh();
  if (app.ui.draft?.text !== text) return; // it was edited again
  const known = !problems.length || app.session?.policy?.draft?.text === text;
  if (known) sessionStorage.removeItem(STORAGE_KEY);
  updateUi({ draft: known ? null : { text, problems } });
}

/** Go back to the last valid policy. */
export async function dropDraft() {
  clearTimeout(timer);
  sessionStorage.removeItem(STORAGE_KEY);
  updateUi({ draft: null });
  await send("DELETE", "/api/policy/draft").catch(() => {}); // the next refresh shows it again
  await refresh();
}

/** Wait until everything that was typed is accepted or refused. */
export async function sendEverything() {
  await sendDraft();
  await waitForAnswers();
}

/** Return the reasons why the policy differs from the page, as sentences. */
export function listDifferences() {
  const draft = getDraft();
  const line = draft?.problems.find((problem) => problem.line)?.line;
  const text = draft?.problems.length ? [`the policy text is not valid${line ? ` (line ${line})` : ""}`] : [];
  const fields = Object.values(app.problems).map(({ path }) => `the value of ${path.join(".")} was refused`);
  return [...text, ...fields];
}
