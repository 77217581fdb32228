// Actions that are not keys of the policy: undo, redo, start, cancel and remove runs, other jobs.

import { send } from "./api.js";
import { listDifferences, sendEverything } from "./draft.js";
import { app, attempt, decide, go, query, updateUi, refresh, notify } from "./store.js";

const OVER = ["done", "failed", "cancelled"];

/** Undo the last decision. */
export async function undo() {
  const what = app.session?.undo.next;
  if (what && (await attempt(() => send("POST", "/api/undo")))) notify(`Undone: ${what}`);
}

/** Redo the decision that was undone last. */
export async function redo() {
  const what = app.session?.redo.next;
  if (what && (await attempt(() => send("POST", "/api/redo")))) notify(`Redone: ${what}`);
}

/** Run the policy that the page shows, with the keys of `set` changed for this run only. Return the id of the run. */
export async function run(set = null) {
  await sendEverything();
  const [different] = listDifferences();
  if (different) {
    notify(`The run was not started: ${different}.`, "Correct it, or go back to the last valid policy.", true);
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

/** Remove a run. */
export function removeRun(id) {
  return attempt(() => send("DELETE", `/api/runs/${id}`));
}

/** Make the policy of a run the current policy. */
export async function adoptPolicy({ id, name }) {
  if (await attempt(() => send("POST", `/api/runs/${id}/take`))) notify(`The policy is now that of ${name}.`);
}

/** Start a job and keep it under a name; `getJob(name)` returns it with its result. */
export async function startJob(name, body, request = () => send("POST", "/api/jobs", body)) {
  const answer = await attempt(request);
  if (answer) updateUi({ [`job ${name}`]: { id: answer.id ?? answer.job, policy: app.session.policy.text } });
}

/** Return the job with this name, or null; an event of the server says when it is over. */
export function getJob(name) {
  const job = app.ui[`job ${name}`];
  if (!job) return null;
  const { value, problems } = query(`/api/jobs/${job.id}`, true);
  if (problems.length) return { ...job, state: "failed", problems };
  return { ...job, ...value, state: OVER.includes(value?.state) ? value.state : "running" };
}

/** Cancel a job. */
export async function cancelJob(name) {
  const job = app.ui[`job ${name}`];
  updateUi({ [`job ${name}`]: null });
  if (job) await send("POST", `/api/jobs/${job.id}/cancel`).catch(() => {});
}

/** Set some keys of the policy, start a run and show it. */
export async function decideAndRun(set) {
  if (!(await decide(set))) return;
  const id = await run();
  if (id) go("explore", id);
}
