// What the server tells by itself: that the session changed, how far a run is, that a longer look is done. A browser
// opens six connections to a server in all, so one tab listens and tells the others; when it goes, another one does.

import { app, forget, note, redraw, refresh } from "./store.js";

const PATIENCE = 3000; // milliseconds without the server before the page says so
const NAMES = ["session", "gone", "run", "job"];

let silence = null;
let leave = () => {};

/** Listen until the page goes: to the server, or to the tab that does. */
export function listen() {
  const others = new BroadcastChannel("kinfold-events");
  others.addEventListener("message", ({ data: [name, told] }) => hear(name, told));
  const tell = (name, told = null) => {
    hear(name, told);
    others.postMessage([name, told]);
  };
  const follow = () => {
    if (navigator.locks) navigator.locks.request("kinfold-events", () => listenToServer(tell));
    else listenToServer(hear); // a browser without locks: each tab has a stream
  };
  addEventListener("pagehide", () => leave());
  addEventListener("pageshow", (event) => event.persisted && follow()); // back from the browser's cache of pages
  follow();
}

// The browser comes back by itself where the stream breaks, and each tab asks what it missed. A stream that was refused
// does not come back: the session may be over, and the next answer says so.
function listenToServer(tell) {
  const source = new EventSource("/api/events");
  source.addEventListener("open", () => tell("open"));
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return tell("silence");
    tell("refused");
    leave(); // another tab may be let in
  });
  for (const name of NAMES) source.addEventListener(name, (event) => tell(name, JSON.parse(event.data)));
  return new Promise((resolve) => {
    leave = () => {
      source.close();
      resolve();
    };
    source.addEventListener("gone", leave);
  });
}

function hear(name, told) {
  if (name === "open") heardAgain();
  else if (name === "silence") silence ??= setTimeout(() => note({ away: true }), PATIENCE);
  else if (name === "run") hearRun(told);
  else if (name === "job") {
    forget(`/api/jobs/${told.id}`);
    redraw();
  } else if (name !== "session" || told.version !== app.session?.version) refresh(); // gone, refused, or changed
}

function heardAgain() {
  clearTimeout(silence);
  silence = null;
  note({ away: false });
  refresh();
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
