// The arithmetic of the sampler page: what temperature, cuts and a curve make of a distribution.  Cuts are those of
// docs/sampling.md.
export const LOW = Math.log(1e-6), BINS = 80; // the bins of /signal: equal parts of the log-probabilities above LOW
const FLOOR = 1e-9; // of a curve's shares, as the server has it

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
export function tailOf(tokens, bins) {
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
