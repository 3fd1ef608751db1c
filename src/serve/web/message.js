// What a message looks like, and the buttons below it.  They call `can`:
//   {edit(i), cancel(), send(i, text), fork(i), regenerate(i), turn(m, by), result(i, call, text), answerOf(i, call)}
// of which answerOf is what a tool has answered, if it has.
import { el, say } from "./dom.js";
import { render } from "./markdown.js";
import { chosen } from "./store.js";

async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    say("Copied");
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = label), 1500);
}

function pretty(args) {
  try {
    return JSON.stringify(JSON.parse(args), null, 2);
  } catch {
    return args; // still being written
  }
}

// `what`: the name by which refill knows it again.
export function action(what, label, fn, text = label) {
  return el("button", { type: "button", class: "plain", "data-do": what, "aria-label": label === text ? null : label, onclick: fn }, text);
}

// Who spoke: a heading, so that a screen reader goes from message to message.
const speaker = (name) => el("h2", { class: "hidden" }, name);

// The field in which message i is changed.
export function editedMessage(m, i, can) {
  const area = el("textarea", { rows: 3, "aria-label": "Edit the message", "data-do": "edit", value: m.content });
  const send = () => area.value.trim() && can.send(i, area.value.trim());
  area.addEventListener("keydown", (e) => {
    if (e.key === "Escape") e.stopPropagation(), can.cancel();
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) e.preventDefault(), send();
  });
  return el("li", { class: "message user", "data-key": i }, speaker("You"), el("div", { class: "edit" }, area, el("div", { class: "row" },
    el("button", { type: "button", class: "plain", "data-do": "edit", onclick: can.cancel }, "Cancel"),
    el("button", { type: "button", class: "primary", "data-do": "edit", onclick: send }, "Send again"))));
}

export function userMessage(m, i, can) {
  const bubble = el("div", { class: "bubble" });
  for (const url of m.images || []) bubble.append(el("img", { src: url, alt: "An image that you added" }));
  bubble.append(el("div", { class: "text" }, m.content));
  return el("li", { class: "message user", "data-key": i }, speaker("You"), bubble, el("div", { class: "actions" },
    action("copy", "Copy", (e) => copyText(m.content, e.target)),
    action("edit", "Edit", () => can.edit(i)),
    action("fork", "Fork from here", () => can.fork(i), "Fork")));
}

function callCard(call, answered, onResult) {
  const card = el("div", { class: "call" },
    el("div", { class: "call-head" }, el("span", { class: "tag" }, "tool call"), el("code", {}, call.name || "…")),
    el("pre", {}, pretty(call.arguments)));
  if (answered !== undefined) card.append(el("div", { class: "result" }, el("span", { class: "tag" }, "result"), el("pre", {}, answered)));
  else if (onResult) {
    const area = el("textarea", { rows: 2, placeholder: "What did the tool answer?", "data-do": "result", "aria-label": "Result of " + call.name });
    card.append(area, el("div", { class: "row" }, el("button", { type: "button", class: "primary", "data-do": "result", onclick: () => onResult(area.value) }, "Give the result")));
  }
  return card;
}

function note(v) {
  const parts = [];
  if (v.note) {
    const n = v.note;
    if (n.tokens) parts.push(n.tokens + (n.tokens === 1 ? " token" : " tokens"));
    if (n.speed) parts.push(n.speed.toFixed(n.speed < 10 ? 1 : 0) + " tokens a second");
    if (n.first) parts.push((n.first / 1000).toFixed(2) + " s to the first");
    if (n.cached) parts.push(n.cached + " of " + n.prompt + " prompt tokens from the cache");
    if (n.why === "length") parts.push("cut: no more tokens were allowed");
    if (n.why === "stopped") parts.push("stopped");
  }
  return parts.join(" · ");
}

// Brings an answer's element up to date; `live`: more of it is to come.
export function fillAnswer(li, m, i, live, can) {
  const v = chosen(m), p = li.parts;
  li.setAttribute("aria-busy", String(live));
  if (v.thought) {
    p.thoughts.hidden = false;
    p.thoughts.firstChild.textContent = live && !v.content ? "Thinking …" : "Thoughts";
    render(p.thought, v.thought, copyText);
  }
  render(p.text, v.content, copyText);
  p.wait.hidden = !(live && !v.content && !v.thought && !v.calls.length);
  p.progress.textContent = "Reading the prompt" + (v.read ? ": " + Math.round(v.read * 100) + " %" : " …");
  p.calls.replaceChildren(...v.calls.map((c) => callCard(c, can.answerOf(i, c), live || v.error ? null : (text) => can.result(i, c, text))));
  p.error.hidden = !v.error;
  p.error.textContent = v.error || "";
  p.note.textContent = live ? "" : note(v);
  p.actions.hidden = live;
}

// `last`: nothing comes after it.
export function assistantMessage(m, i, last, live, can) {
  const p = {
    thought: el("div", { class: "markdown" }), text: el("div", { class: "markdown" }), calls: el("div", { class: "calls" }),
    wait: el("div", { class: "wait", hidden: true }), progress: el("span", { class: "faint small" }),
    error: el("div", { class: "error", hidden: true }), note: el("div", { class: "faint small note" }),
    actions: el("div", { class: "actions" }),
  };
  const failed = Boolean(chosen(m).error);
  p.wait.append(el("i"), el("i"), el("i"), p.progress);
  p.thoughts = el("details", { class: "thoughts", hidden: true }, el("summary", {}, "Thoughts"), p.thought);
  if (m.variants.length > 1)
    p.actions.append(el("span", { class: "pager" },
      action("before", "The answer before", () => can.turn(m, -1), "‹"), el("span", { class: "small" }, m.at + 1 + " / " + m.variants.length),
      action("next", "The next answer", () => can.turn(m, 1), "›")));
  p.actions.append(
    action("copy", "Copy", (e) => copyText(chosen(m).content, e.target)),
    action("regenerate", (failed ? "Try again" : "Regenerate") + (last ? "" : " from here"), () => can.regenerate(i)),
    action("fork", "Fork from here", () => can.fork(i), "Fork"));
  const li = el("li", { class: "message assistant", "data-key": i }, speaker("The model"),
    p.thoughts, p.wait, p.text, p.calls, p.error, el("div", { class: "foot" }, p.note, p.actions));
  li.parts = p;
  li.message = m;
  fillAnswer(li, m, i, live, can);
  return li;
}
