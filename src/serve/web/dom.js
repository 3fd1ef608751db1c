// Elements made in one call.  Text only ever becomes text nodes: nothing here parses HTML.

// el("button", {class: "plain", onclick: f, "aria-label": "…"}, "text", node, …)
export function el(tag, attrs = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") e[name] = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attrs = {}, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}

export const $ = (id) => document.getElementById(id);

// What a screen reader says next; sighted users see it happen.
export function say(text) {
  $("say").textContent = text;
}

// Fills `list` anew.  What had the focus has it again: known by its data-do within the child's data-key.  Where it
// is no more there, or hidden, the answer is its selector, else "".
export function refill(list, children) {
  const a = list.contains(document.activeElement) ? document.activeElement : null;
  const child = a && a.closest("[data-key]");
  list.replaceChildren(...children);
  if (!child) return "";
  const same = `[data-key="${child.dataset.key}"] [data-do="${a.dataset.do}"]`, e = list.querySelector(same);
  if (e) e.focus({ preventScroll: true });
  return e && document.activeElement === e ? "" : same;
}

// Makes `old` what `fresh` is, and keeps the elements that stay: who reads them is not thrown out.
export function renew(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const a of [...old.attributes]) if (!fresh.hasAttribute(a.name)) old.removeAttribute(a.name);
  for (const a of fresh.attributes) {
    if (old.getAttribute(a.name) === a.value) continue;
    if (a.name === "style") old.style.cssText = a.value; // as an attribute the policy forbids it
    else old.setAttribute(a.name, a.value);
  }
  const have = [...old.childNodes], want = [...fresh.childNodes];
  want.forEach((w, i) => (have[i] ? renew(have[i], w) : old.append(w)));
  have.slice(want.length).forEach((h) => h.remove());
}

let hide;
export function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => ($("toast").hidden = true), 6000);
}

// Whether the user wants what cannot be taken back.
export function sure(question) {
  const d = $("sure");
  $("sure-what").textContent = question;
  d.returnValue = "";
  d.showModal();
  return new Promise((done) => d.addEventListener("close", () => done(d.returnValue === "yes"), { once: true }));
}

export const some = (n, one, more = one + "s") => count(n) + " " + (n === 1 ? one : more);

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) (n /= 1000), i++;
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

export function count(n) {
  return Math.round(n).toLocaleString("en").replaceAll(",", "\u202f");
}
