"""The page in a headless Chromium, over the server with the double of the engine: what a user does, by mouse, by keyboard and
on a phone.  Nothing is timed; every wait has an end."""
import json

import pytest
import util
from user import DESKTOP, MARKDOWN, PHONE, TOOLS, User, says


def test_answer(user):
    user.send(says(MARKDOWN))
    md = user.page.locator(".assistant .markdown").nth(1)
    assert md.locator("h3").inner_text() == "Title" and md.locator("strong").inner_text() == "bold"
    assert md.locator("li").all_inner_texts() == ["one", "two"] and md.locator("td").all_inner_texts() == ["1", "2"]
    assert "def f(x):\n    return x  # twice" in md.locator("pre").inner_text()
    assert md.locator(".c-word").all_inner_texts() == ["def", "return"]
    assert user.page.locator("#say").inner_text() == "The answer is complete"
    md.locator(".copy").click()
    user.until("document.querySelector('.copy').textContent === 'Copied'")
    assert user.page.evaluate("navigator.clipboard.readText()") == "def f(x):\n    return x  # twice"
    assert "tokens" in user.texts(".note")[0]
    user.shot("chat")


def test_text_is_never_markup(user):
    user.send(says("<img src=x onerror=alert(1)> <script>alert(2)</script> [a](javascript:alert(3)) ![p](https://example.org/p.png)\n\n<b>b</b>"))
    md = user.page.locator(".assistant .markdown").nth(1)
    assert md.locator("img, script, b, iframe").count() == 0 and "<img src=x onerror=alert(1)>" in md.inner_text()
    assert [a.get_attribute("href") for a in md.locator("a").all()] == ["https://example.org/p.png"]
    assert md.locator("a").get_attribute("rel") == "noopener noreferrer"


def test_stop(user, server):
    user.page.fill("#ask", "@n=4000 @pace=20")
    user.page.keyboard.press("Enter")
    user.until("document.querySelectorAll('.assistant .markdown')[1]?.innerText.length > 5")
    user.page.keyboard.press("Escape")
    user.done()
    server.wait_rows()
    assert "stopped" in user.texts(".note")[0]


def test_edit_regenerate_fork(user):
    user.send("@reply=one")
    user.send("@reply=two")
    assert user.page.locator(".message").count() == 4
    user.page.locator(".assistant").nth(1).get_by_role("button", name="Regenerate").click()
    user.done()
    assert user.texts(".pager")[0].split() == ["‹", "2", "/", "2", "›"]
    user.page.get_by_role("button", name="The answer before").click()
    assert "1 / 2" in user.texts(".pager")[0]
    user.page.locator(".user").nth(0).get_by_role("button", name="Fork from here").click()
    user.until("document.querySelectorAll('#messages .message').length === 1")
    assert user.page.locator("#chats li").count() == 2
    user.page.locator(".user").nth(0).get_by_role("button", name="Edit").click()
    user.page.locator(".edit textarea").fill("@reply=three")
    user.page.keyboard.press("Enter")
    user.done()
    assert "three" in user.texts(".assistant")[0]
    user.page.reload()
    user.page.wait_for_selector(".assistant")
    assert "three" in user.texts(".assistant")[0] and user.page.locator("#chats li").count() == 2


def test_kept_exported_imported(user, tmp_path):
    user.send("@reply=kept")
    with user.page.expect_download() as d:
        user.page.click("#export-all")
    file = tmp_path / "chats.json"
    d.value.save_as(file)
    saved = json.loads(file.read_text())
    assert saved["format"] == "cairn-conversations" and saved["conversations"][0]["messages"][1]["variants"][0]["content"] == "kept"
    user.page.locator("#chats li").hover()
    user.page.get_by_role("button", name="Delete @reply=kept").click()
    user.page.get_by_role("button", name="Keep").click()
    assert user.page.locator("#chats li").count() == 1
    user.page.get_by_role("button", name="Delete @reply=kept").click()
    user.page.get_by_role("button", name="Delete", exact=True).click()
    user.until("document.querySelectorAll('#chats li').length === 0")
    user.page.set_input_files("#import-file", file)
    user.page.wait_for_selector("#chats li")
    user.page.click("#chats .open")
    assert "kept" in user.texts(".assistant")[0]
    (tmp_path / "bad.json").write_text('{"format": 1}')
    user.page.set_input_files("#import-file", tmp_path / "bad.json")
    user.until("document.querySelector('#toast').textContent.includes('not a file of conversations')")


