// The answer that is being written: what is asked for, and what its stream says.  There is one at a time.
import { ApiError, stream } from "./api.js";
import { model } from "./models.js";
import { askKey } from "./settings.js";
import * as store from "./store.js";

const numbers = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed"];

let running = null; // {chat, message, variant, abort, since, first}

export const answering = () => running;
export const stop = () => running && running.abort.abort();

function body(chat) {
  const s = store.settings, b = { model: model() && model().id, messages: store.toApi(chat, s.system), return_progress: true };
  for (const name of numbers) if (s[name] !== "") b[name] = Number(s[name]);
  if (s.thinking === "off") b.reasoning_effort = "none";
  else if (s.thinking) b.reasoning_effort = s.thinking;
  if (s.tools.trim()) b.tools = JSON.parse(s.tools);
  return b;
}

function addCall(v, d) {
  const c = (v.calls[d.index] = v.calls[d.index] || { id: "", name: "", arguments: "" });
  if (d.id) c.id = d.id;
  if (d.function && d.function.name) c.name += d.function.name;
  if (d.function && d.function.arguments) c.arguments += d.function.arguments;
}

function take(r, chunk) {
  const v = r.variant, choice = chunk.choices[0], p = chunk.prompt_progress;
  if (p && p.total) v.read = p.processed / p.total;
  if (choice) {
    const d = choice.delta;
    if (!r.first && (d.content || d.reasoning_content || d.tool_calls)) r.first = performance.now();
    if (d.content) v.content += d.content;
    if (d.reasoning_content) v.thought += d.reasoning_content;
    for (const c of d.tool_calls || []) addCall(v, c);
    if (choice.finish_reason) v.note.why = choice.finish_reason;
  }
  if (chunk.usage) {
    const u = chunk.usage, spent = (performance.now() - (r.first || r.since)) / 1000;
    v.note.tokens = u.completion_tokens;
    v.note.prompt = u.prompt_tokens;
    v.note.cached = (u.prompt_tokens_details && u.prompt_tokens_details.cached_tokens) || 0;
    if (u.completion_tokens > 1 && spent > 0.02) v.note.speed = (u.completion_tokens - 1) / spent;
  }
}

// Asks for an answer to what chat has; `again`: another variant of that message, which is one of chat's.  Calls
// on.begun(), on.grown(answer) for each frame that has more of it, and on.ended(answer, kept).  Throws at once when
// the settings make no request.
export function ask(chat, again, on) {
  const before = again ? { ...chat, messages: chat.messages.slice(0, chat.messages.indexOf(again)) } : chat;
  const request = body(before);
  // read: the share of the prompt that is computed, until there is an answer
  const variant = { content: "", thought: "", calls: [], note: {}, error: "" };
  const message = again || { role: "assistant", at: 0, variants: [] };
  if (again && store.chosen(again).error) again.variants.splice(again.at, 1); // what failed is no answer to go back to
  message.at = message.variants.push(variant) - 1;
  if (!again) chat.messages.push(message);
  chat.at = Date.now();
  running = { chat, message, variant, abort: new AbortController(), since: performance.now(), first: 0 };
  on.begun();
  follow(running, request, on);
}

async function follow(r, request, on) {
  const v = r.variant;
  let waiting = false;
  const show = () => {
    waiting = false;
    if (running === r) on.grown(r);
  };
  try {
    await stream("/v1/chat/completions", request, r.abort.signal, (chunk) => {
      take(r, chunk);
      if (!waiting) (waiting = true), requestAnimationFrame(show);
    });
  } catch (e) {
    if (e.name === "AbortError") v.note.why = "stopped";
    else v.error = e instanceof ApiError ? e.message : String(e);
    if (e.status === 401) askKey();
  }
  if (r.first) v.note.first = r.first - r.since;
  running = null;
  delete v.read;
  v.calls = v.calls.filter((c) => c);
  on.ended(r, store.save());
}
