// Markdown as models write it.  parse() makes plain data, which tests look at without a browser; render() makes
// elements of it.  No text is ever read as HTML, links go to http, https and mailto alone, and pictures become
// links: showing one would tell somebody that this was read.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEAD = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const QUOTE = /^ {0,3}>\s?(.*)$/;
const TABLE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEPTH = 8; // of lists and quotes within each other: deeper is text

const indent = (s) => s.match(/^ */)[0].length;

function cells(line) {
  const out = [""];
  const s = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  for (let i = 0; i < s.length; i++) {
    if (s[i] === "\\" && s[i + 1] === "|") out[out.length - 1] += s[++i];
    else if (s[i] === "|") out.push("");
    else out[out.length - 1] += s[i];
  }
  return out.map((c) => c.trim());
}

function table(lines, i) {
  const head = cells(lines[i]), align = cells(lines[i + 1]);
  if (head.length !== align.length) return null;
  const rows = [];
  let k = i + 2;
  for (; k < lines.length && lines[k].includes("|"); k++) rows.push(cells(lines[k]).slice(0, head.length));
  return { next: k, block: { type: "table", head, rows, align: align.map((a) => (a.startsWith(":") && a.endsWith(":") ? "center" : a.endsWith(":") ? "right" : "left")) } };
}

function fence(lines, i, m) {
  const body = [], from = indent(lines[i]);
  const end = new RegExp("^ {0,3}" + m[1][0] + "{" + m[1].length + ",}\\s*$");
  let k = i + 1;
  for (; k < lines.length && !end.test(lines[k]); k++) body.push(lines[k].slice(Math.min(from, indent(lines[k]))));
  return { next: Math.min(k + 1, lines.length), block: { type: "code", lang: m[2].trim().split(/\s/)[0], text: body.join("\n"), open: k >= lines.length } };
}

function list(lines, i, depth) {
  const first = lines[i].match(ITEM), ordered = /\d/.test(first[2]), base = first[1].length;
  const items = [];
  let k = i;
  while (k < lines.length) {
    const m = lines[k].match(ITEM);
    if (!m || m[1].length > base + 1 || m[1].length < base || /\d/.test(m[2]) !== ordered) break;
    const inner = m[1].length + m[2].length + Math.min(Math.max(m[3].length, 1), 4);
    const body = [m[4]];
    for (k++; k < lines.length; k++) {
      const blank = !lines[k].trim();
      if (!blank && indent(lines[k]) < Math.min(inner, base + 2)) break;
      if (blank && (k + 1 >= lines.length || (lines[k + 1].trim() && indent(lines[k + 1]) < Math.min(inner, base + 2)))) break;
      body.push(lines[k].slice(Math.min(inner, indent(lines[k]))));
    }
    const task = body[0].match(/^\[([ xX])\]\s+(.*)$/);
    if (task) body[0] = task[2];
    items.push({ task: task ? task[1] !== " " : null, blocks: blocks(body, depth + 1) });
    while (k < lines.length && !lines[k].trim() && k + 1 < lines.length && ITEM.test(lines[k + 1])) k++;
  }
  return { next: k, block: { type: "list", ordered, start: ordered ? parseInt(first[2], 10) : 1, items } };
}

function starts(line) {
  return FENCE.test(line) || HEAD.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function blocks(lines, depth) {
  const out = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    let m;
    if (!line.trim()) i++;
    else if ((m = line.match(FENCE))) {
      const f = fence(lines, i, m);
      out.push(f.block);
      i = f.next;
    } else if ((m = line.match(HEAD))) {
      out.push({ type: "head", level: m[1].length, text: m[2] });
      i++;
    } else if (RULE.test(line)) {
      out.push({ type: "rule" });
      i++;
    } else if (QUOTE.test(line) && depth < DEPTH) {
      const body = [];
      for (; i < lines.length && (m = lines[i].match(QUOTE)); i++) body.push(m[1]);
      out.push({ type: "quote", blocks: blocks(body, depth + 1) });
    } else if (ITEM.test(line) && depth < DEPTH) {
      const l = list(lines, i, depth);
      out.push(l.block);
      i = l.next;
    } else if (line.includes("|") && i + 1 < lines.length && TABLE.test(lines[i + 1]) && (m = table(lines, i))) {
      out.push(m.block);
      i = m.next;
    } else {
      const body = [line];
      for (i++; i < lines.length && lines[i].trim() && !starts(lines[i]); i++) body.push(lines[i]);
      out.push({ type: "para", text: body.map((l) => l.trimStart()).join("\n") });
    }
  }
  return out;
}

