"""The command line of the benchmark beside gensim; a file of its own, as `connect` closes the ranks of other tests."""

import json
import sys
from contextlib import nullcontext

import pytest
from trainers import write_trainer

from benchmarks import words_per_second
from helpers.cluster import connect

pytestmark = [pytest.mark.ranks, pytest.mark.slow]


def test_words_per_second(tmp_path, monkeypatch, capsys):
    """With one rank, which three systems share; another program beside it."""
    out, figure, trainer = tmp_path / "out.json", tmp_path / "out.png", write_trainer(tmp_path / "like_word2vec")
    small = ["--corpus", "planted", "--epochs", "1", "--ranks", "1", "--repeats", "1", "--steps", "5"]
    outputs = ["--json", str(out), "--figure", str(figure), "--against", f"env SPEED=thread/ {trainer}"]
    monkeypatch.setattr(sys, "argv", ["words_per_second", *small, *outputs])
    with connect(1, cluster=False, env=words_per_second.RANK_ENV) as one:
        monkeypatch.setattr(words_per_second, "connect", lambda n, **options: nullcontext(one))
        words_per_second.main()
    rows, said = json.loads(out.read_text()), capsys.readouterr().out
    assert [row["system"] for row in rows] == ["graph", "blocks", "gensim", "like_word2vec", "canonical"]
    assert all(row["words_per_s"] > 0 and row["ranks"] == 1 and row["corpus"] == "planted" for row in rows)
    assert [row["extrapolated"] for row in rows] == [False] * 4 + [True]
    gensim, other = rows[2], rows[3]
    assert gensim["reads"] in ("list", "file") and 0 < gensim["other_words_per_s"] <= gensim["words_per_s"]
    pairs = gensim["pairs_per_s"] * gensim["seconds"]
    assert other["reports_speed"] and other["pairs_per_s"] * other["seconds"] == pytest.approx(pairs)
    assert other["seconds"] == pytest.approx(200_200 / 2_000_000)  # all words are frequent, and 200 lines end
    assert figure.stat().st_size > 1_000
    graph, loop = (row["time_of_rank_0"] for row in rows[:2])
    assert graph["spent"]["training"] > 0 and loop["compiling"] > 0
    for part in ("products", "gathering", "scattering"):
        assert graph["bound"][part] > 0 and graph["alone"][part] > 0
    assert all(loop["alone"][part] > 0 for part in ("products", "sigmoid"))
    assert loop["bound"]["products"] > 0 and loop["bound"]["rows from memory"] > 0
    for sentence in (
        "extrapolated from 5 steps",
        "rank 0: its time: training",
        f"gensim reads its sentences from a {gensim['reads']}; from a ",
        "like_word2vec: the whole program takes",
    ):
        assert sentence in said
    systems = ("graph  ", "blocks  ", "gensim  ", "like_word2v ")
    table = [line for line in said.splitlines() if line.startswith(systems)]
    assert len(table) == 4 and len({len(line) for line in table}) == 1  # the columns stay aligned
