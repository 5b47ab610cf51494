"""Everything by the keyboard, and what a screen reader hears."""

from __future__ import annotations

from conftest import Page, row_of


def focused(page: Page, what: str) -> None:
    page.until(
        f"the focus is at {what}, not at {page.window.focused()}",
        lambda: page.window.focused() == what,
    )


def test_the_tree(page: Page) -> None:
    page.window.element(row_of("/visits"))
    page.window.press("t")
    focused(page, "path ")
    page.window.press("Down")
    focused(page, "path /lamps")
    page.window.press("Right")
    page.window.element(row_of("/lamps/hall"))
    page.window.press("Right")
    focused(page, "path /lamps/hall")
    page.window.press("Enter")
    page.until_value("/lamps/hall/level", "40")
    page.window.press("Down", "Left")
    focused(page, "path /lamps/hall")
    page.window.press("Left")
    page.until(
        "it is folded",
        lambda: page.window.attribute(row_of("/lamps/hall"), "aria-expanded") == "false",
    )
    page.window.press("End")
    focused(page, "path /visits")
    assert page.window.text("#place-path") == "/visits", "the history is of what has the focus"
    page.window.press("Home")
    focused(page, "path ")
    roving = page.window.attributes("#tree [role=treeitem]", "tabindex")
    assert roving.count("0") == 1 and set(roving) == {"0", "-1"}


def test_the_tree_to_a_screen_reader(page: Page) -> None:
    page.unfold("/lamps")
    page.until_value("/visits", "0")
    page.window.element(row_of("/lamps/hall"))
    assert page.window.attribute("#tree", "role") == "tree"
    assert page.window.attribute(row_of("/lamps/hall"), "aria-level") == "3"
    assert page.window.attribute(row_of("/lamps/hall"), "aria-posinset") == "1"
    assert page.window.attribute(row_of("/lamps/hall"), "aria-setsize") == "2"
    assert page.window.attribute(row_of("/visits"), "aria-expanded") is None
    assert "visits: 0" in (page.window.attribute(row_of("/visits"), "aria-label") or "")
    nameless = page.window.run(
        "return [...document.querySelectorAll('button, input, select, textarea, [role=tree], [role=listbox], [tabindex=\"0\"]')]"
        ".filter((e) => !(e.innerText?.trim() || e.ariaLabel || e.getAttribute('aria-labelledby') || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert nameless == []
    assert page.window.attribute("#connection", "aria-live") == "polite"


def test_the_actions(page: Page) -> None:
    for visits in range(1, 4):
        page.daemon.set("/visits", visits)
    page.until_action(3)
    page.window.press("a")
    focused(page, "actions")
    page.window.press("Up")
    page.until(
        "the newest is selected", lambda: page.window.attribute("#action", "data-sequence") == "3"
    )
    page.window.press("Up")
    page.until("the one before", lambda: page.window.attribute("#action", "data-sequence") == "2")
    page.until(
        "it is the active one",
        lambda: page.window.attribute("#actions", "aria-activedescendant") == "action-2",
    )
    page.window.press("Home")
    page.until("the first", lambda: page.window.attribute("#action", "data-sequence") == "1")
    page.window.press("Escape")
    page.until("it follows", lambda: page.window.attribute("#actions", "data-follows") == "true")
    page.window.press("/")
    focused(page, "filter")
    page.window.press("s", "e", "t")
    assert page.window.run("return document.querySelector('#filter').value") == "set", (
        "letters in a field are letters"
    )
    page.window.press("Escape")
    focused(page, "BODY")


def test_the_tabs_and_the_form(page: Page) -> None:
    page.window.press("5")
    focused(page, "tab-send")
    page.window.press("Left")
    focused(page, "tab-plots")
    assert page.window.is_shown("#panel-plots")
    page.window.press("Home")
    focused(page, "tab-actions")
    page.window.press("5", "Tab")
    focused(page, "send-action")
    page.window.press("Tab", "Tab")
    for letter in "/visits":
        page.window.press(letter)
    page.window.press("Tab", "7", "Enter")
    page.until_value("/visits", "7")


def test_the_time(page: Page) -> None:
    for visits in (1, 2, 3):
        page.daemon.set("/visits", visits)
    page.until_value("/visits", "3")
    page.until("the slider is there", lambda: page.window.attribute("#slider", "max") == "3")
    page.window.press("s")
    focused(page, "slider")
    page.window.press("Left")
    page.until_value("/visits", "2")
    page.window.press("[")
    page.until_value("/visits", "1")
    page.window.press("]")
    page.until_value("/visits", "2")
    page.window.press("n")
    page.until_value("/visits", "3")
    page.window.press("[")
    page.until_value("/visits", "2")
    page.until(
        "the jump is possible",
        lambda: page.window.run("return !document.querySelector('#jump').disabled"),
    )
    page.window.run("document.querySelector('#jump').focus()")
    page.window.press("Enter")
    focused(page, "confirm-yes")
    page.window.press("Enter")
    page.until("it has jumped", lambda: page.daemon.get("/visits") == 2)
    page.window.press("u")
    focused(page, "undo")
    assert page.daemon.get("/visits") == 2, "a key alone changes nothing"
    page.window.press("Enter")
    page.until("undone", lambda: page.daemon.get("/visits") == 3)
    page.window.press("Tab")
    focused(page, "redo")
    page.window.press("Enter")
    page.until("done again", lambda: page.daemon.get("/visits") == 2)
    page.window.press("p")
    focused(page, "pause")
    assert page.daemon.status()["pausedMs"] is None, "a key alone changes nothing"


def test_the_keys_are_listed(page: Page) -> None:
    page.window.press("?")
    page.until("the list is open", lambda: page.window.is_shown("#keys"))
    assert "filter the actions" in page.window.text("#keys-list")
    page.window.press("Escape")
    page.until("it is closed", lambda: not page.window.is_shown("#keys"))


def test_the_focus_is_seen(page: Page) -> None:
    page.window.element(row_of("/visits"))
    page.window.press("t", "Down")
    outline = page.window.run(
        "const s = getComputedStyle(document.activeElement); return s.outlineStyle + ' ' + s.outlineWidth"
    )
    assert outline == "solid 2px"
