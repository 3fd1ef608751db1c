"""A user of the page: a tab of the browser, and what went wrong in it.  CAIRN_SHOTS: a folder for screenshots, to be
looked at."""
import json
import os
import time

import util

SHOTS = os.environ.get("CAIRN_SHOTS")
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
MARKDOWN = "# Title\n\nSome **bold** and `code`.\n\n- one\n- two\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\ndef f(x):\n    return x  # twice\n```\n"
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


def says(text):
    return "@says=" + json.dumps(text)


class User:
    """A tab, and all that went wrong in it."""

    def __init__(self, browser, url, size=None, **more):
        self.context = browser.new_context(viewport=size or DESKTOP, permissions=["clipboard-read", "clipboard-write"], **more)
        self.context.set_default_timeout(1000 * util.PATIENCE)
        self.page = self.context.new_page()
        self.wrong, self.asked = [], []
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.wrong.append(str(e)))
        self.page.on("dialog", lambda d: (self.wrong.append("dialog"), d.dismiss()))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.url = url
        self.go("")

    def go(self, where):
        self.page.goto(self.url + "/" + where)
        self.page.wait_for_selector("#model option:not([value=''])", state="attached")

    def send(self, text):
        self.page.fill("#ask", text)
        self.page.keyboard.press("Enter")
        self.done()

    def done(self):
        self.page.wait_for_selector("#send:not([hidden])")

    def until(self, js):
        """Playwright's own waiting evaluates in the page, which the policy forbids."""
        end = time.monotonic() + util.PATIENCE
        while not self.page.evaluate(js):
            assert time.monotonic() < end, js
            self.page.wait_for_timeout(20)

    def texts(self, selector):
        return [t.strip() for t in self.page.locator(selector).all_inner_texts()]

    def shot(self, name):
        if SHOTS:
            os.makedirs(SHOTS, exist_ok=True)
            self.page.screenshot(path=os.path.join(SHOTS, name + ".png"))
