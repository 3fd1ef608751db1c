// The chat: the conversation that is shown, and what can be done with it.
import { $, say, toast } from "./dom.js";
import { answering, ask } from "./answer.js";
import * as chats from "./chats.js";
import * as composer from "./composer.js";
import { assistantMessage, editedMessage, fillAnswer, userMessage } from "./message.js";
import * as store from "./store.js";

export { modelChanged } from "./composer.js";

let now = null; // the conversation shown; null: a new one that has no message yet
let editing = -1;

export const current = () => now;

const scroller = () => $("scroll");
const atEnd = () => scroller().scrollHeight - scroller().scrollTop - scroller().clientHeight < 80;
const toEnd = () => (scroller().scrollTop = scroller().scrollHeight);

function answerOf(i, call) {
  const a = now.messages.find((m, k) => k > i && m.role === "tool" && m.tool_call_id === call.id);
  return a && a.content;
}

const isLive = (m) => Boolean(answering()) && answering().message === m;

function draw() {
  const list = $("messages");
  list.replaceChildren();
  if (now)
    now.messages.forEach((m, i) => {
      if (m.role === "user") list.append(editing === i ? editedMessage(m, i, can) : userMessage(m, i, can));
      if (m.role === "assistant") list.append(assistantMessage(m, i, i === now.messages.length - 1, isLive(m), can));
    });
  $("empty").hidden = Boolean(now && now.messages.length);
  composer.showButtons();
}

function grown(r) {
  const li = now === r.chat ? [...$("messages").children].find((x) => x.message === r.message) : null, at = atEnd();
  if (li) fillAnswer(li, r.message, now.messages.indexOf(r.message), true, can);
  if (at) toEnd();
}

function ended(r, kept) {
  const at = atEnd();
  if (!kept) toast("This browser has no more room: the conversation is not kept.");
  if (now === r.chat) draw();
  else composer.showButtons();
  if (at) toEnd();
  say(r.variant.error || "The answer is complete");
}

function begun() {
  draw();
  toEnd();
  chats.listChats(now);
  say("The model is answering");
}

function answer(again) {
  try {
    ask(now, again, { begun, grown, ended });
  } catch {
    toast("The tools in the settings are not JSON.");
  }
}

// What the buttons of messages do; nothing while an answer is written.
const can = {
  answerOf,
  edit(i) {
    if (answering()) return;
    editing = i;
    draw();
  },
  cancel() {
    editing = -1;
    draw();
  },
  send(i, text) {
    if (answering()) return;
    editing = -1;
    now.messages[i].content = text;
    now.messages.length = i + 1;
    answer();
  },
  fork(i) {
    if (answering()) return;
    const c = store.fork(now, i);
    store.save();
    location.hash = "#/chat/" + c.id;
    toast("A copy of the conversation up to here; the first one stays as it is.");
  },
  regenerate(i) {
    if (answering()) return;
    now.messages.length = i + 1;
    answer(now.messages[i]);
  },
  turn(m, by) {
    if (answering()) return;
    m.at = (m.at + by + m.variants.length) % m.variants.length;
    store.save();
    draw();
  },
  result(i, call, text) {
    if (answering()) return;
    now.messages.push({ role: "tool", tool_call_id: call.id, content: text });
    if (store.chosen(now.messages[i]).calls.every((c) => answerOf(i, c) !== undefined)) {
      answer();
      return;
    }
    store.save();
    draw();
  },
};

function titleOf(text) {
  const t = text.replaceAll(/\s+/g, " ");
  return t.length <= 60 ? t || "Image" : t.slice(0, 60).replace(/\s\S*$/, "") + " …";
}

function send(m) {
  if (!now) {
    now = store.create([], titleOf(m.content));
    history.replaceState(null, "", "#/chat/" + now.id);
    $("title").textContent = now.title;
  }
  now.messages.push(m);
  answer();
}

export function open(id) {
  now = (id && store.find(id)) || null;
  editing = -1;
  draw();
  chats.listChats(now);
  toEnd();
  if (matchMedia("(pointer: fine)").matches) $("ask").focus({ preventScroll: true });
}

export function start() {
  composer.start(send);
  chats.start();
  $("new-chat").addEventListener("click", () => {
    if (location.hash === "#/chat") open(null);
    else location.hash = "#/chat";
  });
}
