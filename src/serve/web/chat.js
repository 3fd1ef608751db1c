// The chat: messages of one conversation, the composer, and the answer that is being written.
import { $, el, say, toast, download } from "./dom.js";
import { ApiError, stream } from "./api.js";
import { render } from "./markdown.js";
import * as store from "./store.js";
import { askKey, models, openSettings } from "./app.js";

const MAX_IMAGE = 4 << 20; // bytes of a file: the server takes bodies of 32 MiB, the browser keeps five

let now = null; // the conversation shown; null: a new one that has no message yet
let running = null; // {chat, message, variant, abort, since, first}
let images = []; // data: addresses that the next message has
let editing = -1;

export const current = () => now;

function model() {
  return models.find((m) => m.id === store.settings.model) || models[0];
}

const numbers = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed"];

function body(chat) {
  const s = store.settings, b = { model: model() && model().id, messages: store.toApi(chat, s.system) };
  for (const name of numbers) if (s[name] !== "") b[name] = Number(s[name]);
  if (s.thinking === "off") b.reasoning_effort = "none";
  else if (s.thinking) b.reasoning_effort = s.thinking;
  if (s.tools.trim()) b.tools = JSON.parse(s.tools);
  return b;
}

// --- what a message looks like ---

async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    say("Copied");
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = label), 1500);
}

function pretty(args) {
  try {
    return JSON.stringify(JSON.parse(args), null, 2);
  } catch {
    return args; // still being written
  }
}

function action(label, fn, text = label) {
  return el("button", { type: "button", class: "plain", "aria-label": label === text ? null : label, onclick: fn }, text);
}

function userMessage(m, i) {
  const li = el("li", { class: "message user" });
  if (editing === i) {
    const area = el("textarea", { rows: 3, "aria-label": "Edit the message", value: m.content });
    const done = () => ((editing = -1), draw());
    const send = () => {
      const text = area.value.trim();
      if (!text || running) return;
      editing = -1;
      m.content = text;
      now.messages.length = i + 1;
      answer(now);
    };
    area.addEventListener("keydown", (e) => {
      if (e.key === "Escape") done();
      if (e.key === "Enter" && !e.shiftKey && !e.isComposing) e.preventDefault(), send();
    });
    li.append(el("div", { class: "edit" }, area, el("div", { class: "row" },
      el("button", { type: "button", class: "plain", onclick: done }, "Cancel"),
      el("button", { type: "button", class: "primary", onclick: send }, "Send again"))));
    setTimeout(() => area.focus());
    return li;
  }
  const bubble = el("div", { class: "bubble" });
  for (const url of m.images || []) bubble.append(el("img", { src: url, alt: "An image that you added" }));
  bubble.append(el("div", { class: "text" }, m.content));
  li.append(el("span", { class: "hidden" }, "You: "), bubble, el("div", { class: "actions" },
    action("Copy", (e) => copyText(m.content, e.target)),
    action("Edit", () => running || ((editing = i), draw())),
    action("Fork from here", () => forkAt(i), "Fork")));
  return li;
}

function callCard(call, answered, onResult) {
  const card = el("div", { class: "call" },
    el("div", { class: "call-head" }, el("span", { class: "tag" }, "tool call"), el("code", {}, call.name || "…")),
    el("pre", { tabindex: 0 }, pretty(call.arguments)));
  if (answered !== undefined) card.append(el("div", { class: "result" }, el("span", { class: "tag" }, "result"), el("pre", { tabindex: 0 }, answered)));
  else if (onResult) {
    const area = el("textarea", { rows: 2, placeholder: "What did the tool answer?", "aria-label": "Result of " + call.name });
    card.append(area, el("div", { class: "row" }, el("button", { type: "button", class: "primary", onclick: () => onResult(area.value) }, "Give the result")));
  }
  return card;
}

