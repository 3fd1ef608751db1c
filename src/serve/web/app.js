// The frame: which page is shown, the models, the settings.
import { $, el, toast } from "./dom.js";
import { ApiError, getKey, json, setKey } from "./api.js";
import { settings, saveSettings, defaults } from "./store.js";
import * as chat from "./chat.js";
import * as status from "./status.js";
import * as sampler from "./sampler.js";

export const models = []; // those that answer: {id, context_window, vision, …}
const pages = { chat, status, sampler };
const titles = { chat: "Chat", status: "Status", sampler: "Sampler" };

function route() {
  const [name, id] = location.hash.replace(/^#\/?/, "").split("/");
  const page = pages[name] ? name : "chat";
  for (const p of Object.keys(pages)) {
    $("page-" + p).hidden = p !== page;
    const link = document.querySelector(`nav a[data-page="${p}"]`);
    if (p === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  menu(false);
  status.show(page === "status");
  if (page === "chat") chat.open(id);
  else pages[page].open();
  const c = page === "chat" && chat.current();
  $("title").textContent = c ? c.title : titles[page];
  document.title = (c ? c.title : titles[page]) + " · cairn";
}

function menu(open) {
  document.body.classList.toggle("menu-open", open);
  $("menu").setAttribute("aria-expanded", String(open));
  $("shade").hidden = !open;
}

// --- models ---

async function loadModels() {
  try {
    const found = (await json("/v1/models")).data;
    models.splice(0, models.length, ...found.filter((m) => m.embeds !== true));
  } catch (e) {
    models.length = 0;
    if (e instanceof ApiError && e.status === 401) askKey();
    else toast(e.message);
  }
  const select = $("model");
  select.replaceChildren(...models.map((m) => el("option", { value: m.id }, m.id)));
  if (!models.length) select.append(el("option", { value: "" }, "no model"));
  if (models.some((m) => m.id === settings.model)) select.value = settings.model;
  else settings.model = select.value;
  chat.modelChanged();
}

// --- settings: a table of them ---

const fields = [
  ["system", "System prompt", "area", "Said before the conversation"],
  ["temperature", "Temperature", [0, 2, 0.05, "1"], "0: always the likeliest"],
  ["top_p", "Top-p", [0, 1, 0.01, "1"], "The likeliest that reach this share"],
  ["top_k", "Top-k", [0, 100000, 1, "0"], "As many of the likeliest tokens; 0: all"],
  ["min_p", "Min-p", [0, 1, 0.01, "0"], "At least this share of the likeliest one"],
  ["repetition_penalty", "Repetition penalty", [0.01, 10, 0.01, "1"], "Above 1: what was said is said less"],
  ["max_tokens", "Longest answer", [1, 1000000, 1, "no limit"], "In tokens; the context ends it at last"],
  ["seed", "Seed", [0, 4294967295, 1, "random"], "The same seed, the same answer"],
  ["thinking", "Thinking", ["", "off", "low", "medium", "high"], "As far as the model's template can"],
  ["tools", "Tools", "area", "A JSON array of functions, as the API takes them"],
];

function control(name, kind) {
  const id = "set-" + name, value = settings[name];
  let e;
  if (kind === "area") e = el("textarea", { id, rows: 3, value, spellcheck: "false" });
  else if (typeof kind[0] === "string") e = el("select", { id }, ...kind.map((k) => el("option", { value: k }, k || "as the model does by itself")));
  else e = el("input", { id, type: "number", min: kind[0], max: kind[1], step: kind[2], placeholder: kind[3], value, inputmode: "decimal" });
  e.value = value;
  e.setAttribute("aria-describedby", id + "-help");
  e.addEventListener("change", () => {
    if (e.checkValidity && !e.checkValidity()) {
      e.reportValidity();
      return;
    }
    settings[name] = e.value;
    saveSettings();
  });
  return e;
}

function drawSettings() {
  const key = el("input", { id: "set-key", type: "password", autocomplete: "off", value: getKey(), "aria-describedby": "set-key-help" });
  const keep = el("input", { id: "set-keep", type: "checkbox", checked: Boolean(localStorage.getItem("cairn.key")) });
  const changed = () => (setKey(key.value.trim(), keep.checked), loadModels());
  key.addEventListener("change", changed);
  keep.addEventListener("change", changed);
  $("fields").replaceChildren(
    ...fields.map(([name, label, kind, help]) => el("div", { class: "field" + (kind === "area" ? " full" : "") },
      el("label", { for: "set-" + name }, label), control(name, kind), el("span", { class: "faint small", id: "set-" + name + "-help" }, help))),
    el("div", { class: "field full" }, el("label", { for: "set-key" }, "API key"), key,
      el("span", { class: "faint small", id: "set-key-help" }, "Where the server asks for one; forgotten with this tab, unless it is to be kept"),
      el("label", { class: "check" }, keep, "Keep it in this browser")),
    el("div", { class: "field full row" }, el("button", { type: "button", class: "plain", onclick: () => {
      Object.assign(settings, defaults, { model: settings.model });
      saveSettings();
      drawSettings();
    } }, "Back to the defaults")));
}

export function openSettings() {
  drawSettings();
  $("settings").showModal();
}

export function askKey() {
  openSettings();
  toast("This server asks for an API key.");
  $("set-key").focus();
}

// --- start ---

chat.start();
status.start();
sampler.start();
$("menu").addEventListener("click", () => menu(!document.body.classList.contains("menu-open")));
$("shade").addEventListener("click", () => menu(false));
$("model").addEventListener("change", () => {
  settings.model = $("model").value;
  saveSettings();
  chat.modelChanged();
});
$("settings").addEventListener("click", (e) => e.target === $("settings") && $("settings").close());
document.addEventListener("keydown", (e) => e.key === "Escape" && menu(false));
addEventListener("hashchange", route);
document.querySelector(".skip").addEventListener("click", (e) => (e.preventDefault(), $("main").focus()));
route();
loadModels();
