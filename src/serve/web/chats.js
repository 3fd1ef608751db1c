// The list of conversations, and the files that they are kept in and come from.
import { $, el, download, refill, say, some, sure, toast } from "./dom.js";
import { answering } from "./answer.js";
import { action } from "./message.js";
import * as store from "./store.js";

let now = null; // the conversation shown

function rename(c, open) {
  const input = el("input", { value: c.title, "data-do": "rename", "aria-label": "Name of the conversation", maxlength: 100 });
  let over = false;
  const done = (keep) => {
    if (over) return;
    over = true;
    if (keep && input.value.trim()) c.title = input.value.trim();
    store.save();
    listChats(now);
  };
  input.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== "Escape") return;
    e.preventDefault(); // the button that has the focus then is not pressed
    done(e.key === "Enter");
  });
  input.addEventListener("blur", () => done(true));
  open.replaceWith(input);
  input.focus();
  input.select();
}

const isWritten = (c) => Boolean(answering()) && answering().chat === c;

async function remove(c) {
  if (isWritten(c) || !(await sure("Delete “" + c.title + "”?")) || isWritten(c)) return;
  const at = store.list().indexOf(c);
  store.remove(c.id);
  if (now === c) location.hash = "#/chat";
  listChats(now);
  ($("chats").querySelectorAll(".open")[at] || $("new-chat")).focus();
  say("Deleted");
}

async function removeAll() {
  if (answering() || !store.list().length) return;
  if (!(await sure("Delete all conversations (" + store.list().length + ") from this browser?")) || answering()) return;
  for (const c of [...store.list()]) store.remove(c.id);
  location.hash = "#/chat";
  listChats(null);
  $("new-chat").focus();
  say("Deleted");
}

function chatItem(c) {
  const open = el("a", { href: "#/chat/" + c.id, class: "open", "data-do": "open", "aria-current": now && now.id === c.id ? "page" : null }, c.title);
  return el("li", { "data-key": c.id }, open, el("span", { class: "chat-actions" },
    action("rename", "Rename " + c.title, () => rename(c, open), "✎"),
    action("export", "Export " + c.title, () => download("cairn-conversation.json", store.exported([c])), "↓"),
    action("delete", "Delete " + c.title, () => remove(c), "×")));
}

// `shown`: the conversation that is seen, or null.
export function listChats(shown) {
  now = shown;
  $("chats").hidden = store.list().length === 0; // an empty list is none
  refill($("chats"), store.list().map(chatItem));
}

async function importFile() {
  const f = $("import-file").files[0];
  $("import-file").value = "";
  if (!f) return;
  try {
    toast(some(store.imported(await f.text()), "conversation was", "conversations were") + " added.");
    listChats(now);
  } catch (e) {
    toast(f.name + ": " + e.message);
  }
}

export function start() {
  $("export-all").addEventListener("click", () => download("cairn-conversations.json", store.exported()));
  $("delete-all").addEventListener("click", removeAll);
  $("import").addEventListener("click", () => $("import-file").click());
  $("import-file").addEventListener("change", importFile);
}
