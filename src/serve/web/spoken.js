// What a screen reader is told of an answer while it grows: each paragraph, list, table or piece of code once it is
// whole, never tokens.  The log empties itself, so that nobody finds the answer twice.
import { $, el } from "./dom.js";

const KEPT_MS = 10000; // long after a screen reader has taken up what was added

let told = 0; // blocks of the answer

function words(block) {
  const pre = block.querySelector(":scope > pre");
  if (!pre) return block.innerText.replaceAll("\t", ", ").trim();
  const lines = pre.textContent.split("\n").length;
  return pre.getAttribute("aria-label") + ", " + lines + (lines === 1 ? " line" : " lines");
}

export function begin() {
  told = 0;
}

// `text`: the element of the answer's text; `whole`: nothing is added to its last block any more.
export function tell(text, whole) {
  const blocks = [...text.children], end = blocks.length - (whole ? 0 : 1);
  for (; told < end; told++) {
    const p = el("p", {}, words(blocks[told]));
    $("spoken").append(p);
    setTimeout(() => p.remove(), KEPT_MS);
  }
}
