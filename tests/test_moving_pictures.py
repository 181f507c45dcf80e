"""The films show what was recorded, and go forward and back by buttons and keys."""

import re
from pathlib import Path

import moving_pictures
import pytest
from browser import BROWSER, page_in

ROOT = Path(__file__).resolve().parent.parent

FILMS = sorted((ROOT / "figures").glob("moving_*.svg"))
MOVING = ROOT / "figures" / "ranks_at_work.svg"


def test_the_drawings_are_those_of_the_record(tmp_path, monkeypatch):
    (tmp_path / "figures").mkdir()
    monkeypatch.setattr(moving_pictures, "ROOT", tmp_path)
    moving_pictures.draw()
    drawn = {path.name: path.read_text() for path in (tmp_path / "figures").iterdir()}
    assert drawn == {path.name: path.read_text() for path in [*FILMS, MOVING]}


@pytest.mark.parametrize("path", FILMS, ids=lambda path: path.stem)
def test_as_a_picture_a_film_is_one_frame(path):
    frames = re.findall(r'<g class="frame"( display="none")?>', path.read_text())
    assert len(frames) > 4 and frames.count("") == 1


@BROWSER
@pytest.mark.browser
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_picture_of_the_readme_shows_one_frame_after_the_other(motion):
    shown = """[...document.querySelectorAll('.frame')].map((frame, k) => [frame, k])
        .filter(([frame]) => getComputedStyle(frame).visibility === 'visible').map(([, k]) => k)"""
    with page_in(390) as page:
        page.emulate_media(reduced_motion=motion)
        page.goto(MOVING.as_uri())
        for seconds, frame in enumerate([0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 0]):
            animations = "document.getAnimations({subtree: true})"
            page.evaluate(f"{animations}.forEach(a => {{ a.pause(); a.currentTime = {1200 * seconds + 100} }})")
            assert page.evaluate(shown) == [frame if motion == "no-preference" else 7]


@BROWSER
@pytest.mark.browser
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_reader_goes_through_a_film(tmp_path, motion):
    script, style = ((ROOT / "book" / "_static" / name).read_text() for name in ("stepper.js", "book.css"))
    film = (ROOT / "figures" / "moving_ring.svg").read_text()
    head = f"<!doctype html><meta charset=utf-8><title>f</title><script>{script}</script><style>{style}</style>"
    path = tmp_path / "page.html"
    path.write_text(f"{head}<div class=film>{film}</div>")
    with page_in(390) as page:
        page.emulate_media(reduced_motion=motion)
        page.goto(path.as_uri())
        label = "document.querySelector('svg').getAttribute('aria-label')"
        seen = "[...document.querySelectorAll('.frame')].findIndex(f => f.getAttribute('display') !== 'none')"
        assert "At first" in page.evaluate(label)
        page.click("text=Next")
        assert page.evaluate(seen) == 1 and "Reduce-scatter, step 1" in page.evaluate(label)
        page.keyboard.press("End")
        assert page.evaluate(seen) == 6 and "16 of 16" in page.evaluate(label)
        page.click("text=Back")
        assert page.evaluate(seen) == 5
        page.focus(".film")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")
        assert page.evaluate(seen) == 0
        assert page.locator("text=Play").count() == (motion == "no-preference")
        if motion == "no-preference":
            page.click("text=Play")
            page.wait_for_function(f"{seen} === 2")
            page.click("text=Stop")
            at = page.evaluate(seen)
            page.wait_for_timeout(1500)
            assert page.evaluate(seen) == at
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.said == []
