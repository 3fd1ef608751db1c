// The sampler: what may come next after a text, and what temperature, cuts and a curve make of it.
// The likeliest tokens come from /v1/completions (20 at most), the rest of the vocabulary from /signal: how many
// tokens lie in each bin of log-probability.
import { $, el, toast, count } from "./dom.js";
import { ApiError, json } from "./api.js";
import { shape, tailOf } from "./curve.js";
import { histogram } from "./histogram.js";
import { askKey } from "./settings.js";
import { settings } from "./store.js";

const how = { temperature: 1, top_k: 0, top_p: 1, min_p: 0, curve: false };
let points = [{ x: 0.01, y: 0.01 }, { x: 1, y: 1 }, { x: 30, y: 30 }, { x: 100, y: 100 }]; // percent
let tokens = [], bins = null, vocab = 0, asked = null;

const visible = (t) => t.replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥") || "∅";
const percent = (p) => (p >= 0.0995 ? (p * 100).toFixed(0) : p >= 0.00995 ? (p * 100).toFixed(1) : p >= 0.0001 ? (p * 100).toFixed(2) : p ? "<.01" : "0") + " %";

function row(name, was, is, about, most) {
  const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("i", { class: "was" }), el("i", { class: "is" }));
  bar.children[0].style.width = (was / most) * 100 + "%";
  bar.children[1].style.width = (is / most) * 100 + "%";
  return el("tr", { class: is ? null : "cut" }, el("th", { scope: "row" }, name), el("td", { class: "bars" }, bar),
    el("td", { class: "num faint" }, percent(was)), el("td", { class: "num" }, is ? about + percent(is) : "cut"));
}