def test_thoughts_and_calls(chromium):
    with util.serving("--template", "<tool_call>{{enable_thinking}}{{reasoning_effort}}") as s:
        u = User(chromium, s.url)
        u.page.evaluate("t => localStorage.setItem('cairn.settings', t)", json.dumps({"tools": json.dumps(TOOLS)}))
        u.go("")
        u.page.reload()
        call = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>'
        u.send(says("<think>hm, *so*</think>Let me look." + call))
        assert u.page.locator(".thoughts").get_attribute("open") is None
        u.page.click(".thoughts summary")
        assert "hm, so" in u.texts(".thoughts")[0]
        assert u.texts(".call code") == ["weather"] and '"city": "Oslo"' in u.texts(".call pre")[0]
        u.shot("call")
        u.page.fill(".call textarea", "4 degrees")
        u.page.get_by_role("button", name="Give the result").click()
        u.done()
        assert u.texts(".result pre") == ["4 degrees"] and u.page.locator(".assistant").count() == 2
        u.context.close()
        assert not u.wrong


def test_fails(user, server):
    user.send("@fail=3 @reply=abcdef")
    assert user.page.locator(".assistant .error").is_visible()
    user.page.get_by_role("button", name="Try again").click()
    user.done()
    assert user.page.locator(".pager").count() == 0  # what failed is no variant
    user.wrong.clear()


def test_delete_all(user):
    user.send("@reply=one")
    user.page.click("#new-chat")
    user.send("@reply=two")
    assert user.page.locator("#chats li").count() == 2
    user.page.click("#delete-all")
    user.page.get_by_role("button", name="Delete", exact=True).click()
    user.until("document.querySelectorAll('#chats li').length === 0 && document.querySelectorAll('.message').length === 0")
    assert user.page.evaluate("localStorage.getItem('cairn.chats')") == "[]"


def test_prompt_progress(user, server, tmp_path):
    """A long prompt says how far it is; this one never ends."""
    user.page.fill("#ask", "@progress=50 @until=%s @reply=read" % util.Gate(tmp_path))
    user.page.keyboard.press("Enter")
    user.until("/Reading the prompt: \\d+ %/.test(document.querySelector('.wait')?.innerText)")
    user.page.keyboard.press("Escape")
    user.done()
    server.wait_rows()


def test_wrong_tools(user):
    user.page.click("#open-settings")
    user.page.fill("#set-tools", "{")
    user.page.keyboard.press("Tab")
    assert "not JSON" in user.page.evaluate("document.querySelector('#set-tools').validationMessage")
    user.page.fill("#set-tools", "[]")
    user.page.keyboard.press("Tab")
    assert user.page.evaluate("document.querySelector('#set-tools').validationMessage") == ""
    assert user.page.evaluate("JSON.parse(localStorage.getItem('cairn.settings')).tools") == "[]"


def test_key(chromium):
    with util.serving("--key", "secret") as s:
        u = User.__new__(User)
        u.context = chromium.new_context(viewport=DESKTOP)
        u.page = u.context.new_page()
        u.page.goto(s.url)
        u.page.wait_for_selector("#settings[open]")
        u.page.fill("#set-key", "secret")
        u.page.keyboard.press("Enter")
        u.page.wait_for_selector("#model option[value='fake-model']", state="attached")
        assert u.page.evaluate("localStorage.getItem('cairn.key')") is None
        u.context.close()