function note(v) {
  const parts = [];
  if (v.note) {
    const n = v.note;
    if (n.tokens) parts.push(n.tokens + (n.tokens === 1 ? " token" : " tokens"));
    if (n.speed) parts.push(n.speed.toFixed(n.speed < 10 ? 1 : 0) + " tokens a second");
    if (n.first) parts.push((n.first / 1000).toFixed(2) + " s to the first");
    if (n.cached) parts.push(n.cached + " of " + n.prompt + " prompt tokens from the cache");
    if (n.why === "length") parts.push("cut: no more tokens were allowed");
    if (n.why === "stopped") parts.push("stopped");
  }
  return parts.join(" · ");
}

// Fills li; called again for each part of an answer that arrives.
function fill(li, m, i, live) {
  const v = store.chosen(m), p = li.parts;
  if (v.thought) {
    p.thoughts.hidden = false;
    p.thoughts.firstChild.textContent = live && !v.content ? "Thinking …" : "Thoughts";
    render(p.thought, v.thought, copyText);
  }
  render(p.text, v.content, copyText);
  p.wait.hidden = !(live && !v.content && !v.thought && !v.calls.length);
  p.calls.replaceChildren(...v.calls.map((c) => {
    const a = now.messages.find((x, k) => k > i && x.role === "tool" && x.tool_call_id === c.id);
    return callCard(c, a && a.content, live || v.error ? null : (text) => giveResult(i, c, text));
  }));
  p.error.hidden = !v.error;
  p.error.textContent = v.error || "";
  p.note.textContent = live ? "" : note(v);
  p.actions.hidden = live;
}

function assistantMessage(m, i) {
  const last = i === now.messages.length - 1;
  const p = {
    thought: el("div", { class: "markdown" }), text: el("div", { class: "markdown" }), calls: el("div", { class: "calls" }),
    wait: el("div", { class: "wait", hidden: true }, el("span", { class: "hidden" }, "The model reads the prompt")),
    error: el("div", { class: "error", role: "alert", hidden: true }), note: el("div", { class: "faint small note" }),
    actions: el("div", { class: "actions" }),
  };
  p.wait.append(el("i"), el("i"), el("i"));
  p.thoughts = el("details", { class: "thoughts", hidden: true }, el("summary", {}, "Thoughts"), p.thought);
  if (m.variants.length > 1)
    p.actions.append(el("span", { class: "pager" },
      action("The answer before", () => turn(m, -1), "‹"), el("span", { class: "small" }, m.at + 1 + " / " + m.variants.length),
      action("The next answer", () => turn(m, 1), "›")));
  p.actions.append(
    action("Copy", (e) => copyText(store.chosen(m).content, e.target)),
    action("Regenerate", () => regenerate(i), last ? "Regenerate" : "Regenerate from here"),
    action("Fork from here", () => forkAt(i), "Fork"));
  const li = el("li", { class: "message assistant" }, el("span", { class: "hidden" }, "The model: "),
    p.thoughts, p.wait, p.text, p.calls, p.error, el("div", { class: "foot" }, p.note, p.actions));
  li.parts = p;
  li.message = m;
  fill(li, m, i, running && running.message === m);
  return li;
}

export function draw() {
  const list = $("messages");
  list.replaceChildren();
  if (now)
    now.messages.forEach((m, i) => {
      if (m.role === "user") list.append(userMessage(m, i));
      if (m.role === "assistant") list.append(assistantMessage(m, i));
    });
  $("empty").hidden = Boolean(now && now.messages.length);
  buttons();
}

function buttons() {
  $("send").hidden = Boolean(running);
  $("stop").hidden = !running;
  $("send").disabled = models.length === 0;
}

// --- what can be done ---

const scroller = () => $("scroll");
const atEnd = () => scroller().scrollHeight - scroller().scrollTop - scroller().clientHeight < 80;
const toEnd = () => (scroller().scrollTop = scroller().scrollHeight);

function turn(m, by) {
  if (running) return;
  m.at = (m.at + by + m.variants.length) % m.variants.length;
  store.save();
  draw();
}

