"""The core lessons render as talks that fit on the screen, and give no solution away."""

import re

import pytest
import slides
from browser import BROWSER, page_in
from notebook_rules import path_of

CORE = ["00", "02", "03", "05", "07", "09", "12", "15", "17", "25"]
BEFORE_SLIDES = re.compile(r"<section\s*>(?=\s*<section)")  # what reveal.js calls a vertical stack
NOT_FOR_A_TALK = re.compile("<details|<summary|Solution|NotImplementedError|[.]ipynb|(?:src|href)=.(?:https?:|[.][.]/)")
SIZE = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
FIRST_WITH_FRAGMENT = """1 + [...document.querySelectorAll('section > section')]
    .findIndex(slide => slide.querySelector('.fragment'))"""
SEEN = "[document.getElementById('place').textContent, document.querySelectorAll('.fragment.shown').length]"


@pytest.fixture(scope="module", params=CORE)
def talk(request, tmp_path_factory):
    """The slides of a core lesson."""
    return slides.render(path_of(request.param), tmp_path_factory.mktemp("slides"))


def test_a_talk_has_its_slides_and_nothing_else(talk):
    page = re.sub(r'src="data:[^"]*"', "", talk.read_text())
    assert 8 <= len(re.findall(r"<section\s*>", BEFORE_SLIDES.sub("", page))) <= 25
    assert NOT_FOR_A_TALK.findall(page) == []


def test_of_a_text_the_core_is_shown_and_the_rest_said():
    item = "- **This is so. It** is short. " + "And this is long, " * 20
    blocks = ["Read.", "## Next", "First.", "More.", item, "![picture](x)", "<details>solved</details>"]
    shown, said = slides.core("\n\n".join(blocks), begins=True)
    assert shown.split("\n\n") == ["## Next", "First.", "- **This is so. It** is short.", "![picture](x)"]
    assert "Read." in said and "More." in said and "solved" not in shown + said
    assert slides.core("\n\n".join(blocks), begins=False)[0] == "Read."


@BROWSER
@pytest.mark.browser
def test_every_slide_fits_on_the_screen(talk):
    with page_in(1280, 720) as page:
        page.goto(talk.as_uri())
        place, count = page.inner_text("#place").split(" / ")
        assert place == "1"
        for number in range(int(count)):
            while page.evaluate("document.querySelector('section.shown .fragment:not(.shown)')"):
                page.keyboard.press("ArrowRight")
            assert page.evaluate(SIZE) == [1280, 720], f"{talk.stem}, slide {number + 1}"
            page.keyboard.press("ArrowRight")
        assert page.inner_text("#place") == f"{count} / {count}" and page.said == []


@BROWSER
@pytest.mark.browser
def test_keys_notes_and_a_second_window(tmp_path):
    talk = slides.render(path_of("00"), tmp_path)
    with page_in(1280, 720) as page:
        page.goto(talk.as_uri())
        last = int(page.inner_text("#place").split(" / ")[1])
        number = page.evaluate(FIRST_WITH_FRAGMENT)
        page.goto(f"{talk.as_uri()}#{number}")
        with page.expect_popup() as popup:
            page.evaluate("open(location.pathname)")
        second = popup.value
        second.wait_for_selector("section.shown")
        assert page.evaluate(SEEN) == [f"{number} / {last}", 0]
        page.keyboard.press("PageDown")
        assert page.evaluate(SEEN) == [f"{number} / {last}", 1]
        second.wait_for_function(f"({SEEN}).join() === '{number} / {last},1'")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        second.wait_for_function(f"({SEEN})[0] === '{number - 1} / {last}'")
        second.keyboard.press("n")
        notes = [window.locator(".shown .notes").first for window in (page, second)]
        assert [of_window.is_visible() for of_window in notes] == [False, True]
        page.keyboard.press("End")
        page.reload()
        assert page.evaluate(SEEN)[0] == f"{last} / {last}"
