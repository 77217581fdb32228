// Events of the server: the session changed, progress of runs and jobs. A browser opens at most six connections to a
// server, so one tab listens and sends the events to the others. When it closes, another tab takes over.

import { app, dropAnswers, updateUi, redraw, refresh } from "./store.js";

const SILENCE_LIMIT = 3000; // milliseconds without the server until the page shows a notice
const NAMES = ["session", "gone", "run", "job"];

let silence = null;
let leave = () => {};

/** Listen to the server, or to the tab that does, until the page closes. */
export function listen() {
  const others = new BroadcastChannel("kinfold-events");
  others.addEventListener("message", ({ data: [name, value] }) => handle(name, value));
  const publish = (name, value = null) => {
    handle(name, value);
    others.postMessage([name, value]);
  };
  const follow = () => {
    if (navigator.locks) navigator.locks.request("kinfold-events", () => listenToServer(publish));
    else listenToServer(handle); // without locks each tab has a stream
  };
  addEventListener("pagehide", () => leave());
  addEventListener("pageshow", (event) => event.persisted && follow()); // back from the browser's cache of pages
  follow();
}

// The browser reconnects by itself when the stream breaks, and each tab reads the state again. A refused stream is not
// reconnected: the session may have ended, and the next response says so.
function listenToServer(publish) {
  const source = new EventSource("/api/events");
  source.addEventListener("open", () => publish("open"));
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return publish("silence");
    publish("refused");
    leave(); // another tab may be admitted
  });
  for (const name of NAMES) source.addEventListener(name, (event) => publish(name, JSON.parse(event.data)));
  return new Promise((resolve) => {
    leave = () => {
      source.close();
      resolve();
    };
    source.addEventListener("gone", leave);
  });
}

function handle(name, value) {
  if (name === "open") reconnect();
  else if (name === "silence") silence ??= setTimeout(() => updateUi({ away: true }), SILENCE_LIMIT);
  else if (name === "run") handleRun(value);
  else if (name === "job") handleJob(value);
  else if (name !== "session" || value.version !== app.session?.version) refresh(); // gone, refused, or changed
}

function reconnect() {
  clearTimeout(silence);
  silence = null;
  updateUi({ away: false });
  dropAnswers("/api/jobs/"); // their events may be lost
  refresh();
}

// The progress of a job is in its event; its result is requested when it is over.
function handleJob({ id, state }) {
  if (state === "running" || state === "queued") return;
  dropAnswers(`/api/jobs/${id}`);
  redraw();
}

function handleRun(value) {
  const run = app.session?.runs.find((known) => known.id === value.id);
  if (!run || (value.state !== "running" && value.state !== run.state)) return void refresh();
  const { state, stage, share, left, seconds, loss } = value;
  Object.assign(run, { state, stage, share, left, seconds });
  const curve = (app.curves[run.id] ??= []);
  if (typeof loss === "number" && loss !== curve.at(-1)?.[1]) curve.push([seconds, loss]);
  redraw();
}
