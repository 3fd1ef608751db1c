// The settings: a table of them, and the dialog that shows it.
import { $, el } from "./dom.js";
import { getKey, setKey } from "./api.js";
import { settings, saveSettings, defaults } from "./store.js";

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
let keyChanged = () => {};

// What is wrong with the tools, or "".
function toolsFault(text) {
  if (!text.trim()) return "";
  try {
    return Array.isArray(JSON.parse(text)) ? "" : "This is JSON, but no array of functions.";
  } catch (e) {
    return "This is not JSON: " + e.message;
  }
}

function control(name, kind) {
  const id = "set-" + name, value = settings[name];
  let e;
  if (kind === "area") e = el("textarea", { id, rows: 3, value, spellcheck: "false" });
  else if (typeof kind[0] === "string") e = el("select", { id }, ...kind.map((k) => el("option", { value: k }, k || "as the model does by itself")));
  else e = el("input", { id, type: "number", min: kind[0], max: kind[1], step: kind[2], placeholder: kind[3], value, inputmode: "decimal" });
  e.value = value;
  e.setAttribute("aria-describedby", id + "-help");
  e.addEventListener("change", () => {
    if (name === "tools") e.setCustomValidity(toolsFault(e.value));
    if (e.checkValidity && !e.checkValidity()) {
      e.reportValidity();
      return;
    }
    settings[name] = e.value;
    saveSettings();
  });
  return e;
}

function draw() {
  const key = el("input", { id: "set-key", type: "password", autocomplete: "off", value: getKey(), "aria-describedby": "set-key-help" });
  const keep = el("input", { id: "set-keep", type: "checkbox", checked: Boolean(localStorage.getItem("cairn.key")) });
  const changed = () => (setKey(key.value.trim(), keep.checked), keyChanged());
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
      draw();
    } }, "Back to the defaults")));
}

// `why`: what made the page open them.
function openSettings(why) {
  draw();
  $("settings-why").textContent = why;
  $("settings-why").hidden = !why;
  if (!$("settings").open) $("settings").showModal();
}

export function askKey() {
  openSettings(getKey() ? "This server does not take the API key." : "This server asks for an API key.");
  $("set-key").setAttribute("aria-describedby", "settings-why set-key-help");
  $("set-key").focus();
}

// `fn` is called when another key is to be used.
export function start(fn) {
  keyChanged = fn;
  $("open-settings").addEventListener("click", () => openSettings(""));
  $("settings").addEventListener("click", (e) => e.target === $("settings") && $("settings").close());
}
