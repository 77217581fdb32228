// What the page knows: the session as the server tells it, what was looked up, and where the reader is.

import { Refused, get, send } from "./api.js";

export const app = {
  session: null,
  lost: null, // why there is no session any more
  step: "open",
  chosen: null, // the column or the run that the address names
  ui: {}, // what is open, typed or selected; nothing that a reload must keep
  heard: {}, // by run: its curve of seconds and loss, as far as it was heard
  notices: [],
  problems: {}, // by the key of the policy: what was refused last, and what the policy says there
  discarded: 0, // how often refused values were discarded: the page is made anew then, by the policy
};

let draw = () => {};
let waiting = false;
const looks = new Map();

/** Say what draws the page. */
export function drawnBy(painter) {
  draw = painter;
}

/** Draw the page soon; many changes at once are drawn once. */
export function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

/** Change what is open, typed or selected. */
export function note(changes) {
  Object.assign(app.ui, changes);
  redraw();
}

/** Fetch the session if it has changed. */
export async function refresh() {
  try {
    const since = app.session ? `?since=${app.session.version}` : "";
    const session = await get(`/api/session${since}`);
    if (session && (!app.session || session.version >= app.session.version)) app.session = session;
    forgetOutdated();
  } catch (error) {
    if (error.status === 401 || error.status === 403) app.lost = error.problems;
    else complain(error);
  }
  redraw();
}

/** What an address answers: the last answer at once, a new one when the session has changed (`fixed`: never). */
export function look(address, fixed = false) {
  const version = fixed ? "fixed" : app.session?.version;
  const known = looks.get(address) ?? { value: undefined, problems: [], version: null, busy: false };
  looks.set(address, known);
  if (known.version !== version && !known.busy) fetchInto(address, known, version);
  return known;
}

async function fetchInto(address, known, version) {
  known.busy = true;
  try {
    known.value = await get(address);
    known.problems = [];
  } catch (error) {
    known.problems = error instanceof Refused ? error.problems : [{ what: String(error) }];
  }
  known.version = version;
  known.busy = false;
  redraw();
}

/** Forget what was looked up under these addresses. */
export function forget(prefix) {
  for (const address of [...looks.keys()]) if (address.startsWith(prefix)) looks.delete(address);
}

const pending = new Set(); // what was sent and is not answered yet

/** Do something that the server may refuse; what it says is shown. Returns whether it was done.
 *  `paths` are the keys of the policy that it is about. */
export function attempt(action, paths = [], inline = false) {
  const done = attempted(action, paths, inline);
  pending.add(done);
  return done.finally(() => pending.delete(done));
}

async function attempted(action, paths, inline) {
  try {
    const answer = await action();
    for (const path of paths) delete app.problems[path.join(".")];
    await refresh();
    return answer ?? true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    for (const path of paths) refuse(path, error.problems);
    if (!inline) complain(error);
    redraw();
    return false;
  }
}

/** Wait until everything that was sent is answered. */
export async function answered() {
  await Promise.allSettled([...pending]);
}

/** Note why the value that a field shows is not in the policy. */
export function refuse(path, problems) {
  app.problems[path.join(".")] = { path, problems, instead: decided(path) };
  redraw();
}

/** Show the policy in every field again. */
export function discardRefused() {
  app.problems = {};
  app.discarded += 1;
  redraw();
}

function decided(path) {
  const found = path.reduce((value, name) => value?.[name], app.session?.policy?.complete);
  return JSON.stringify(found ?? null);
}

// A field shows the policy again once the policy says something else there.
function forgetOutdated() {
  for (const [key, { path, instead }] of Object.entries(app.problems))
    if (decided(path) !== instead) delete app.problems[key];
}

/** Decide: `set` is a list of [path, value], a path a list of names; a value of null takes the key out.
 *  `inline`: what is refused is shown where it was entered, not as a notice. */
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

/** What was refused at this key of the policy. */
export function refused(...path) {
  return app.problems[path.join(".")]?.problems ?? [];
}

/** Tell something for a while. */
export function tell(text, fix = "", wrong = false) {
  const notice = { text, fix, wrong, id: Math.random() };
  app.notices = [...app.notices.slice(-3), notice];
  if (!wrong) setTimeout(() => dismiss(notice), 8000);
  redraw();
}

/** Take a notice away. */
export function dismiss(notice) {
  app.notices = app.notices.filter((other) => other !== notice);
  redraw();
}

/** Show what went wrong. */
export function complain(error) {
  const problems = error.problems ?? [{ what: String(error.message ?? error) }];
  for (const problem of problems) tell(problem.what, problem.fix ?? "", true);
}

/** Go somewhere: the address of the page says where the reader is, so that back, forward and reload work. */
export function go(step, chosen = null) {
  location.hash = addressOf(step, chosen);
}

/** The address of a step, and of what is chosen there. */
export function addressOf(step, chosen = null) {
  return chosen === null ? `#${step}` : `#${step}/${encodeURIComponent(chosen)}`;
}
