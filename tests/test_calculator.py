"""The calculator of the book computes what lesson 12's prediction does, and starts with what a benchmark measured."""

import json
import math
import re
from pathlib import Path

import pytest
from browser import BROWSER, page_in

from helpers.exchange import ring_bytes
from lesson_parts.plans import predicted

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.browser, BROWSER]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The form of docs/calculator.md with its script, in a browser."""
    form = re.search(r"<form.*</form>", (ROOT / "docs" / "calculator.md").read_text(), re.DOTALL)[0]
    script = (ROOT / "book" / "_static" / "calculator.js").read_text()
    path = tmp_path_factory.mktemp("calculator") / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title>c</title><script>{script}</script>{form}")
    with page_in(390) as page:
        page.goto(path.as_uri())
        yield page
        assert page.said == []


@pytest.mark.parametrize("n", [2, 3, 16])
@pytest.mark.parametrize(("compute", "n_bytes", "messages"), [(0.005, 1e6, 1), (0.08, 33e6, 6), (0.0004, 4e3, 64)])
def test_a_step_is_that_of_the_cost_model(page, n, compute, n_bytes, messages):
    latency, bandwidth, pairs = 0.002, 4e8, 1024

    def plan(*_):
        return pairs, messages, ring_bytes(n, n_bytes)

    alone = pairs / compute
    for name, overlap in (("dense", "false"), ("overlap", "true")):
        of_all = predicted(name, None, None, n * alone, (latency, bandwidth), n, plan)
        exchange = f"calculator.exchange({n}, {n_bytes}, {messages}, {latency}, {bandwidth})"
        found = page.evaluate(f"calculator.speedUp({n}, {compute}, {exchange}, {overlap})")
        assert found == pytest.approx(of_all / alone)


@pytest.mark.parametrize(("compute", "exchange", "share"), [(0.005, 0.002, 0.8), (0.001, 0.05, 0.8), (1.0, 1.0, 0.9)])
def test_local_steps_are_the_fewest_that_reach_the_share(page, compute, exchange, share):
    steps = page.evaluate(f"calculator.localSteps({compute}, {exchange}, {share})")

    def computing(k):
        return k * compute / (k * compute + exchange)

    assert computing(steps) >= share - 1e-9
    assert steps == 1 or computing(steps - 1) < share


def test_checkpoints_follow_young_and_daly(page):
    young, daly = page.evaluate("[calculator.young(300, 21600), calculator.daly(300, 21600)]")
    assert young == pytest.approx(math.sqrt(2 * 300 * 21600))
    assert daly == pytest.approx(3399.5, abs=5)  # lesson 21: every 60 and every 56.7 minutes


def test_it_starts_with_what_the_benchmark_measured(page):
    rows = json.loads((ROOT / "benchmarks" / "results" / "allreduce.json").read_text())["rows"]
    seconds = {row["bytes"]: row["seconds"] for row in rows if row["ranks"] == 2}
    largest = max(seconds)
    bandwidth = ring_bytes(2, largest) / seconds[largest] / 1e6
    assert float(page.input_value("#latency")) == pytest.approx(1e3 * seconds[4096], rel=0.01)
    assert float(page.input_value("#bandwidth")) == pytest.approx(bandwidth, rel=0.01)


def test_the_answers_follow_the_input_and_wrong_input_is_one_sentence(page):
    page.fill("#compute", "100")
    assert "they pay" in page.inner_text("#answer-ranks") and "every step" in page.inner_text("#answer-steps")
    page.fill("#compute", "0.1")
    assert "one rank alone is faster" in page.inner_text("#answer-ranks")
    page.fill("#ranks", "1")
    assert page.inner_text("#answer-ranks") == '"ranks or workers" has to be a number of at least 2.'
    assert page.inner_text("#answer-save") == ""
    page.fill("#ranks", "2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
