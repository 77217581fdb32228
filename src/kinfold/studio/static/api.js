// Requests to the studio's server. The page requests nothing from anywhere else.

/** A response that refuses a request: problems, each with `what`, and possibly `fix`, `key` and `line`. */
export class Refusal extends Error {
  constructor(status, problems) {
    super(problems.map((problem) => problem.what).join(" "));
    this.status = status;
    this.problems = problems;
  }
}

const NO_SERVER = {
  what: "The studio's server does not answer.",
  fix: "Check that it still runs in its terminal, then reload this page.",
};

/** Get a JSON value; null if nothing changed. */
export async function get(address) {
  return read(await callServer(address, {}));
}

/** Send a JSON value. */
export async function send(method, address, value = {}) {
  return read(
    await callServer(address, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) }),
  );
}

/** Send the bytes of a file. */
export async function sendFile(address, body) {
  const headers = { "Content-Type": "application/octet-stream" };
  return read(await callServer(address, { method: "POST", headers, body }));
}

async function callServer(address, options) {
  try {
    return await fetch(address, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refusal(0, [NO_SERVER]);
  }
}

async function read(response) {
  if (response.status === 304) return null;
  const value = await response.json().catch(() => null);
  if (!response.ok)
    throw new Refusal(response.status, value?.error?.problems ?? [{ what: `The server answered ${response.status}.` }]);
  return value;
}

/** Upload a file. `onProgress` gets the share that is sent, `onStart` a function that stops the upload. */
export function upload(file, onProgress, onStart) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch does not report upload progress
    onStart(() => request.abort());
    request.open("POST", `/api/source/upload?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => onProgress(event.total ? event.loaded / event.total : 0));
    request.addEventListener("load", () => (request.status < 300 ? resolve() : reject(makeRefusal(request))));
    request.addEventListener("error", () => reject(new Refusal(0, [NO_SERVER])));
    request.addEventListener("abort", () =>
      reject(new Refusal(499, [{ what: "The upload was stopped.", fix: "Nothing was opened." }])),
    );
    request.send(file);
  });
}

function makeRefusal(request) {
  try {
    return new Refusal(request.status, JSON.parse(request.responseText).error.problems);
  } catch {
    return new Refusal(request.status, [{ what: `The server answered ${request.status}.` }]);
  }
}
