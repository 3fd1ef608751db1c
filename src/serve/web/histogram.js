// The vocabulary by probability, and the curve over it, whose points move by mouse or arrow keys.
import { svg, count } from "./dom.js";
import { BINS, LOW, curveOf } from "./curve.js";

const WIDEST = 560, H = 240, L = 34, B = 26, T = 8, R = 10;
let W = WIDEST; // as wide as its place, so that its words are as large as others

const px = (l) => L + ((Math.max(l, LOW) - LOW) / -LOW) * (W - L - R);
const py = (l) => H - B - ((Math.max(l, LOW) - LOW) / -LOW) * (H - B - T);

const lnPct = (v) => Math.log(v / 100);

function knot(p, i, g, moved) {
  const say = (v) => Number(v.toPrecision(2)) + " %";
  const c = svg("circle", { cx: px(lnPct(p.x)), cy: py(lnPct(p.y)), r: 8, class: "knot", tabindex: 0, role: "slider", "aria-orientation": "vertical",
    "aria-label": "Point " + (i + 1) + " of the curve", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Number(p.y.toPrecision(3)), "aria-valuetext": say(p.x) + " becomes " + say(p.y) });
  c.addEventListener("keydown", (e) => {
    const k = { ArrowUp: [1, 1.15], ArrowDown: [1, 1 / 1.15], ArrowRight: [1.15, 1], ArrowLeft: [1 / 1.15, 1] }[e.key];
    if (!k) return;
    e.preventDefault();
    moved(i, p.x * k[0], p.y * k[1]);
  });
  c.addEventListener("pointerdown", (e) => {
    e.preventDefault();
    const box = g.getBoundingClientRect();
    const drag = (ev) => {
      const x = ((ev.clientX - box.left) / box.width) * W, y = ((ev.clientY - box.top) / box.height) * H;
      moved(i, 100 * Math.exp(LOW - ((x - L) / (W - L - R)) * LOW), 100 * Math.exp(LOW - ((H - B - y) / (H - B - T)) * LOW));
    };
    const stop = () => (removeEventListener("pointermove", drag), removeEventListener("pointerup", stop), removeEventListener("pointercancel", stop));
    addEventListener("pointermove", drag);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  });
  return c;
}

// The elements of it: `bins` are counts of tokens (null: not known yet); `points` make the curve, null: there is none.
// moved(i, x, y) is called when point i is to be there.  `width`: of its place, in
// pixels; 0: not known.
export function histogram(bins, points, moved, width) {
  W = Math.min(WIDEST, Math.max(220, width || WIDEST));
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
  if (points) {
    const f = curveOf(points), path = [];
    for (let i = 0; i <= 120; i++) {
      const l = LOW - (i / 120) * LOW;
      path.push((i ? "L" : "M") + px(l).toFixed(1) + " " + Math.max(T, Math.min(H - B, py(Math.min(f(l), 0)))).toFixed(1));
    }
    g.append(svg("path", { d: `M${px(LOW)} ${py(LOW)}L${px(0)} ${py(0)}`, class: "same" }), svg("path", { d: path.join(""), class: "curve" }));
    points.forEach((p, i) => g.append(knot(p, i, g, moved)));
  }
  return g;
}