function forkAt(i) {
  if (running) return;
  const c = store.fork(now, i);
  store.save();
  location.hash = "#/chat/" + c.id;
  toast("A copy of the conversation up to here; the first one stays as it is.");
}

function regenerate(i) {
  if (running) return;
  const m = now.messages[i];
  now.messages.length = i + 1;
  answer(now, m);
}

function giveResult(i, call, text) {
  if (running) return;
  now.messages.push({ role: "tool", tool_call_id: call.id, content: text });
  const calls = store.chosen(now.messages[i]).calls;
  const open = calls.filter((c) => !now.messages.some((m, k) => k > i && m.role === "tool" && m.tool_call_id === c.id));
  if (open.length) {
    store.save();
    draw();
  } else answer(now);
}

function addCall(v, d) {
  const c = (v.calls[d.index] = v.calls[d.index] || { id: "", name: "", arguments: "" });
  if (d.id) c.id = d.id;
  if (d.function && d.function.name) c.name += d.function.name;
  if (d.function && d.function.arguments) c.arguments += d.function.arguments;
}

function take(r, chunk) {
  const v = r.variant, choice = chunk.choices[0];
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

// Asks for an answer to what chat has; `again`: another variant of that message.
async function answer(chat, again) {
  if (running) return;
  const before = again ? { ...chat, messages: chat.messages.slice(0, chat.messages.indexOf(again)) } : chat;
  let request;
  try {
    request = body(before);
  } catch {
    toast("The tools in the settings are not JSON.");
    return;
  }
  const variant = { content: "", thought: "", calls: [], note: {}, error: "" };
  const message = again || { role: "assistant", at: 0, variants: [] };
  message.at = message.variants.push(variant) - 1;
  if (!again) chat.messages.push(message);
  chat.at = Date.now();
  const r = (running = { chat, message, variant, abort: new AbortController(), since: performance.now(), first: 0 });
  draw();
  toEnd();
  listChats();
  say("The model is answering");
  let waiting = false;
  const show = () => {
    waiting = false;
    const i = chat.messages.indexOf(message), at = atEnd();
    const li = now === chat ? [...$("messages").children].find((x) => x.message === message) : null;
    if (li) fill(li, message, i, running === r);
    if (at) toEnd();
  };
  try {
    await stream("/v1/chat/completions", request, r.abort.signal, (chunk) => {
      take(r, chunk);
      if (!waiting) (waiting = true), requestAnimationFrame(show);
    });
  } catch (e) {
    if (e.name === "AbortError") variant.note.why = "stopped";
    else variant.error = e instanceof ApiError ? e.message : String(e);
    if (e.status === 401) askKey();
  }
  if (r.first) variant.note.first = r.first - r.since;
  running = null;
  variant.calls = variant.calls.filter((c) => c);
  if (!store.save()) toast("This browser has no more room: the conversation is not kept.");
  const at = atEnd();
  if (now === chat) draw();
  if (at) toEnd();
  say(variant.error || "The answer is complete");
}

function titleOf(text) {
  const t = text.replaceAll(/\s+/g, " ");
  return t.length <= 60 ? t || "Image" : t.slice(0, 60).replace(/\s\S*$/, "") + " …";
}

function submit(e) {
  e.preventDefault();
  const text = $("ask").value.trim();
  if (running || (!text && !images.length) || !models.length) return;
  if (!now) {
    now = store.create([], titleOf(text));
    history.replaceState(null, "", "#/chat/" + now.id);
    $("title").textContent = now.title;
  }
  now.messages.push({ role: "user", content: text, images });
  images = [];
  drawImages();
  $("ask").value = "";
  grow();
  answer(now);
}

// --- the composer ---

function grow() {
  const a = $("ask");
  a.rows = 1;
  const line = parseFloat(getComputedStyle(a).lineHeight);
  a.rows = Math.min(10, Math.max(1, Math.round((a.scrollHeight - 16) / line)));
}

function drawImages() {
  $("images").hidden = images.length === 0;
  $("images").replaceChildren(...images.map((url, i) => el("span", { class: "thumb" }, el("img", { src: url, alt: "Image " + (i + 1) }),
    el("button", { type: "button", "aria-label": "Take image " + (i + 1) + " away", onclick: () => (images.splice(i, 1), drawImages()) }, "×"))));
}

function addFiles(files) {
  for (const f of files) {
    if (!f.type.startsWith("image/")) continue;
    if (f.size > MAX_IMAGE) {
      toast(f.name + " has more than 4 MB.");
      continue;
    }
    const reader = new FileReader();
    reader.onload = () => (images.push(reader.result), drawImages());
    reader.readAsDataURL(f);
  }
}

// Called when the model changes.
export function modelChanged() {
  const m = model(), sees = Boolean(m && m.vision);
  $("attach").disabled = !sees;
  $("attach").title = sees ? "Add an image" : "";
  $("attach-why").textContent = !m ? "No model answers yet" : sees ? "" : "This model takes no images";
  if (!sees) (images = []), drawImages();
  buttons();
}

// --- the list of conversations ---

function chatItem(c) {
  const open = el("a", { href: "#/chat/" + c.id, class: "open", "aria-current": now && now.id === c.id ? "page" : null }, c.title);
  const menu = el("span", { class: "chat-actions" },
    action("Rename " + c.title, () => {
      const input = el("input", { value: c.title, "aria-label": "Name of the conversation", maxlength: 100 });
      let over = false;
      const done = (keep) => {
        if (over) return;
        over = true;
        if (keep && input.value.trim()) c.title = input.value.trim();
        store.save();
        listChats();
      };
      input.addEventListener("keydown", (e) => (e.key === "Enter" && done(true), e.key === "Escape" && done(false)));
      input.addEventListener("blur", () => done(true));
      open.replaceWith(input);
      input.select();
    }, "✎"),
    action("Export " + c.title, () => download("cairn-conversation.json", store.exported([c])), "↓"),
    action("Delete " + c.title, () => {
      if (running && running.chat === c) return;
      store.remove(c.id);
      if (now === c) location.hash = "#/chat";
      listChats();
    }, "×"));
  return el("li", {}, open, menu);
}

export function listChats() {
  $("chats").replaceChildren(...store.list().map(chatItem));
}

export function open(id) {
  now = (id && store.find(id)) || null;
  editing = -1;
  draw();
  listChats();
  toEnd();
  if (matchMedia("(pointer: fine)").matches) $("ask").focus({ preventScroll: true });
}

export function start() {
  $("composer").addEventListener("submit", submit);
  $("stop").addEventListener("click", () => running && running.abort.abort());
  $("ask").addEventListener("input", grow);
  $("ask").addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing && matchMedia("(pointer: fine)").matches) submit(e);
    if (e.key === "Escape" && running) running.abort.abort();
  });
  $("ask").addEventListener("paste", (e) => $("attach").disabled || addFiles(e.clipboardData.files));
  $("attach").addEventListener("click", () => $("attach-file").click());
  $("attach-file").addEventListener("change", () => (addFiles($("attach-file").files), ($("attach-file").value = "")));
  $("new-chat").addEventListener("click", () => {
    if (location.hash === "#/chat") open(null);
    else location.hash = "#/chat";
  });
  $("export-all").addEventListener("click", () => download("cairn-conversations.json", store.exported()));
  $("import").addEventListener("click", () => $("import-file").click());
  $("import-file").addEventListener("change", async () => {
    const f = $("import-file").files[0];
    $("import-file").value = "";
    if (!f) return;
    try {
      toast(store.imported(await f.text()) + " conversations were added.");
      listChats();
    } catch (e) {
      toast(f.name + ": " + e.message);
    }
  });
  $("open-settings").addEventListener("click", openSettings);
}
