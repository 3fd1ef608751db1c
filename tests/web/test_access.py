"""The page for who sees little or uses no mouse: axe-core over every state of it, the keyboard's way through it, where the
focus goes, and what Chromium's tree of accessibility has for a screen reader."""
import json

import pytest
import util

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
from user import MARKDOWN, TOOLS, User, says

CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>'
RICH = MARKDOWN + "\n> quoted\n\n1. first\n   - inner\n\n- [x] done\n- [ ] open\n\n[a link](https://example.org/) and \\(a^2\\)\n"
WINDOW, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 640}


@pytest.fixture(scope="module")
def thinks():
    """A server whose model thinks and calls."""
    with util.serving("--template", "<tool_call>{{enable_thinking}}{{reasoning_effort}}") as s:
        yield s
        s.wait_rows()


class Audit:
    """What axe-core has against the states that it was shown."""

    def __init__(self, u, name):
        self.axe, self.u, self.name, self.found = axe.Axe(), u, name, []

    def look(self, state):
        self.u.page.evaluate("Promise.all(document.getAnimations().filter((a) => a.effect.getTiming().iterations < 9).map((a) => a.finished.catch(() => 0)))")
        for v in self.axe.run(self.u.page).response["violations"]:
            self.found += [(state, v["id"], n["target"], n["failureSummary"]) for n in v["nodes"]]
        self.u.shot(self.name + "-" + state)


