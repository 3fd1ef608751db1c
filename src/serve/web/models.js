// The models that answer, and the one that is chosen.
import { $, el, toast } from "./dom.js";
import { ApiError, json } from "./api.js";
import { askKey } from "./settings.js";
import { settings, saveSettings } from "./store.js";

let models = []; // {id, context_window, vision, …}
let changed = () => {};

// undefined: none answers.
export const model = () => models.find((m) => m.id === settings.model) || models[0];

export async function loadModels() {
  try {
    models = (await json("/v1/models")).data.filter((m) => m.embeds !== true);
  } catch (e) {
    models = [];
    if (e instanceof ApiError && e.status === 401) askKey();
    else toast(e.message);
  }
  const select = $("model");
  select.replaceChildren(...models.map((m) => el("option", { value: m.id }, m.id)));
  if (!models.length) select.append(el("option", { value: "" }, "no model"));
  if (models.some((m) => m.id === settings.model)) select.value = settings.model;
  else settings.model = select.value;
  changed();
}

// `fn` is called when another model is chosen, or others answer.
export function start(fn) {
  changed = fn;
  $("model").addEventListener("change", () => {
    settings.model = $("model").value;
    saveSettings();
    changed();
  });
}
