// The server's state, from GET /stats every two seconds while the page is seen.
import { $, bytes, count, el, renew, some } from "./dom.js";
import { ApiError, json } from "./api.js";
import { lines } from "./plot.js";
import { askKey } from "./settings.js";

const EVERY_MS = 2000, PLACES = 150; // five minutes

let timer = 0, before = null;
const past = new Map(); // model id → {speed, prompt, active, queued, hits, memory}: lists of numbers

function push(list, v) {
  list.push(v);
  if (list.length > PLACES) list.shift();
}

function note(m, seconds) {
  let h = past.get(m.id);
  if (!h) past.set(m.id, (h = { speed: [], prompt: [], active: [], queued: [], hits: [], memory: [], last: null }));
  const b = h.last;
  h.last = m;
  push(h.active, m.active_rows);
  push(h.queued, m.pending_rows);
  push(h.memory, m.kv_budget_bytes ? m.kv_bytes / m.kv_budget_bytes : 0);
  if (!b || seconds <= 0 || m.generated_tokens < b.generated_tokens) return h; // the first, or a new server
  push(h.speed, (m.generated_tokens - b.generated_tokens) / seconds);
  push(h.prompt, (m.prompt_tokens - b.prompt_tokens) / seconds);
  const hit = m.cached_tokens - b.cached_tokens, all = hit + m.prompt_tokens - b.prompt_tokens;
  push(h.hits, all ? hit / all : null);
  return h;
}

function card(title, value, unit, plot, foot) {
  return el("section", { class: "card" }, el("h3", {}, title), el("p", { class: "big" }, value, unit ? el("span", { class: "unit" }, unit) : null), plot, el("p", { class: "faint small" }, foot));
}

const share = (x) => Math.round(x * 100) + " %";

function memory(m) {
  const parts = [["weights", m.weights_bytes], ["steps", m.scratch_bytes], ["requests", Math.max(0, m.kv_bytes - m.prefix_bytes)], ["prefixes", m.prefix_bytes],
    ["free", Math.max(0, m.kv_budget_bytes - m.kv_bytes)]];
  const all = parts.reduce((a, p) => a + p[1], 0) || 1;
  const names = { weights: "Weights", steps: "Scratch of steps", requests: "Caches of requests", prefixes: "Kept prefixes", free: "Cache still free" };
  return el("section", { class: "card full" }, el("h3", {}, "Memory budget"),
    el("div", { class: "stack", "aria-hidden": "true", hidden: parts.every((p) => !p[1]) }, ...parts.filter((p) => p[1]).map(([k, v]) => {
      const e = el("span", { class: "part p-" + k, title: names[k] + ": " + bytes(v) });
      e.style.flexGrow = v / all;
      return e;
    })),
    el("dl", { class: "legend" }, ...parts.map(([k, v]) => el("div", {}, el("dt", {}, el("i", { class: "dot p-" + k }), names[k]), el("dd", {}, bytes(v))))));
}

function figures(m) {
  const rows = [["Context of a request", count(m.context_window) + " tokens"], ["Requests so far", count(m.submitted_rows)], ["Cancelled", count(m.cancelled_rows)],
    ["Failed", count(m.failed_rows)], ["Prompt tokens computed", count(m.prompt_tokens)], ["Taken from the cache", count(m.cached_tokens)],
    ["Tokens generated", count(m.generated_tokens)], ["Steps", count(m.steps)], ["Cache format", m.kv_codec || "f16"],
    ["Prefixes on disk", m.disk_entries ? bytes(m.disk_bytes) + (m.disk_read_only ? ", the last write failed" : "") : "none"]];
  return el("section", { class: "card full" }, el("h3", {}, "Since the start"), el("dl", { class: "figures" }, ...rows.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))));
}

function modelPart(m, h) {
  const last = (l) => (l.length ? l.at(-1) : 0);
  const total = m.cached_tokens + m.prompt_tokens;
  const speed = lines([{ values: h.speed, kind: "a" }], "Tokens generated a second, up to five minutes back; now " + last(h.speed).toFixed(1));
  const prompt = lines([{ values: h.prompt, kind: "b" }], "Prompt tokens computed a second, up to five minutes back; now " + last(h.prompt).toFixed(0));
  const rows = lines([{ values: h.active, kind: "a" }], m.active_rows + " requests are computed, of " + m.configured + " at once", m.configured);
  const queue = lines([{ values: h.queued, kind: "c" }], m.pending_rows + " requests wait");
  const hits = lines([{ values: h.hits, kind: "b" }], "Share of prompt tokens taken from the cache", 1);
  const kv = lines([{ values: h.memory, kind: "a" }], "Cache memory in use: " + bytes(m.kv_bytes) + " of " + bytes(m.kv_budget_bytes), 1);
  return el("div", { class: "model-part" }, el("h2", {}, m.id), el("div", { class: "cards" },
    card("Generating", last(h.speed).toFixed(1), "tokens/s", speed.node, "scale to " + count(speed.max)),
    card("Reading prompts", count(last(h.prompt)), "tokens/s", prompt.node, "scale to " + count(prompt.max)),
    card("Requests", String(m.active_rows), "of " + m.configured + " at once", rows.node, count(m.submitted_rows) + " so far"),
    card("Queue", String(m.pending_rows), m.pending_rows === 1 ? "request waits" : "requests wait", queue.node, "scale to " + count(queue.max)),
    card("Cache hits", total ? share(m.cached_tokens / total) : "–", "of prompt tokens", hits.node, count(m.cached_tokens) + " tokens were not computed again"),
    card("Cache memory", bytes(m.kv_bytes), "of " + bytes(m.kv_budget_bytes), kv.node, bytes(m.prefix_bytes) + " of it kept prefixes"),
    memory(m), figures(m)));
}

function duration(s) {
  const d = Math.floor(s / 86400), h = Math.floor((s % 86400) / 3600), m = Math.floor((s % 3600) / 60);
  return d ? d + " d " + h + " h" : h ? h + " h " + m + " min" : m ? m + " min" : s + " s";
}

function fill(inner) {
  const page = $("page-status");
  if (page.firstChild) renew(page.firstChild, inner);
  else page.append(inner);
}

async function look() {
  try {
    const s = await json("/stats"), at = performance.now(), seconds = before ? (at - before) / 1000 : 0;
    before = at;
    const parts = s.models.map((m) => modelPart(m, note(m, seconds)));
    const v = s.server;
    fill(el("div", { class: "inner" },
      el("p", { class: "faint lead" }, `cairn ${v.version} · up ${duration(v.uptime_seconds)} · ${some(v.connections, "connection")} · ${some(v.requests, "request")} · ${some(v.pending_prompts, "prompt")} being read`),
      ...parts, parts.length ? null : el("p", { class: "faint" }, "No model that answers is open.")));
  } catch (e) {
    before = null;
    fill(el("div", { class: "inner" }, el("p", { class: "error", role: "alert" }, e.message)));
    if (e instanceof ApiError && e.status === 401) return askKey(); // and no further looks until then
  }
  timer = setTimeout(look, EVERY_MS);
}

export function open() {}

export function show(seen) {
  clearTimeout(timer);
  timer = 0;
  if (seen && !document.hidden) look();
}

export function start() {
  document.addEventListener("visibilitychange", () => show(!$("page-status").hidden));
}