@pytest.mark.parametrize("size", [WINDOW, NARROW], ids=["window", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_audit(chromium, thinks, size, scheme):
    touch = size is NARROW
    u = User(chromium, thinks.url, size, color_scheme=scheme, has_touch=touch, is_mobile=touch)
    a = Audit(u, ("narrow-" if touch else "window-") + scheme)
    u.page.evaluate("t => localStorage.setItem('cairn.settings', t)", json.dumps({"tools": json.dumps(TOOLS)}))
    u.page.reload()
    u.go("")
    a.look("empty")
    u.page.fill("#ask", "@n=4000 @pace=20")
    u.page.click("#send")
    u.until("document.querySelectorAll('.assistant .markdown')[1]?.innerText.length > 5")
    a.look("streaming")
    u.page.click("#stop")
    u.done()
    a.look("stopped")
    u.go("#/chat")
    u.page.fill("#ask", "Much of it.\n" + says("<think>hm, *so*</think>" + RICH + CALL))
    u.page.click("#send")
    u.done()
    u.page.click(".thoughts summary")
    a.look("answered")
    u.page.fill(".call textarea", "4 degrees")
    u.page.get_by_role("button", name="Give the result").click()
    u.done()
    u.page.locator(".user").nth(0).get_by_role("button", name="Edit").click()
    a.look("edit")
    u.go("#/chat")
    u.page.fill("#ask", "@fail=3 @reply=abcdef")
    u.page.click("#send")
    u.done()
    a.look("failed")
    u.go("#/status")
    u.page.wait_for_selector(".plot .line", state="attached")
    a.look("status")
    u.go("#/sampler")
    u.page.wait_for_selector(".next tbody tr")
    a.look("sampler")
    u.page.check("#curve-on")
    u.page.click("#draw")
    u.page.wait_for_selector("#samples blockquote")
    a.look("curve")
    if touch:
        u.page.click("#menu")
        a.look("menu")
        u.page.keyboard.press("Escape")
    u.page.click("#open-settings")
    a.look("settings")
    u.context.close()
    assert not a.found


class Tree:
    """Chromium's tree of accessibility, in no order."""

    def __init__(self, u):
        self.cdp = u.context.new_cdp_session(u.page)
        self.cdp.send("Accessibility.enable")

    def nodes(self):
        """(role, name, properties) of what a screen reader has."""
        out = []
        for n in self.cdp.send("Accessibility.getFullAXTree")["nodes"]:
            if not n["ignored"]:
                out.append((n["role"]["value"], n.get("name", {}).get("value", ""), {p["name"]: p["value"].get("value") for p in n.get("properties", [])}))
        return out

    def of(self, role):
        return [(name, props) for r, name, props in self.nodes() if r == role]

    def focused(self):
        return next((r + ": " + name.strip() for r, name, p in reversed(self.nodes()) if p.get("focused")), None)


# Something of the focused element, or of the box that it is in, is drawn as no other is; and it is in the window.
SEEN = """() => { const e = document.activeElement, s = getComputedStyle(e), b = e.getBoundingClientRect(), f = e.closest("form");
  const ring = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
  const edge = f && getComputedStyle(f).borderTopColor === getComputedStyle(document.querySelector(".primary")).backgroundColor;
  return (ring || e.id === "ask" && edge) && b.width > 0 && b.bottom > 0 && b.top < innerHeight && b.right > 0 && b.left < innerWidth; }"""


def test_tab_order(user):
    """Every control is reached in the order in which it is read, has a name, and is seen to be reached."""
    user.send(says(MARKDOWN))
    title = user.page.inner_text("#title")
    user.page.focus(".skip")
    tree, got = Tree(user), []
    while len(got) < 40 and "button: Send" not in got:
        got.append(tree.focused())
        assert user.page.evaluate(SEEN), got[-1]
        user.page.keyboard.press("Tab")
    assert got == [
        "link: Skip to the content", "link: Chat", "link: Status", "link: Sampler", "button: New conversation", "link: " + title,
        "button: Rename " + title, "button: Export " + title, "button: Delete " + title, "button: Export all", "button: Import", "button: Delete all",
        "combobox: Model", "button: Settings", "region: Conversation", "button: Copy", "button: Edit", "button: Fork from here",
        "group: Table", "button: Copy this python", "group: Code in python", "button: Copy", "button: Regenerate", "button: Fork from here",
        "textbox: Message", "button: Send"]


def test_tree(chromium, thinks):
    """Names, roles and states."""
    u = User(chromium, thinks.url)
    u.page.evaluate("t => localStorage.setItem('cairn.settings', t)", json.dumps({"tools": json.dumps(TOOLS)}))
    u.page.reload()
    u.go("")
    u.send(says("<think>hm</think>" + RICH + CALL))
    tree = Tree(u)
    nodes = tree.nodes()
    assert [r for r, n, p in nodes if p.get("focusable") and r != "RootWebArea" and not n] == []
    assert {("You", 2), ("The model", 2), ("Title", 3)} <= {(n, p["level"]) for n, p in tree.of("heading")}
    assert {(n, p["checked"]) for n, p in tree.of("checkbox")} == {("Done", "true"), ("To do", "false")}
    assert tree.of("DisclosureTriangle")[0][1]["expanded"] is False
    assert {n for n, _ in tree.of("textbox")} == {"Result of weather", "Message"}
    assert {n for n, _ in tree.of("columnheader")} == {"a", "b"}
    assert {"Conversation", "Chat"} <= {n for n, _ in tree.of("region")}
    assert ("The answer as it is written", "polite") in [(n, p.get("live")) for n, p in tree.of("log")]
    assert tree.of("status")[0][1]["live"] == "polite"
    u.page.click("#open-settings")
    name, props = tree.of("dialog")[0]
    assert name == "Settings" and props["modal"] is True
    assert {n for n, _ in tree.of("textbox")} == {"System prompt", "Tools", "API key"}
    u.page.keyboard.press("Escape")
    assert tree.focused() == "button: Settings"
    u.context.close()


TOLD = """() => { window.told = []; const o = new MutationObserver((l) => l.forEach((m) => m.addedNodes.forEach((n) => told.push([m.target.id, n.textContent]))));
  for (const id of ["say", "spoken"]) o.observe(document.getElementById(id), { childList: true }); }"""


def test_answer_is_told(user):
    """A growing answer is told block by block, each once and whole; what follows code is not code."""
    user.page.evaluate(TOLD)
    user.send("@pace=1 @step=3 " + says("One two three, four.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```c\nx;\ny;\n```\n\nAt last."))
    assert user.page.evaluate("window.told") == [
        ["say", "The model is answering"], ["spoken", "One two three, four."], ["spoken", "one\ntwo"], ["spoken", "a, b\n1, 2"],
        ["spoken", "Code in c, 2 lines"], ["spoken", "At last."], ["say", "The answer is complete"]]
    assert user.page.get_attribute(".assistant", "aria-busy") == "false"


def test_busy_while_written(user, server):
    user.page.fill("#ask", "@n=4000 @pace=20")
    user.page.focus("#send")
    user.page.keyboard.press("Enter")
    user.until("document.querySelectorAll('.assistant .markdown')[1]?.innerText.length > 5")
    assert user.page.get_attribute(".assistant", "aria-busy") == "true"
    assert user.page.evaluate("document.activeElement.id") == "stop"
    user.page.keyboard.press("Enter")
    user.done()
    assert user.page.evaluate("document.activeElement.id") == "ask" and user.page.inner_text("#say") == "Stopped"
    server.wait_rows()


def test_focus_stays(user):
    """With the keyboard alone: what was pressed has the focus afterwards, or what came in its place."""
    tree = Tree(user)

    def press(selector, key="Enter"):
        user.page.focus(selector)
        user.page.keyboard.press(key)

    user.send("@reply=one")
    assert user.page.evaluate("document.activeElement.id") == "ask"
    press(".assistant [data-do=regenerate]")
    user.until("document.querySelector('#say').textContent === 'The answer is complete' && document.querySelectorAll('.pager').length === 1")
    assert tree.focused() == "button: Regenerate"
    press(".assistant [data-do=before]")
    assert tree.focused() == "button: The answer before" and user.page.inner_text("#say") == "Answer 1 of 2"
    press(".user [data-do=edit]")
    assert tree.focused() == "textbox: Edit the message"
    user.page.keyboard.press("Escape")
    assert tree.focused() == "button: Edit"
    user.page.keyboard.press("Enter")
    user.page.keyboard.press("End")
    user.page.keyboard.type(" two")
    user.page.keyboard.press("Enter")
    user.done()
    assert tree.focused() == "button: Edit" and "one two" in user.texts(".assistant")[0]
    press(".user [data-do=fork]")
    user.until("document.querySelectorAll('#chats li').length === 2")
    assert user.page.evaluate("document.activeElement.id") == "ask"
    press("#chats li:first-child [data-do=rename]")
    user.page.keyboard.type("another name")
    user.page.keyboard.press("Enter")
    assert tree.focused() == "button: Rename another name"


def test_menu(chromium, server):
    """On a narrow screen: nothing behind the open menu is reached, and Escape leads back."""
    u = User(chromium, server.url, NARROW)
    tree = Tree(u)
    u.page.focus("#menu")
    u.page.keyboard.press("Enter")
    u.until("getComputedStyle(document.querySelector('#side')).visibility === 'visible'")
    assert tree.focused() == "link: Chat" and not tree.of("combobox")
    assert u.page.get_attribute("#menu", "aria-expanded") == "true"
    u.page.keyboard.press("Escape")
    assert tree.focused() == "button: Conversations and pages" and tree.of("combobox")
    u.context.close()
    assert not u.wrong
