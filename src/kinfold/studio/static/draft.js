// The draft of the policy: a text that was typed and is not the policy, because it is not sent yet or not valid. The
// server keeps one that is not valid, so that a reload and other tabs show it; until then this tab does.

import { send } from "./api.js";
import { answered, app, note, refresh } from "./store.js";

const PAUSE = 500; // milliseconds without a key, then it is sent
const KEPT = "kinfold-draft"; // in the storage of this tab, until the server has it

let timer = null;
let sending = Promise.resolve();

/** The draft, or null where the text on the page is the policy. */
export function draftOf() {
  return app.ui.draft ?? app.session?.policy?.draft ?? null;
}

/** Take a text as it is typed. */
export function typeDraft(text) {
  sessionStorage.setItem(KEPT, JSON.stringify({ text, instead: app.session.policy.text }));
  note({ draft: { text, problems: draftOf()?.problems ?? [], waiting: true } });
  clearTimeout(timer);
  timer = setTimeout(sendDraft, PAUSE);
}

/** Take up what was typed before a reload, unless the policy is another one by now. */
export function recallDraft() {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  if (kept && kept.instead === app.session?.policy?.text) typeDraft(kept.text);
  else sessionStorage.removeItem(KEPT);
}

/** Send what was typed: a valid text becomes the policy, one that is not valid stays the draft. */
export function sendDraft() {
  clearTimeout(timer);
  const { draft } = app.ui;
  if (draft?.waiting) {
    note({ draft: { ...draft, waiting: false } });
    sending = sent(draft.text);
  }
  return sending;
}

async function sent(text) {
  let problems = [];
  try {
    await send("PUT", "/api/policy", { text });
  } catch (error) {
    problems = error.problems ?? [{ what: String(error) }];
  }
  await refresh();
  if (app.ui.draft?.text !== text) return; // somebody types on
  const known = !problems.length || app.session?.policy?.draft?.text === text;
  if (known) sessionStorage.removeItem(KEPT);
  note({ draft: known ? null : { text, problems } });
}

/** Go back to the last valid policy. */
export async function dropDraft() {
  clearTimeout(timer);
  sessionStorage.removeItem(KEPT);
  note({ draft: null });
  await send("DELETE", "/api/policy/draft").catch(() => {}); // it comes back with the next refresh
  await refresh();
}

/** Wait until all that was typed is decided or refused. */
export async function everythingSent() {
  await sendDraft();
  await answered();
}

/** Why the policy is not what the page shows, as sentences; none where it is. A run would be of the policy. */
export function differences() {
  const draft = draftOf();
  const line = draft?.problems.find((problem) => problem.line)?.line;
  const text = draft?.problems.length ? [`the policy text is not valid${line ? ` (line ${line})` : ""}`] : [];
  const fields = Object.values(app.problems).map(({ path }) => `the value of ${path.join(".")} was refused`);
  return [...text, ...fields];
}
