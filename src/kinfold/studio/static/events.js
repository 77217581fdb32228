// What the server tells by itself: that the session changed, how far a run is, that a longer look is done.

import { app, forget, note, redraw, refresh } from "./store.js";

const PATIENCE = 3000; // milliseconds without the server before the page says so

let source = null;
let silence = null;

/** Listen until the page goes. The browser comes back by itself where the stream breaks, and asks what it missed. */
export function listen() {
  source = new EventSource("/api/events");
  source.addEventListener("open", heardAgain);
  source.addEventListener("error", noLongerHeard);
  source.addEventListener("session", (event) => {
    if (JSON.parse(event.data).version !== app.session?.version) refresh();
  });
  source.addEventListener("gone", () => {
    source.close();
    refresh(); // which is told that the session is over, and shows it
  });
  source.addEventListener("run", (event) => hearRun(JSON.parse(event.data)));
  source.addEventListener("job", (event) => {
    forget(`/api/jobs/${JSON.parse(event.data).id}`);
    redraw();
  });
  addEventListener("pagehide", () => source.close());
}

function heardAgain() {
  clearTimeout(silence);
  silence = null;
  note({ away: false });
  refresh();
}

// A stream that was refused does not come back by itself: the session may be over, and the next answer says so.
function noLongerHeard() {
  if (source.readyState === EventSource.CLOSED) return void refresh();
  silence ??= setTimeout(() => note({ away: true }), PATIENCE);
}

function hearRun(told) {
  const run = app.session?.runs.find((known) => known.id === told.id);
  if (!run || (told.state !== "running" && told.state !== run.state)) return void refresh();
  const { state, stage, share, left, seconds, loss } = told;
  Object.assign(run, { state, stage, share, left, seconds });
  const heard = (app.heard[run.id] ??= []);
  if (typeof loss === "number" && loss !== heard.at(-1)?.[1]) heard.push([seconds, loss]);
  redraw();
}
