// The list of conversations, and the files that they are kept in and come from.
import { $, el, download, toast } from "./dom.js";
import { answering } from "./answer.js";
import { action } from "./message.js";
import * as store from "./store.js";

let now = null; // the conversation shown

function rename(c, open) {
  const input = el("input", { value: c.title, "aria-label": "Name of the conversation", maxlength: 100 });
  let over = false;
  const done = (keep) => {
    if (over) return;
    over = true;
    if (keep && input.value.trim()) c.title = input.value.trim();
    store.save();
    listChats(now);
  };
  input.addEventListener("keydown", (e) => (e.key === "Enter" && done(true), e.key === "Escape" && done(false)));
  input.addEventListener("blur", () => done(true));
  open.replaceWith(input);
  input.select();
}

function remove(c) {
  if (answering() && answering().chat === c) return;
  store.remove(c.id);
  if (now === c) location.hash = "#/chat";
  listChats(now);
}

function chatItem(c) {
  const open = el("a", { href: "#/chat/" + c.id, class: "open", "aria-current": now && now.id === c.id ? "page" : null }, c.title);
  return el("li", {}, open, el("span", { class: "chat-actions" },
    action("Rename " + c.title, () => rename(c, open), "✎"),
    action("Export " + c.title, () => download("cairn-conversation.json", store.exported([c])), "↓"),
    action("Delete " + c.title, () => remove(c), "×")));
}

// `shown`: the conversation that is seen, or null.
export function listChats(shown) {
  now = shown;
  $("chats").replaceChildren(...store.list().map(chatItem));
}

async function importFile() {
  const f = $("import-file").files[0];
  $("import-file").value = "";
  if (!f) return;
  try {
    toast(store.imported(await f.text()) + " conversations were added.");
    listChats(now);
  } catch (e) {
    toast(f.name + ": " + e.message);
  }
}

export function start() {
  $("export-all").addEventListener("click", () => download("cairn-conversations.json", store.exported()));
  $("import").addEventListener("click", () => $("import-file").click());
  $("import-file").addEventListener("change", importFile);
}
