// The sampler: what may come next after a text, and what temperature, cuts and a curve make of it.
// The likeliest tokens come from /v1/completions (20 at most), the rest of the vocabulary from /signal: how many
// tokens lie in each of 80 bins of log-probability.  Cuts are those of docs/sampling.md.
import { $, el, svg, toast, count } from "./dom.js";
import { ApiError, json } from "./api.js";
import { askKey } from "./app.js";
import { settings } from "./store.js";

const LOW = Math.log(1e-6), BINS = 80;
const FLOOR = 1e-9; // of a curve's shares, as the server has it

const how = { temperature: 1, top_k: 0, top_p: 1, min_p: 0, curve: false };
let points = [{ x: 0.01, y: 0.01 }, { x: 1, y: 1 }, { x: 30, y: 30 }, { x: 100, y: 100 }]; // percent
let tokens = [], bins = null, vocab = 0, asked = null;

// --- the arithmetic ---

// Monotone cubic through (ln x, ln y): Fritsch and Carlson 1980.  A function of a log-probability.
export function curveOf(list) {
  const ln = (pct) => Math.log(Math.max(pct / 100, FLOOR));
  const x = list.map((p) => ln(p.x)), y = list.map((p) => ln(p.y)), n = x.length;
  const d = x.slice(1).map((v, i) => (y[i + 1] - y[i]) / (v - x[i]));
  const m = x.map((_, i) => (i === 0 ? d[0] : i === n - 1 ? d[n - 2] : (d[i - 1] + d[i]) / 2));
  d.forEach((s, i) => {
    if (s === 0) m[i] = m[i + 1] = 0;
    else {
      const a = m[i] / s, b = m[i + 1] / s, r = a * a + b * b;
      if (r > 9) (m[i] = (3 / Math.sqrt(r)) * a * s), (m[i + 1] = (3 / Math.sqrt(r)) * b * s);
    }
  });
  return (l) => {
    if (l <= x[0]) return y[0] + Math.max(m[0], 1) * (l - x[0]);
    if (l >= x[n - 1]) return y[n - 1] + m[n - 1] * (l - x[n - 1]);
    let k = 0;
    while (l > x[k + 1]) k++;
    const h = x[k + 1] - x[k], t = (l - x[k]) / h, t2 = t * t, t3 = t2 * t;
    return (2 * t3 - 3 * t2 + 1) * y[k] + (t3 - 2 * t2 + t) * h * m[k] + (3 * t2 - 2 * t3) * y[k + 1] + (t3 - t2) * h * m[k + 1];
  };
}

// What is left of the known tokens and of the bins, as weights; both lists begin with the likeliest.
// top: log-probabilities; tail: [{logprob, n}…] of the tokens that are not among them.
export function shape(top, tail, s) {
  const all = [...top.map((l) => ({ l, n: 1 })), ...tail.map((b) => ({ l: b.logprob, n: b.n }))];
  const best = all.length ? all[0].l : 0;
  let rank = 0, sum = 0;
  const f = s.curve ? curveOf(s.points) : (l) => l / Math.max(s.temperature, 1e-3);
  const weights = all.map((t, i) => {
    const kept = i === 0 || s.curve || ((!s.top_k || rank < s.top_k) && (s.top_p >= 1 || sum < s.top_p) && Math.exp(t.l - best) >= s.min_p);
    const room = s.curve || !s.top_k ? t.n : Math.min(t.n, Math.max(0, s.top_k - rank));
    rank += t.n;
    sum += t.n * Math.exp(t.l);
    return kept ? { each: f(t.l), n: room } : null;
  });
  const high = Math.max(...weights.filter((w) => w).map((w) => w.each));
  const value = weights.map((w) => (w ? w.n * Math.exp(w.each - high) : 0));
  const total = value.reduce((a, b) => a + b, 0) || 1;
  return { share: value.map((v) => v / total), kept: weights.reduce((a, w) => a + (w ? w.n : 0), 0) };
}

// The bins without the tokens that are known by name; together they have what those leave over.
function tailOf() {
  if (!bins) return [];
  const left = bins.slice();
  for (const t of tokens) {
    const b = Math.min(BINS - 1, Math.max(0, Math.floor(((t.logprob - LOW) / -LOW) * BINS)));
    if (left[b]) left[b]--;
  }
  const out = [];
  for (let i = BINS - 1; i >= 0; i--) if (left[i]) out.push({ logprob: LOW - ((i + 0.5) / BINS) * LOW, n: left[i] });
  const known = tokens.reduce((a, t) => a + Math.exp(t.logprob), 0), found = out.reduce((a, b) => a + b.n * Math.exp(b.logprob), 0);
  const by = Math.log(Math.max(1e-9, 1 - known) / (found || 1));
  for (const b of out) b.logprob += by;
  return out;
}

