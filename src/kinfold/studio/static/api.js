// What the page says to its server. Nothing else is ever asked: every address is of this server.

/** What went wrong, told by the server: problems, each with `what`, and `fix`, `key`, `line` where they are known. */
export class Refused extends Error {
  constructor(status, problems) {
    super(problems.map((problem) => problem.what).join(" "));
    this.status = status;
    this.problems = problems;
  }
}

const AWAY = {
  what: "The studio's server does not answer.",
  fix: "See whether it still runs in its terminal; then load this page again.",
};

/** Ask for something; null where nothing changed since. */
export async function get(address) {
  return read(await reach(address, {}));
}

/** Say something, as JSON. */
export async function send(method, address, value = {}) {
  return read(
    await reach(address, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) }),
  );
}

/** Hand over the bytes of a file. */
export async function hand(address, body) {
  return read(await reach(address, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body }));
}

async function reach(address, options) {
  try {
    return await fetch(address, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refused(0, [AWAY]);
  }
}

async function read(response) {
  if (response.status === 304) return null;
  const told = await response.json().catch(() => null);
  if (!response.ok)
    throw new Refused(response.status, told?.error?.problems ?? [{ what: `The server answered ${response.status}.` }]);
  return told;
}

/** Hand over a file and hear how far it is; `began` gets what stops it. */
export function upload(file, heard, began) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch does not tell how much has gone up
    began(() => request.abort());
    request.open("POST", `/api/source/upload?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => heard(event.total ? event.loaded / event.total : 0));
    request.addEventListener("load", () => (request.status < 300 ? resolve() : reject(refusal(request))));
    request.addEventListener("error", () => reject(new Refused(0, [AWAY])));
    request.addEventListener("abort", () =>
      reject(new Refused(0, [{ what: "The upload was stopped.", fix: "Nothing was opened." }])),
    );
    request.send(file);
  });
}

function refusal(request) {
  try {
    return new Refused(request.status, JSON.parse(request.responseText).error.problems);
  } catch {
    return new Refused(request.status, [{ what: `The server answered ${request.status}.` }]);
  }
}
