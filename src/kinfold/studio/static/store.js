// The state of the page: the session from the server, cached answers, and what is selected.

import { Refusal, get, send } from "./api.js";

export const app = {
  session: null,
  lost: null, // problems, if the session has ended
  step: "open",
  chosen: null, // the column or the run in the address
  ui: {}, // what is open, typed or selected; lost at a reload
  curves: {}, // by run: points of seconds and loss
  notices: [],
  problems: {}, // by key of the policy: the problems of a refused value, and the value in the policy
  visited: new Set(), // steps that were left: their headline is small
  discarded: 0, // how often refused values were discarded; the page is created again then
};

let draw = () => {};
let waiting = false;
const answers = new Map();

/** Set the function that draws the page. */
export function setPainter(painter) {
  draw = painter;
}

/** Draw the page soon; several changes are drawn together. */
export function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

/** Change what is open, typed or selected. */
export function updateUi(changes) {
  Object.assign(app.ui, changes);
  redraw();
}

/** Get the session from the server if it has changed. */
export async function refresh() {
  try {
    const since = app.session ? `?since=${app.session.version}` : "";
    const session = await get(`/api/session${since}`);
    app.ui.away = false;
    if (session && (!app.session || session.version >= app.session.version)) app.session = session;
    dropOutdatedProblems();
  } catch (error) {
    if (error.status === 401 || error.status === 403) app.lost = error.problems;
    else showError(error);
  }
  redraw();
}

/** Return what the answer of an address depends on in a session, as a text. */
export function getDependency(address, session) {
  const { source, runs, policy, log } = session;
  if (address.startsWith("/api/map")) return JSON.stringify(runs.map(({ id, state }) => [id, state]));
  const table = [log?.[0]?.at, source?.name, source?.bytes, source?.rows, source?.options];
  return JSON.stringify(address.startsWith("/api/rows") ? table : [table, policy?.text]);
}

/** Return the last answer of an address, and get a new one if what it depends on has changed (`fixed`: never). */
export function query(address, fixed = false) {
  const version = fixed || !app.session ? "fixed" : getDependency(address, app.session);
  const known = answers.get(address) ?? { value: undefined, problems: [], version: null, busy: false };
  answers.set(address, known);
  if (known.version !== version && !known.busy) fetchAnswer(address, known, version);
  return known;
}

async function fetchAnswer(address, known, version) {
  known.busy = true;
  try {
    known.value = await get(address);
    known.problems = [];
  } catch (error) {
    known.problems = error instanceof Refusal ? error.problems : [{ what: String(error) }];
  }
  known.version = version;
  known.busy = false;
  redraw();
}

/** Drop the answers of addresses with this prefix. */
export function dropAnswers(prefix) {
  for (const address of [...answers.keys()]) if (address.startsWith(prefix)) answers.delete(address);
}

const pending = new Set(); // requests without an answer

/** Do something that the server may refuse, and show its problems. Return whether it was done.
 *  `paths` are the keys of the policy that it changes. */
export function attempt(action, paths = [], inline = false) {
  const done = runAttempt(action, paths, inline);
  pending.add(done);
  return done.finally(() => pending.delete(done));
}

async function runAttempt(action, paths, inline) {
  try {
    const answer = await action();
    for (const path of paths) delete app.problems[path.join(".")];
    await refresh();
    return answer ?? true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    for (const path of paths) addProblem(path, error.problems);
    if (!inline) showError(error);
    redraw();
    return false;
  }
}

/** Wait for the answers to all requests. */
export async function waitForAnswers() {
  await Promise.allSettled([...pending]);
}

/** Save why the value of a field is not in the policy. */
export function addProblem(path, problems) {
  app.problems[path.join(".")] = { path, problems, instead: getPolicyValue(path) };
  redraw();
}

/** Show the policy in every field again. */
export function discardProblems() {
  app.problems = {};
  app.discarded += 1;
  redraw();
}

function getPolicyValue(path) {
  const value = path.reduce((part, name) => part?.[name], app.session?.policy?.complete);
  return JSON.stringify(value ?? null);
}

// A field shows the policy again when the value in the policy changes.
function dropOutdatedProblems() {
  for (const [key, { path, instead }] of Object.entries(app.problems))
    if (getPolicyValue(path) !== instead) delete app.problems[key];
}

/** Set keys of the policy: `set` is a list of [path, value], a path a list of names; null removes the key.
 *  `inline`: problems are shown at the field, not as a notice. */
export function decide(set, inline = false) {
  const body = {
    set: set.filter(([, value]) => value !== null),
    unset: set.filter(([, value]) => value === null).map(([path]) => path),
  };
  return attempt(
    () => send("POST", "/api/decision", body),
    set.map(([path]) => path),
    inline,
  );
}

/** Return the problems of a key of the policy. */
export function getProblems(...path) {
  return app.problems[path.join(".")]?.problems ?? [];
}

/** Show a notice for a while. */
export function notify(text, fix = "", wrong = false) {
  const notice = { text, fix, wrong, id: Math.random() };
  app.notices = [...app.notices.slice(-3), notice];
  if (!wrong) setTimeout(() => dismiss(notice), 8000);
  redraw();
}

/** Remove a notice. */
export function dismiss(notice) {
  app.notices = app.notices.filter((other) => other !== notice);
  redraw();
}

/** Show the problems of an error. */
export function showError(error) {
  if (error.status === 0) return updateUi({ away: true }); // one message is enough: the bar of the page
  const problems = error.problems ?? [{ what: String(error.message ?? error) }];
  for (const problem of problems) notify(problem.what, problem.fix ?? "", true);
}

/** Go to a step; it is in the address of the page, so that back, forward and reload work. */
export function go(step, chosen = null) {
  location.hash = getAddress(step, chosen);
}

/** Return the address of a step and of a selection. */
export function getAddress(step, chosen = null) {
  return chosen === null ? `#${step}` : `#${step}/${encodeURIComponent(chosen)}`;
}
