// Open a table: a file, a database, the demo; and the progress of opening.

import { send, upload } from "../api.js";
import { h } from "../dom.js";
import { bytes, share } from "../numbers.js";
import { app, attempt, showError, updateUi, refresh } from "../store.js";
import { field, problemList } from "./fields.js";
import { reading } from "./reading.js";
import { startTour } from "./tour.js";
import { button, stepHead, section, verdict } from "./sections.js";

const FORMATS = "CSV, Parquet, JSON, Excel, Stata, SPSS, SAS, SQLite, or a project of ARX.";

/** Return the step without a table. */
export function openTable(session) {
  if (session.state === "opening") return opening(session);
  if (session.state === "choosing") return choosing(session);
  return [
    session.state === "failed" ? failed(session.source) : welcome(),
    h(
      "div",
      { class: "halves even sources" },
      section("file", "A file", FORMATS, dropZone(session)),
      h(
        "div",
        {},
        section("demo", "The demo", "A thousand synthetic patients, with a policy.", demo()),
        section("database", "A database", "A table or a query, read once. The password is not saved.", database()),
      ),
    ),
  ];
}

function demo() {
  return h(
    "div",
    { class: "buttons" },
    button("Start with the demo", openDemo, { main: true }),
    button("Take the tour of five steps", async () => (await openDemo()) && startTour()),
  );
}

function openDemo() {
  return attempt(() => send("POST", "/api/source/demo"));
}

function welcome() {
  const further = "It stays on this machine. Nothing is sent anywhere, and the studio removes it when it stops.";
  return stepHead("open", "A table about people", verdict("Open the table that you want to release.", [further]));
}

// A file that could not be opened: the problems, and options to read it.
function failed(source) {
  const sheets = source.problems.flatMap((problem) => problem.choices ?? []);
  if (sheets.length) {
    const open = (sheet) => attempt(() => send("POST", "/api/source/options", { sheet }));
    return chooser(source.name, "sheet", sheets, open);
  }
  const ways = source.reading.length > 0;
  const further = ways ? "Change the reading options below, or open another file." : "Open another file.";
  return [
    stepHead("open", source.name, verdict("The file could not be opened.", [further], true)),
    problemList(source.problems, "What is wrong"),
    ways ? section("reading", "Reading", "How the file is written. A change reads it again.", reading(source)) : null,
  ];
}

// A part of a file is chosen by a click.
function chooser(name, kind, parts, choose) {
  const buttons = parts.map((part) => button(part, () => choose(part)));
  return [
    stepHead("open", name, verdict(`Choose a ${kind}.`)),
    section(
      "parts",
      `${kind[0].toUpperCase()}${kind.slice(1)}s`,
      `The file has several ${kind}s.`,
      h("div", { class: "buttons" }, buttons),
    ),
  ];
}

function dropZone(session) {
  const { uploading } = app.ui;
  if (uploading) {
    return h(
      "div",
      { class: "drop" },
      h("p", {}, `Uploading ${uploading.name}: ${share(uploading.share)}`),
      h("progress", { max: "1", value: uploading.share, "aria-label": "Upload" }),
      button("Stop", uploading.stop, { slim: true, danger: true }),
    );
  }
  const change = (event) => event.target.files[0] && take(event.target.files[0]);
  const over = (event) => {
    event.preventDefault();
    if (!app.ui.over) updateUi({ over: true });
  };
  const drop = (event) => {
    event.preventDefault();
    updateUi({ over: false });
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  };
  return h(
    "div",
    {
      class: `drop ${app.ui.over ? "over" : ""}`,
      on: { dragover: over, dragleave: () => updateUi({ over: false }), drop },
    },
    h("p", { class: "headline" }, "Drop a file here"),
    h(
      "label",
      { class: "button file" },
      "or choose one",
      h("input", { type: "file", class: "aside", id: "file", on: { change } }),
    ),
    h("p", { class: "soft small" }, `Up to ${bytes(session.limits.upload_bytes)}.`),
  );
}

async function take(file) {
  updateUi({ uploading: { name: file.name, share: 0, stop: () => {} } });
  const onProgress = (part) => updateUi({ uploading: { ...app.ui.uploading, share: part } });
  try {
    await upload(file, onProgress, (stop) => updateUi({ uploading: { ...app.ui.uploading, stop } }));
  } catch (error) {
    showError(error);
  }
  updateUi({ uploading: null });
  refresh();
}

function opening(session) {
  const { name, progress } = session.source ?? {};
  const stages = {
    read: "Reading the file.",
    columns: "Profiling the columns.",
    combinations: "Counting combinations of columns.",
  };
  const stage = stages[progress?.stage] ?? "";
  return [
    stepHead("open", name ?? "The table", verdict("The table is being opened.", [stage])),
    h("progress", {
      class: "wide",
      max: "1",
      value: progress?.share ?? null,
      "aria-label": "Progress of opening",
    }),
    h(
      "p",
      {},
      button("Stop", () => attempt(() => send("POST", "/api/source/close")), { danger: true }),
    ),
  ];
}

function choosing({ source }) {
  const open = (table) => attempt(() => send("POST", "/api/source/table", { table }));
  return chooser(source.name, "table", source.tables, open);
}

function database() {
  const now = () => app.ui.database ?? { address: "", table: "", query: "" };
  const typedIn = now();
  const put = (key) => (event) => updateUi({ database: { ...now(), [key]: event.target.value } });
  const ask = (event) => {
    event.preventDefault();
    const { address, table, query } = now();
    attempt(() => send("POST", "/api/source/database", query ? { address, query } : { address, table }));
  };
  const typed = (key, label, placeholder = "") =>
    field(
      { id: `db-${key}`, label },
      h("input", {
        type: "text",
        autocomplete: "off",
        spellcheck: "false",
        placeholder,
        value: typedIn[key],
        on: { input: put(key) },
      }),
    );
  return h(
    "form",
    { class: "database", on: { submit: ask } },
    typed("address", "Address", "postgresql://user@host/database"),
    typed("table", "Table"),
    typed("query", "or a query", "SELECT …"),
    h("div", {}, h("button", { class: "button", type: "submit" }, "Read it")),
  );
}