function drawTokens(now) {
  const was = tokens.map((t) => Math.exp(t.logprob)), left = Math.max(0, 1 - was.reduce((a, b) => a + b, 0));
  const rest = now.share.slice(tokens.length).reduce((a, b) => a + b, 0), most = Math.max(1e-9, ...was, ...now.share.slice(0, tokens.length), left, rest);
  const rows = tokens.map((t, i) => row(el("code", {}, visible(t.text)), was[i], now.share[i], "", most));
  if (vocab) rows.push(row(count(vocab - tokens.length) + " others", left, rest, "≈ ", most));
  if (vocab) rows.at(-1).classList.add("rest");
  $("next").replaceChildren(el("table", { class: "next" }, el("caption", { class: "hidden" }, "The likeliest next tokens"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Token"), el("td", { class: "bars" }), el("th", { scope: "col", class: "num" }, "model"), el("th", { scope: "col", class: "num" }, "drawn"))),
    el("tbody", {}, ...rows)));
  const kept = Math.min(now.kept, vocab);
  $("kept").textContent = tokens.length ? (kept > tokens.length && kept < vocab ? "About " : "") + count(kept) + (kept === 1 ? " token" : " tokens") + " of " + count(vocab) + " can be drawn" : "";
}

const clampPct = (v, lo, hi) => Math.min(hi, Math.max(lo, v));

function moved(i, x, y) {
  const p = points[i], a = points[i - 1], b = points[i + 1];
  p.x = clampPct(x, a ? a.x * 1.05 : 1e-4, b ? b.x / 1.05 : 100);
  p.y = clampPct(y, a ? a.y : 1e-4, b ? b.y : 100);
  draw();
  $("histogram").querySelectorAll(".knot")[i].focus();
}

function draw() {
  $("histogram").replaceChildren(histogram(bins, how.curve ? points : null, moved, $("histogram").clientWidth));
  drawTokens(shape(tokens.map((t) => t.logprob), tailOf(tokens, bins), { ...how, points }));
}

async function look() {
  const prompt = $("sampler-text").value;
  if (!prompt) return;
  if (asked) asked.abort();
  const mine = (asked = new AbortController());
  $("look").disabled = true;
  try {
    const model = settings.model || undefined;
    const [next, signal] = await Promise.all([
      json("/v1/completions", { model, prompt, max_tokens: 1, temperature: 0, logprobs: 20 }, mine.signal),
      json("/signal", { model, prompt }, mine.signal)]);
    const lp = next.choices[0].logprobs;
    tokens = lp && lp.top_logprobs.length ? Object.entries(lp.top_logprobs[0]).map(([text, logprob]) => ({ text, logprob })).sort((a, b) => b.logprob - a.logprob) : [];
    bins = signal.bins;
    vocab = signal.vocab;
    draw();
  } catch (e) {
    if (e.name === "AbortError") return;
    toast(e.message);
    if (e instanceof ApiError && e.status === 401) askKey();
  } finally {
    $("look").disabled = false;
  }
}

function sample(title, list) {
  return el("section", {}, el("h3", {}, title), ...list.map((s) => el("blockquote", { class: s.junk ? "junk" : null }, s.text || "(nothing)", s.junk ? el("span", { class: "tag" }, "junk") : null)));
}

async function draws() {
  const prompt = $("sampler-text").value, model = settings.model || undefined;
  if (!prompt) return;
  const base = { model, prompt, n: 3, max_tokens: 48, seed: Number($("sampler-seed").value) || 0 };
  const curve = points.map((p) => ({ x_pct: p.x, y_pct: p.y }));
  $("draw").disabled = true;
  $("samples").replaceChildren(el("p", { class: "faint" }, "Drawing …"));
  try {
    const [mine, plain] = await Promise.all([json("/generate", { ...base, curve }), json("/generate", { ...base, default: true })]);
    $("samples").replaceChildren(sample("With the curve", mine.samples), sample("As the model has it", plain.samples));
  } catch (e) {
    $("samples").replaceChildren();
    toast(e.message);
    if (e instanceof ApiError && e.status === 401) askKey();
  }
  $("draw").disabled = false;
}

function slider(name, label, min, max, step, words) {
  const out = el("output", { for: "s-" + name });
  const show = () => (out.textContent = words(how[name]));
  const input = el("input", { id: "s-" + name, type: "range", min, max, step, value: how[name] });
  input.addEventListener("input", () => ((how[name] = Number(input.value)), show(), input.setAttribute("aria-valuetext", words(how[name])), draw()));
  show();
  return el("div", { class: "slider" }, el("label", { for: "s-" + name }, label), out, input);
}

const presets = {
  "As it is": [[0.01, 0.01], [1, 1], [30, 30], [100, 100]],
  "No tail": [[0.05, 0.0001], [0.5, 0.05], [10, 10], [100, 100]],
  "Bolder": [[0.05, 0.001], [1, 3], [20, 20], [100, 50]],
  "Surer": [[0.05, 0.0005], [2, 0.2], [30, 20], [100, 100]],
};

export function start() {
  const curveOn = el("input", { type: "checkbox", id: "curve-on", checked: how.curve });
  curveOn.addEventListener("change", () => {
    how.curve = curveOn.checked;
    $("sliders").disabled = how.curve;
    $("curve-part").hidden = !how.curve;
    draw();
  });
  $("page-sampler").append(el("div", { class: "inner" },
    el("form", { id: "look-form", class: "card full", onsubmit: (e) => (e.preventDefault(), look()) },
      el("label", { for: "sampler-text" }, "A text"), el("textarea", { id: "sampler-text", rows: 2, value: "The capital of France is" }),
      el("div", { class: "row" }, el("span", { class: "faint small" }, "The text itself, without a chat's template"), el("button", { id: "look", class: "primary", type: "submit" }, "What comes next?"))),
    el("div", { class: "split" },
      el("section", { class: "card" }, el("h2", {}, "The next token"), el("p", { id: "kept", class: "faint small", role: "status" }), el("div", { id: "next" })),
      el("div", { class: "column" },
        el("section", { class: "card" }, el("h2", {}, "Settings"),
          el("fieldset", { id: "sliders" }, el("legend", { class: "hidden" }, "Cuts and temperature"),
            slider("temperature", "Temperature", 0, 2, 0.05, (v) => (v < 0.001 ? "0: the likeliest" : v.toFixed(2))),
            slider("top_k", "Top-k", 0, 50, 1, (v) => (v ? String(v) : "off")),
            slider("top_p", "Top-p", 0, 1, 0.01, (v) => (v < 1 ? v.toFixed(2) : "off")),
            slider("min_p", "Min-p", 0, 0.5, 0.005, (v) => (v ? v.toFixed(3) : "off"))),
          el("label", { class: "check" }, curveOn, "A curve in their place")),
        el("section", { class: "card" }, el("h2", {}, "The whole vocabulary"),
          el("p", { class: "faint small" }, "How many tokens (log scale) have which probability. With a curve: across, what the model says; up, what is drawn. Points move by mouse or arrow keys."),
          el("div", { id: "histogram" }),
          el("div", { id: "curve-part", hidden: true },
            el("div", { class: "row presets" }, ...Object.entries(presets).map(([name, list]) => el("button", { type: "button", class: "plain", onclick: () => {
              points = list.map(([x, y]) => ({ x, y }));
              draw();
            } }, name))),
            el("div", { class: "row" }, el("label", { for: "sampler-seed" }, "Seed"), el("input", { id: "sampler-seed", type: "number", min: 0, max: 4294967295, value: 1 }), el("button", { id: "draw", type: "button", class: "primary", onclick: draws }, "Draw samples")),
            el("div", { id: "samples", "aria-live": "polite" })))))));
  draw();
  addEventListener("resize", () => $("page-sampler").hidden || draw());
}

export function open() {
  draw(); // as wide as it is now
  if (!tokens.length) look();
}
