"""A browser, by the WebDriver protocol: as much of it as the tests need."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any, Callable, Optional

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
DEADLINE = 20.0
"""How long to wait for what should come, on a machine that has other things to do as well."""

KEYS = {
    "Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Home": "\ue011", "End": "\ue010",
    "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015", "PageUp": "\ue00e",
    "PageDown": "\ue00f", "Shift": "\ue008", "Space": " ",
}  # fmt: skip


class WebDriverError(Exception):
    pass


class Driver:
    """A chromedriver; each window is a session of its own, with a fresh profile."""

    def __init__(self, program: str = "chromedriver") -> None:
        self.process = subprocess.Popen(
            [program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout
        for line in self.process.stdout:
            if "started successfully on port" in line:
                self.address = "http://127.0.0.1:" + line.strip().rstrip(".").split()[-1]
                break
        else:
            raise WebDriverError("chromedriver does not start")

    def window(
        self, width: int = 1280, height: int = 800, dark: bool = False, calm: bool = False
    ) -> Window:
        return Window(self, width, height, dark, calm)

    def call(self, method: str, path: str, body: Optional[dict[str, Any]] = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise WebDriverError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


class Window:
    def __init__(self, driver: Driver, width: int, height: int, dark: bool, calm: bool) -> None:
        self.driver = driver
        options = [
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", f"--window-size={width},{height}",
        ]  # fmt: skip
        capabilities = {
            "alwaysMatch": {
                "goog:chromeOptions": {"args": options},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
        }
        session = driver.call("POST", "/session", {"capabilities": capabilities})
        self.path = f"/session/{session['sessionId']}"
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"},
        ]
        self.devtools("Emulation.setEmulatedMedia", {"features": features})
        self.resize(width, height)

    def call(self, method: str, path: str, body: Optional[dict[str, Any]] = None) -> Any:
        return self.driver.call(method, self.path + path, body)

    def devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, address: str) -> None:
        self.call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns; its arguments are `arguments`."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector: str) -> Optional[str]:
        found = self.call("POST", "/elements", {"using": "css selector", "value": selector})
        return found[0][ELEMENT] if found else None

    def element(self, selector: str) -> str:
        """The first element of a selector, for which it waits."""
        found: str = wait(f"an element {selector}", lambda: self.find(selector))
        return found

    def click(self, selector: str) -> None:
        """Click as a person does: where it is, on what is there."""

        def clicked() -> bool:
            try:
                element = self.find(selector)
                if element is None:
                    return False
                self.call("POST", f"/element/{element}/click", {})
                return True
            except WebDriverError as error:
                if str(error).startswith(
                    (
                        "stale element",
                        "element not interactable",
                        "element click intercepted",
                        "no such element",
                    )
                ):
                    return False
                raise

        wait(f"a click on {selector}", clicked)
        self.drawn()

    def fill(self, selector: str, text: str) -> None:
        element = self.element(selector)
        self.call("POST", f"/element/{element}/clear", {})
        self.run(
            "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", {ELEMENT: element}
        )
        if text:
            self.call("POST", f"/element/{element}/value", {"text": text})
        self.drawn()

    def choose(self, selector: str, value: str) -> None:
        self.element(selector)
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}))",
            selector, value,
        )  # fmt: skip
        self.drawn()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other: names of KEYS, or characters."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.call(
            "POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        )
        self.drawn()

    def drawn(self) -> None:
        """Wait until what has just been done is drawn: the page does that in the next frame."""
        self.run(
            "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def text(self, selector: str) -> str:
        """The text of the first element of a selector; '' if there is none, or it is hidden."""
        found: str = self.run(
            "return document.querySelector(arguments[0])?.innerText ?? ''", selector
        )
        return found

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector
        )
        return found

    def attribute(self, selector: str, name: str) -> Optional[str]:
        found: Optional[str] = self.run(
            "return document.querySelector(arguments[0])?.getAttribute(arguments[1])",
            selector,
            name,
        )
        return found

    def attributes(self, selector: str, name: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.getAttribute(arguments[1]))"
        found: list[str] = self.run(script, selector, name)
        return found

    def is_shown(self, selector: str) -> bool:
        found: bool = self.run(
            "return !!document.querySelector(arguments[0])?.checkVisibility()", selector
        )
        return found

    def focused(self) -> str:
        """What has the focus: its id, or its path in the tree."""
        found: str = self.run(
            "const e = document.activeElement; return e.id || (e.dataset.path === undefined ? e.tagName : 'path ' + e.dataset.path)"
        )
        return found

    def screenshot(self, path: str) -> None:
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """What the browser complained of: exceptions, and what the content security policy stopped."""
        return [
            entry["message"]
            for entry in self.call("POST", "/se/log", {"type": "browser"})
            if entry["level"] == "SEVERE"
        ]

    def until(self, what: str, holds: Callable[[], Any], seconds: float = DEADLINE) -> Any:
        try:
            return wait(what, holds, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; the browser said {self.complaints()}") from None

    def close(self) -> None:
        self.call("DELETE", "")


def wait(what: str, holds: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    """Wait until something holds that nothing tells us of, and return it."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.03)