export function parse(text) {
  return blocks(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);
}

export function safeUrl(url) {
  return /^(https?:\/\/|mailto:)[^\s]+$/i.test(url) ? url : null;
}

const INLINE = [
  ["code", /^(`+)([\s\S]*?[^`])\1(?!`)/],
  ["math", /^(\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\]|\$\$[\s\S]+?\$\$)/],
  ["escape", /^\\([\\`*_{}[\]()#+\-.!|~<>])/],
  ["link", /^!?\[((?:[^[\]]|\[[^[\]]*\])*)\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\s*\)/],
  ["auto", /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i],
  ["bare", /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]*_]/i],
  ["both", /^\*\*\*(?=\S)([\s\S]*?\S)\*\*\*/],
  ["strong", /^\*\*(?=\S)([\s\S]*?\S)\*\*(?!\*)/],
  ["strong", /^__(?=\S)([\s\S]*?\S)__(?!\w)/],
  ["em", /^\*(?=[^\s*])([\s\S]*?[^\s*])\*(?!\*)/],
  ["em", /^_(?=[^\s_])([\s\S]*?[^\s_])_(?!\w)/],
  ["del", /^~~(?=\S)([\s\S]*?\S)~~/],
];
const SPECIAL = /[`\\$[!<*_~h]/;

// Spans of a paragraph: [{type, text | spans, url}…].
export function inline(text, depth = 0) {
  const out = [];
  let plain = "", i = 0;
  const flush = () => plain && (out.push({ type: "text", text: plain }), (plain = ""));
  while (i < text.length) {
    let hit = null;
    const word = i > 0 && /\w/.test(text[i - 1]);
    if (SPECIAL.test(text[i]) && depth < DEPTH && !(word && (text[i] === "_" || text[i] === "h"))) {
      const rest = text.slice(i, i + 4000); // a span is short: what is not closed here is text
      for (const [type, re] of INLINE) {
        const m = rest.match(re);
        if (m) {
          hit = { type, m };
          break;
        }
      }
    }
    if (!hit) {
      plain += text[i++];
      continue;
    }
    const { type, m } = hit;
    i += m[0].length;
    if (type === "escape") plain += m[1];
    else {
      flush();
      if (type === "code") out.push({ type, text: m[2].replaceAll("\n", " ").replace(/^ (.*\S.*) $/, "$1") });
      else if (type === "math") out.push({ type, text: m[0] });
      else if (type === "link") out.push({ type, url: safeUrl(m[2]), spans: inline(m[1] || m[2], depth + 1) });
      else if (type === "auto") out.push({ type: "link", url: safeUrl(m[1]), spans: [{ type: "text", text: m[1] }] });
      else if (type === "bare") out.push({ type: "link", url: safeUrl(m[0]), spans: [{ type: "text", text: m[0] }] });
      else if (type === "both") out.push({ type: "strong", spans: [{ type: "em", spans: inline(m[1], depth + 1) }] });
      else out.push({ type, spans: inline(m[1], depth + 1) });
    }
  }
  flush();
  return out;
}

const WORDS = new Set(("abstract and as assert async await bool break case catch char class const continue def default del do double elif else enum " +
  "except export extends extern false False finally float fn for foreach from func function global if impl import in include int interface is " +
  "lambda let long loop match mod mut namespace new nil None not null of or package pass print private protected pub public raise return self " +
  "short signed sizeof static struct super switch this throw trait true True try type typedef typeof union unsigned use using var virtual void " +
  "volatile where while with yield SELECT FROM WHERE INSERT UPDATE DELETE JOIN ORDER GROUP BY CREATE TABLE").split(" "));
const HASH = /^(py|python|sh|bash|shell|zsh|rb|ruby|yaml|yml|toml|make|makefile|perl|r|console|ini|conf|dockerfile)$/i;
const PLAIN = /^(text|txt|plain|output|log|)$/i;

// Code as [kind, text] pieces: comments, strings, numbers and words.  Joined they are the code.
export function pieces(code, lang) {
  if (PLAIN.test(lang) || code.length > 50000) return [["", code]];
  const comment = HASH.test(lang) ? "#[^\\n]*" : /^sql$|^lua$|^haskell$/i.test(lang) ? "--[^\\n]*" : "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)";
  const re = new RegExp("(" + comment + ")|(\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?|`(?:\\\\.|[^`\\\\])*`?)|(\\b(?:0x[\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\b)|([A-Za-z_]\\w*)", "g");
  const out = [];
  let at = 0, m;
  while ((m = re.exec(code))) {
    const kind = m[1] ? "comment" : m[2] ? "string" : m[3] ? "number" : WORDS.has(m[4]) ? "word" : "";
    if (!kind) continue;
    if (m.index > at) out.push(["", code.slice(at, m.index)]);
    out.push([kind, m[0]]);
    at = re.lastIndex;
  }
  if (at < code.length) out.push(["", code.slice(at)]);
  return out;
}

function make(tag, ...children) {
  const e = document.createElement(tag);
  e.append(...children);
  return e;
}

function spans(list) {
  return list.map((s) => {
    if (s.type === "text") return document.createTextNode(s.text);
    if (s.type === "code" || s.type === "math") {
      const e = make("code", s.text);
      if (s.type === "math") e.className = "math";
      return e;
    }
    if (s.type !== "link") return make(s.type, ...spans(s.spans));
    if (!s.url) return make("span", ...spans(s.spans));
    const a = make("a", ...spans(s.spans));
    a.href = s.url;
    a.target = "_blank";
    a.rel = "noopener noreferrer";
    return a;
  });
}

const text = (t) => spans(inline(t));

// Wide code and tables are scrolled with the keyboard.
function scrolls(e, name) {
  e.tabIndex = 0;
  e.setAttribute("role", "group");
  e.setAttribute("aria-label", name);
}

function codeBlock(b, copy) {
  const code = make("code");
  for (const [kind, t] of pieces(b.text, b.lang)) {
    const s = kind ? make("span", t) : document.createTextNode(t);
    if (kind) s.className = "c-" + kind;
    code.append(s);
  }
  const button = make("button", "Copy");
  button.type = "button";
  button.className = "plain copy";
  button.setAttribute("aria-label", "Copy this " + (b.lang || "code"));
  button.addEventListener("click", () => copy(b.text, button));
  const pre = make("pre", code);
  scrolls(pre, b.lang ? "Code in " + b.lang : "Code");
  const e = make("figure", make("figcaption", make("span", b.lang || "text"), button), pre);
  e.className = "code";
  return e;
}

function tableBlock(b) {
  const row = (tag, list) => make("tr", ...list.map((c, i) => {
    const e = make(tag, ...text(c));
    e.className = "to-" + b.align[i];
    return e;
  }));
  const t = make("table", make("thead", row("th", b.head)), make("tbody", ...b.rows.map((r) => row("td", r))));
  const e = make("div", t);
  e.className = "wide-table";
  scrolls(e, "Table");
  return e;
}

function listBlock(b, copy) {
  const e = make(b.ordered ? "ol" : "ul");
  if (b.ordered && b.start !== 1) e.start = b.start;
  for (const item of b.items) {
    const li = make("li");
    if (item.task !== null) {
      const box = make("input");
      box.type = "checkbox";
      box.checked = item.task;
      box.disabled = true;
      box.setAttribute("aria-label", item.task ? "Done" : "To do");
      li.append(box, " ");
      li.className = "task";
    }
    item.blocks.forEach((k, i) => (i === 0 && k.type === "para" ? li.append(...text(k.text)) : li.append(block(k, copy))));
    e.append(li);
  }
  return e;
}

function block(b, copy) {
  switch (b.type) {
    case "code": return codeBlock(b, copy);
    case "head": return make("h" + Math.min(b.level + 2, 6), ...text(b.text));
    case "rule": return make("hr");
    case "quote": return make("blockquote", ...b.blocks.map((k) => block(k, copy)));
    case "list": return listBlock(b, copy);
    case "table": return tableBlock(b);
    default: return make("p", ...text(b.text));
  }
}

// Brings `into` up to date with the text: blocks that stayed the same keep their elements, so that a growing
// answer neither flickers nor loses what is selected.  copy(text, button) is called by the buttons of code.
export function render(into, source, copy) {
  const list = parse(source), known = into.markdown || [];
  const now = list.map((b) => JSON.stringify(b));
  let same = 0;
  while (same < now.length && same < known.length && now[same] === known[same]) same++;
  while (into.childNodes.length > same) into.lastChild.remove();
  for (let i = same; i < list.length; i++) into.append(block(list[i], copy));
  into.markdown = now;
}
