// What a reader does that is not a key of the policy: take back, run, cancel, take, forget.

import { get, send } from "./api.js";
import { differences, everythingSent } from "./draft.js";
import { app, attempt, decide, go, note, refresh, tell } from "./store.js";

/** Take the last decision back. */
export async function undo() {
  const what = app.session?.undo.next;
  if (what && (await attempt(() => send("POST", "/api/undo")))) tell(`Taken back: ${what}`);
}

/** Decide again what was taken back. */
export async function redo() {
  const what = app.session?.redo.next;
  if (what && (await attempt(() => send("POST", "/api/redo")))) tell(`Decided again: ${what}`);
}

/** Run the policy that the page shows; `set` tries other settings and decides nothing. Returns the run's id. */
export async function run(set = null) {
  await everythingSent();
  const [different] = differences();
  if (different) {
    tell(`Nothing was run: ${different}.`, "Correct it, or go back to the last valid policy.", true);
    return null;
  }
  const policy = app.session.policy.text;
  const answer = await attempt(() => send("POST", "/api/runs", set ? { policy, set } : { policy }));
  if (!answer) await refresh();
  return answer ? answer.id : null;
}

/** Stop a run. */
export function cancel(id) {
  return attempt(() => send("POST", `/api/runs/${id}/cancel`));
}

/** Forget a run. */
export function forgetRun(id) {
  return attempt(() => send("DELETE", `/api/runs/${id}`));
}

/** Make the policy of a run the policy. */
export async function takeRun({ id, name }) {
  if (await attempt(() => send("POST", `/api/runs/${id}/take`))) tell(`The policy is now that of ${name}.`);
}

/** Begin a longer look, kept under a name; what it finds is `jobOf(name)`. */
export async function beginJob(name, body, ask = () => send("POST", "/api/jobs", body)) {
  const answer = await attempt(ask);
  if (answer)
    note({ [`job ${name}`]: { id: answer.id ?? answer.job, state: "running", policy: app.session.policy.text } });
  if (answer) watch(name, answer.id ?? answer.job);
}

/** The longer look under this name: null where none was begun. */
export function jobOf(name) {
  return app.ui[`job ${name}`] ?? null;
}

// The event stream may be late or broken: a look that runs is asked after now and then as well.
async function watch(name, id) {
  for (let wait = 150; jobOf(name)?.id === id; wait = Math.min(wait * 1.5, 2000)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const job = await get(`/api/jobs/${id}`).catch(() => null);
    if (job && job.state !== "running" && job.state !== "queued") {
      note({ [`job ${name}`]: { ...jobOf(name), ...job } });
      return;
    }
  }
}

/** Give up a longer look. */
export async function cancelJob(name) {
  const job = jobOf(name);
  note({ [`job ${name}`]: null });
  if (job) await send("POST", `/api/jobs/${job.id}/cancel`).catch(() => {});
}

/** Run with some keys of the policy decided before, and show it among the others. */
export async function decideAndRun(set) {
  if (!(await decide(set))) return;
  const id = await run();
  if (id) go("explore", id);
}
