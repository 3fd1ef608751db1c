// The frame: which page is shown, and its menu on a narrow screen.
import { $ } from "./dom.js";
import * as chat from "./chat.js";
import * as models from "./models.js";
import * as sampler from "./sampler.js";
import * as settings from "./settings.js";
import * as status from "./status.js";

const pages = { chat, status, sampler };
const titles = { chat: "Chat", status: "Status", sampler: "Sampler" };

// While it is open nothing behind it is reached; what had the focus in it leaves it on the button that opens it.
function menu(open) {
  if (open === document.body.classList.contains("menu-open")) return;
  document.body.classList.toggle("menu-open", open);
  $("menu").setAttribute("aria-expanded", String(open));
  $("shade").hidden = !open;
  $("frame").inert = open;
  (open ? document.querySelector("nav a[aria-current]") : $("menu")).focus();
}

function route() {
  const [name, id] = location.hash.replace(/^#\/?/, "").split("/");
  const page = pages[name] ? name : "chat";
  for (const p of Object.keys(pages)) {
    $("page-" + p).hidden = p !== page;
    const link = document.querySelector(`nav a[data-page="${p}"]`);
    if (p === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  menu(false);
  status.show(page === "status");
  if (page === "chat") chat.open(id);
  else pages[page].open();
  const c = page === "chat" && chat.current();
  $("title").textContent = c ? c.title : titles[page];
  document.title = (c ? c.title : titles[page]) + " · cairn";
}

chat.start();
status.start();
sampler.start();
models.start(chat.modelChanged);
settings.start(models.loadModels);
$("menu").addEventListener("click", () => menu(!document.body.classList.contains("menu-open")));
$("shade").addEventListener("click", () => menu(false));
document.addEventListener("keydown", (e) => e.key === "Escape" && menu(false));
addEventListener("hashchange", route);
document.querySelector(".skip").addEventListener("click", (e) => (e.preventDefault(), $("main").focus()));
route();
models.loadModels();