// --- what is seen ---

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
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Token"), el("th", { scope: "col", class: "bars" }, ""), el("th", { scope: "col", class: "num" }, "model"), el("th", { scope: "col", class: "num" }, "drawn"))),
    el("tbody", {}, ...rows)));
  const kept = Math.min(now.kept, vocab);
  $("kept").textContent = tokens.length ? (kept > tokens.length && kept < vocab ? "About " : "") + count(kept) + (kept === 1 ? " token" : " tokens") + " of " + count(vocab) + " can be drawn" : "";
}

const W = 560, H = 240, L = 34, B = 26, T = 8, R = 10;
const px = (l) => L + ((Math.max(l, LOW) - LOW) / -LOW) * (W - L - R);
const py = (l) => H - B - ((Math.max(l, LOW) - LOW) / -LOW) * (H - B - T);

function drawHistogram() {
  const g = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "histogram", role: "group", "aria-label": "Histogram of the vocabulary by probability, and the curve" });
  const most = bins ? Math.log1p(Math.max(...bins)) : 1, w = (W - L - R) / BINS;
  for (let e = -6; e <= 0; e++) {
    const x = px(e * Math.LN10), label = e === 0 ? "100 %" : e === -2 ? "1 %" : e === -4 ? "0.01 %" : e === -6 ? "≤ 10⁻⁴ %" : "";
    g.append(svg("line", { x1: x, x2: x, y1: T, y2: H - B, class: "grid" }));
    if (label) g.append(svg("text", { x, y: H - 8, class: "axis", "text-anchor": e === 0 ? "end" : e === -6 ? "start" : "middle" }, label));
  }
  if (bins)
    bins.forEach((n, i) => {
      if (!n) return;
      const h = (Math.log1p(n) / most) * (H - B - T);
      g.append(svg("rect", { x: L + i * w + 0.4, y: H - B - h, width: w - 0.8, height: h, class: "bin" }, svg("title", {}, count(n) + " tokens")));
    });
  if (how.curve) {
    const f = curveOf(points), path = [];
    for (let i = 0; i <= 120; i++) {
      const l = LOW - (i / 120) * LOW;
      path.push((i ? "L" : "M") + px(l).toFixed(1) + " " + Math.max(T, Math.min(H - B, py(Math.min(f(l), 0)))).toFixed(1));
    }
    g.append(svg("path", { d: `M${px(LOW)} ${py(LOW)}L${px(0)} ${py(0)}`, class: "same" }), svg("path", { d: path.join(""), class: "curve" }));
    points.forEach((p, i) => g.append(knot(p, i, g)));
  }
  $("histogram").replaceChildren(g);
}

const lnPct = (v) => Math.log(v / 100);
const clampPct = (v, lo, hi) => Math.min(hi, Math.max(lo, v));

function move(i, x, y) {
  const p = points[i], a = points[i - 1], b = points[i + 1];
  p.x = clampPct(x, a ? a.x * 1.05 : 1e-4, b ? b.x / 1.05 : 100);
  p.y = clampPct(y, a ? a.y : 1e-4, b ? b.y : 100);
}

function knot(p, i, g) {
  const say = (v) => Number(v.toPrecision(2)) + " %";
  const c = svg("circle", { cx: px(lnPct(p.x)), cy: py(lnPct(p.y)), r: 8, class: "knot", tabindex: 0, role: "slider", "aria-orientation": "vertical",
    "aria-label": "Point " + (i + 1) + " of the curve", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Number(p.y.toPrecision(3)), "aria-valuetext": say(p.x) + " becomes " + say(p.y) });
  c.addEventListener("keydown", (e) => {
    const k = { ArrowUp: [1, 1.15], ArrowDown: [1, 1 / 1.15], ArrowRight: [1.15, 1], ArrowLeft: [1 / 1.15, 1] }[e.key];
    if (!k) return;
    e.preventDefault();
    move(i, p.x * k[0], p.y * k[1]);
    draw();
    $("histogram").querySelectorAll(".knot")[i].focus();
  });
  c.addEventListener("pointerdown", (e) => {
    e.preventDefault();
    const box = g.getBoundingClientRect();
    const drag = (ev) => {
      const x = ((ev.clientX - box.left) / box.width) * W, y = ((ev.clientY - box.top) / box.height) * H;
      move(i, 100 * Math.exp(LOW - ((x - L) / (W - L - R)) * LOW), 100 * Math.exp(LOW - ((H - B - y) / (H - B - T)) * LOW));
      draw();
    };
    const stop = () => (removeEventListener("pointermove", drag), removeEventListener("pointerup", stop), removeEventListener("pointercancel", stop));
    addEventListener("pointermove", drag);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  });
  return c;
}

function draw() {
  drawHistogram();
  drawTokens(shape(tokens.map((t) => t.logprob), tailOf(), { ...how, points }));
}

// --- asking ---

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
}

export function open() {
  if (!tokens.length) look();
}
