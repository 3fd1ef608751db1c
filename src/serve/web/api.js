// The server's routes: JSON, and streams of server-sent events.

let key = sessionStorage.getItem("cairn.key") || localStorage.getItem("cairn.key") || "";

export function getKey() {
  return key;
}

// `keep`: beyond this tab.
export function setKey(value, keep) {
  key = value;
  localStorage.removeItem("cairn.key");
  sessionStorage.removeItem("cairn.key");
  if (key) (keep ? localStorage : sessionStorage).setItem("cairn.key", key);
}

export class ApiError extends Error {
  constructor(status, error) {
    super((error && error.message) || "the server answered " + status);
    this.status = status;
    this.param = error && error.param;
  }
}

async function ask(path, body, signal) {
  const headers = {};
  if (key) headers.Authorization = "Bearer " + key;
  if (body) headers["Content-Type"] = "application/json";
  let r;
  try {
    r = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new ApiError(0, { message: "the server cannot be reached" });
  }
  if (r.ok) return r;
  let error;
  try {
    error = (await r.json()).error;
  } catch {
    // no JSON: the status says it
  }
  throw new ApiError(r.status, error);
}

export async function json(path, body, signal) {
  return (await ask(path, body, signal)).json();
}

// Cuts text that comes in pieces into the data of events.
export class Events {
  #rest = "";

  feed(text) {
    this.#rest += text;
    const parts = this.#rest.split("\n\n");
    this.#rest = parts.pop();
    return parts
      .map((p) => p.split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("\n"))
      .filter((d) => d);
  }
}

// Calls `on` with each chunk of a stream; throws what the server says went wrong.
export async function stream(path, body, signal, on) {
  const r = await ask(path, { ...body, stream: true, stream_options: { include_usage: true } }, signal);
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new Events();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new ApiError(0, { message: "the connection ended before the answer did" });
    for (const data of events.feed(value)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError(500, chunk.error);
      on(chunk);
    }
  }
}
