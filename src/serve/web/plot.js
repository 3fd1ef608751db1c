// Small plots in SVG.  What a plot shows is said in its label; the newest value stands beside it as text.
import { svg } from "./dom.js";

const W = 320, H = 84, PAD = 2;

// A rounder number that is not less, so that the scale does not move with every value.
export function ceiling(v) {
  if (!(v > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(v));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((k) => k * unit >= v * 0.999) * unit;
}

const LEAST = 15; // places: a first value or two are no picture

// series: [{values, kind}…], each value a number or null, newest last, which are as wide as the plot from LEAST on.
// top: the scale, 0: by the values.
export function lines(series, label, top = 0) {
  const max = top || ceiling(Math.max(...series.flatMap((s) => s.values.filter((v) => v !== null)), 0));
  const g = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "plot", role: "img", "aria-label": label, preserveAspectRatio: "none" });
  for (const part of [0.25, 0.5, 0.75]) g.append(svg("line", { x1: 0, x2: W, y1: H * part, y2: H * part, class: "grid" }));
  for (const s of series) {
    const n = Math.max(LEAST, s.values.length), from = n - s.values.length;
    const points = s.values.map((v, i) => v === null ? null : [((from + i) / (n - 1)) * W, H - PAD - (Math.min(v, max) / max) * (H - 2 * PAD)]).filter((p) => p);
    if (points.length < 2) continue;
    const path = points.map((p, i) => (i ? "L" : "M") + p[0].toFixed(1) + " " + p[1].toFixed(1)).join("");
    g.append(svg("path", { d: `${path}L${points.at(-1)[0].toFixed(1)} ${H}L${points[0][0].toFixed(1)} ${H}Z`, class: "area " + s.kind }));
    g.append(svg("path", { d: path, class: "line " + s.kind }));
  }
  return { node: g, max };
}
