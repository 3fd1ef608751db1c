// The chat: the conversation that is shown, and what can be done with it.
import { $, refill, say, toast } from "./dom.js";
import { answering, ask } from "./answer.js";
import * as chats from "./chats.js";
import * as composer from "./composer.js";
import { assistantMessage, editedMessage, fillAnswer, userMessage } from "./message.js";
import * as spoken from "./spoken.js";
import * as store from "./store.js";

export { modelChanged } from "./composer.js";

let now = null; // the conversation shown; null: a new one that has no message yet
let editing = -1;
let held = ""; // selects what had the focus before the button that stops an answer had it

export const current = () => now;

const scroller = () => $("scroll");
const atEnd = () => scroller().scrollHeight - scroller().scrollTop - scroller().clientHeight < 80;
const toEnd = () => (scroller().scrollTop = scroller().scrollHeight);

function answerOf(i, call) {
  const a = now.messages.find((m, k) => k > i && m.role === "tool" && m.tool_call_id === call.id);
  return a && a.content;
}

const isLive = (m) => Boolean(answering()) && answering().message === m;

function element(m, i) {
  if (m.role === "user") return editing === i ? editedMessage(m, i, can) : userMessage(m, i, can);
  return m.role === "assistant" ? assistantMessage(m, i, i === now.messages.length - 1, isLive(m), can) : null;
}

function draw() {
  const lost = refill($("messages"), now ? now.messages.map(element).filter((e) => e) : []);
  $("empty").hidden = Boolean(now && now.messages.length);
  $("messages").hidden = !$("empty").hidden; // an empty list is none
  composer.showButtons();
  if (lost && answering()) (held = lost), $("stop").focus();
  else if (lost) composer.focusField();
}

const elementOf = (r) => (now === r.chat ? [...$("messages").children].find((x) => x.message === r.message) : null);

function grown(r) {
  const li = elementOf(r), at = atEnd();
  if (!li) return;
  fillAnswer(li, r.message, now.messages.indexOf(r.message), true, can);
  spoken.tell(li.parts.text, false);
  if (at) toEnd();
}

// Where the focus goes from the button that stops.
function goOn() {
  const e = held && $("messages").querySelector(held);
  held = "";
  if (e) e.focus();
  else composer.focusField();
}

function outcome(v) {
  if (v.error) return v.error;
  if (v.note.why === "stopped") return "Stopped";
  return v.calls.length ? "The model calls " + v.calls.map((c) => c.name).join(", ") : "The answer is complete";
}

function ended(r, kept) {
  const at = atEnd(), stops = document.activeElement === $("stop");
  if (!kept) toast("This browser has no more room: the conversation is not kept.");
  if (now === r.chat) draw();
  else composer.showButtons();
  if (at) toEnd();
  if (stops) goOn();
  if (elementOf(r)) spoken.tell(elementOf(r).parts.text, true);
  say(outcome(r.variant));
}

function begun() {
  held = "";
  spoken.begin();
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
    say("Answer " + (m.at + 1) + " of " + m.variants.length);
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