def test_keyboard(user):
    assert user.page.evaluate("document.querySelectorAll('a, button')[0].className") == "skip"
    user.page.focus(".skip")
    assert user.page.evaluate("document.querySelector('.skip').getBoundingClientRect().top") > 0
    user.page.keyboard.press("Enter")
    assert user.page.evaluate("document.activeElement.id") == "main"
    user.page.focus("#ask")
    user.page.keyboard.type("a")
    user.page.keyboard.press("Shift+Enter")
    user.page.keyboard.type("b")
    assert user.page.input_value("#ask") == "a\nb"
    user.page.click("#open-settings")
    user.page.fill("#set-temperature", "0.3")
    user.page.keyboard.press("Escape")
    user.page.fill("#ask", "@echo")
    user.page.keyboard.press("Enter")
    user.done()
    assert "temperature=0.3" in user.texts(".assistant")[0]


NAMES = """() => [...document.querySelectorAll("button, a, input, select, textarea, [role=slider], [role=img]")].filter((e) => e.checkVisibility()).filter((e) =>
  !(e.getAttribute("aria-label") || e.textContent.trim() || e.title || (e.labels && e.labels.length) || e.getAttribute("aria-labelledby"))).map((e) => e.outerHTML)"""


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page(chromium, server, size, scheme):
    """All controls have names, nothing is wider than the window, no request left this machine."""
    touch = size is PHONE
    u = User(chromium, server.url, size, color_scheme=scheme, has_touch=touch, is_mobile=touch)
    name = ("phone" if touch else "desktop") + "-" + scheme
    u.page.fill("#ask", says(MARKDOWN + "\n" + "wide " * 200 + "x" * 300))
    u.page.click("#send")
    u.done()
    for page, ready in (("#/status", ".card"), ("#/sampler", ".next tbody tr"), ("#/chat", "#empty"), (u.page.get_attribute("#chats .open", "href"), ".assistant")):
        u.go(page)
        u.page.wait_for_selector(ready)
        assert u.page.evaluate(NAMES) == []
        assert u.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        u.shot(name + page.replace("#/", "-").split("/")[0] + ("-talk" if "/chat/" in page else ""))
    if touch:
        assert not u.page.locator("#side").is_visible()
        u.page.click("#menu")
        u.until("getComputedStyle(document.querySelector('#side')).visibility === 'visible'")
        u.page.wait_for_timeout(250)
        u.shot(name + "-menu")
    u.page.evaluate("document.querySelector('#open-settings').click()")
    assert u.page.evaluate(NAMES) == []
    u.shot(name + "-settings")
    u.context.close()
    assert not u.wrong


def test_images_have_a_reason(user):
    assert user.page.locator("#attach").is_disabled() and user.texts("#attach-why") == ["This model takes no images"]
    assert user.page.get_attribute("#attach", "aria-describedby") == "attach-why"


def test_status(user, server):
    server.chat("hi")
    user.go("#/status")
    user.page.wait_for_selector(".plot .line", state="attached")
    assert user.page.locator("#page-status .card").count() == 8 and "Memory budget" in user.texts(".card h3")
    user.page.click("nav a[data-page=chat]")
    assert user.page.locator("#page-status").is_hidden()


def test_sampler(user):
    user.go("#/sampler")
    user.page.wait_for_selector(".next tbody tr")
    user.page.wait_for_selector(".histogram .bin")
    rows = user.page.locator(".next tbody tr").count()
    user.page.fill("#s-top_k", "1")
    assert user.page.locator(".next .cut").count() == rows - 1 and "1 token of 256 can be drawn" in user.texts("#kept")[0]
    user.page.check("#curve-on")
    assert user.page.evaluate("document.querySelector('#sliders').disabled") and user.page.locator(".knot").count() == 4
    before = user.page.get_attribute(".knot >> nth=1", "aria-valuetext")
    user.page.focus(".knot >> nth=1")
    user.page.keyboard.press("ArrowUp")
    assert user.page.get_attribute(".knot >> nth=1", "aria-valuetext") != before
    user.page.click("#draw")
    user.page.wait_for_selector("#samples blockquote")
    assert user.page.locator("#samples blockquote").count() == 6
    user.shot("curve")
