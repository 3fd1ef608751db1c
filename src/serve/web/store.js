// Conversations and settings, kept in this browser.  A conversation is
//   {id, title, at, messages: [message…]}
// and a message is {role: "user", content, images} or {role: "tool", content, tool_call_id} or
//   {role: "assistant", at, variants: [{content, thought, calls, note, error}…]}
// of which `at` says which variant goes on.
const CHATS = "cairn.chats";
const SETTINGS = "cairn.settings";
const MOST = 200; // conversations kept: a browser gives a page five million characters or so

export const defaults = {
  model: "", system: "", temperature: "", top_p: "", top_k: "", min_p: "", repetition_penalty: "",
  max_tokens: "", seed: "", thinking: "", tools: "",
};

function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) || otherwise;
  } catch {
    return otherwise;
  }
}

let chats = read(CHATS, []).filter(valid);
export const settings = { ...defaults, ...read(SETTINGS, {}) };

export function saveSettings() {
  localStorage.setItem(SETTINGS, JSON.stringify(settings));
}

function valid(c) {
  return c && typeof c.id === "string" && typeof c.title === "string" && Array.isArray(c.messages) &&
    c.messages.every((m) => m && (m.role === "assistant" ? Array.isArray(m.variants) && m.variants[m.at] : typeof m.content === "string"));
}

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");

// Pictures are the largest part: when the browser has no more room the oldest conversations go first.
export function save() {
  chats.sort((a, b) => b.at - a.at);
  chats.length = Math.min(chats.length, MOST);
  for (;;) {
    try {
      localStorage.setItem(CHATS, JSON.stringify(chats));
      return true;
    } catch {
      if (chats.length <= 1) return false;
      chats.pop();
    }
  }
}

export const list = () => chats;
export const find = (id) => chats.find((c) => c.id === id);

export function create(messages = [], title = "") {
  const c = { id: newId(), title, at: Date.now(), messages };
  chats.unshift(c);
  return c;
}

export function remove(id) {
  chats = chats.filter((c) => c.id !== id);
  save();
}

// A copy up to message i, that one included.
export function fork(c, i) {
  return create(structuredClone(c.messages.slice(0, i + 1)), c.title + " (fork)");
}

export const chosen = (m) => m.variants[m.at];

export function exported(some = chats) {
  return JSON.stringify({ format: "cairn-conversations", version: 1, conversations: some }, null, 1);
}

// How many conversations of an exported file are new here; throws what is wrong with it.
export function imported(text) {
  const file = JSON.parse(text);
  if (file.format !== "cairn-conversations" || !Array.isArray(file.conversations)) throw new Error("not a file of conversations");
  const fresh = file.conversations.filter((c) => valid(c) && !find(c.id));
  chats.push(...fresh);
  save();
  return fresh.length;
}

// What the API is given of a conversation: a system prompt, then each message.
export function toApi(c, system) {
  const out = system ? [{ role: "system", content: system }] : [];
  for (const m of c.messages) {
    if (m.role === "user")
      out.push({ role: "user", content: m.images && m.images.length
        ? [{ type: "text", text: m.content }, ...m.images.map((url) => ({ type: "image_url", image_url: { url } }))]
        : m.content });
    else if (m.role === "tool") out.push({ role: "tool", tool_call_id: m.tool_call_id, content: m.content });
    else {
      const v = chosen(m);
      if (!v.content && !(v.calls && v.calls.length)) continue; // nothing came of it
      const a = { role: "assistant", content: v.content || null };
      if (v.calls && v.calls.length)
        a.tool_calls = v.calls.map((k) => ({ id: k.id, type: "function", function: { name: k.name, arguments: k.arguments } }));
      out.push(a);
    }
  }
  return out;
}
