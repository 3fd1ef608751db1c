// The field in which a message is written, its images, and the buttons that send and stop.
import { $, el, toast } from "./dom.js";
import { answering, stop } from "./answer.js";
import { model } from "./models.js";

const MAX_IMAGE = 4 << 20; // bytes of a file: the server takes bodies of 32 MiB, the browser keeps five

let images = []; // data: addresses that the next message has

function grow() {
  const a = $("ask");
  a.rows = 1;
  const line = parseFloat(getComputedStyle(a).lineHeight);
  a.rows = Math.min(10, Math.max(1, Math.round((a.scrollHeight - 16) / line)));
}

function drawImages() {
  $("images").hidden = images.length === 0;
  $("images").replaceChildren(...images.map((url, i) => el("span", { class: "thumb" }, el("img", { src: url, alt: "Image " + (i + 1) }),
    el("button", { type: "button", "aria-label": "Take image " + (i + 1) + " away", onclick: () => (images.splice(i, 1), drawImages()) }, "×"))));
}

function addFiles(files) {
  for (const f of files) {
    if (!f.type.startsWith("image/")) continue;
    if (f.size > MAX_IMAGE) {
      toast(f.name + " has more than 4 MB.");
      continue;
    }
    const reader = new FileReader();
    reader.onload = () => (images.push(reader.result), drawImages());
    reader.readAsDataURL(f);
  }
}

// Where who has nothing else in hand goes on; on a phone the field would bring up the keyboard.
export function focusField() {
  $(matchMedia("(pointer: fine)").matches ? "ask" : "send").focus({ preventScroll: true });
}

export function showButtons() {
  const sends = document.activeElement === $("send");
  $("send").hidden = Boolean(answering());
  $("stop").hidden = !answering();
  $("send").disabled = !model();
  if (sends && answering()) $("stop").focus();
}

// Called when the model changes.
export function modelChanged() {
  const m = model(), sees = Boolean(m && m.vision);
  $("attach").disabled = !sees;
  $("attach").title = sees ? "Add an image" : "";
  $("attach-why").textContent = !m ? "No model answers yet" : sees ? "" : "This model takes no images";
  if (!sees) (images = []), drawImages();
  showButtons();
}

// `send` is called with what was written: {role, content, images}.
export function start(send) {
  const submit = (e) => {
    e.preventDefault();
    const text = $("ask").value.trim();
    if (answering() || (!text && !images.length) || !model()) return;
    const m = { role: "user", content: text, images };
    images = [];
    drawImages();
    $("ask").value = "";
    grow();
    send(m);
  };
  if (!matchMedia("(pointer: fine)").matches) $("ask").removeAttribute("aria-describedby"); // there Enter makes a line
  $("page-chat").addEventListener("keydown", (e) => e.key === "Escape" && stop());
  $("composer").addEventListener("submit", submit);
  $("stop").addEventListener("click", stop);
  $("ask").addEventListener("input", grow);
  $("ask").addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing && matchMedia("(pointer: fine)").matches) submit(e);
  });
  $("ask").addEventListener("paste", (e) => $("attach").disabled || addFiles(e.clipboardData.files));
  $("attach").addEventListener("click", () => $("attach-file").click());
  $("attach-file").addEventListener("change", () => (addFiles($("attach-file").files), ($("attach-file").value = "")));
}
