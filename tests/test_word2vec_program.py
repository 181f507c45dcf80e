"""examples/word2vec.py in this process and on two ranks; tests/test_word2vec_launched.py starts it as users do."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import SELDOM
from gensim.models import KeyedVectors
from test_encode_text import largest_file

from examples import checkpoint, word2vec
from examples.checkpoint import Failure
from helpers.cluster import connect
from helpers.cluster.environment import limit_threads
from helpers.text import load_corpus
from helpers.word2vec import Blocks, load_vectors

LETTERS = str.maketrans("0123456789", "ghijklmnop")
SMALL = {"size": 8, "epochs": 2, "sample": 1e-2}  # 20 intervals


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The path of a text of 30,000 words; what is encoded stays in a cache of this module."""
    folder = tmp_path_factory.mktemp("text")
    (folder / "a.txt").write_text(" ".join(load_corpus("planted", n_words=30_000).words).translate(LETTERS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("W2V_CACHE", str(folder / "cache"))
        yield folder / "a.txt"


def train(*texts, out, stop_at=None, **options):
    """What word2vec.train returns, or the sentence and code of its Failure. stop_at: where a signal comes."""

    def show(step, steps, said, seconds_left):
        assert seconds_left >= 0 and step <= steps and "million words/s, loss" in said
        if step == stop_at:
            word2vec.STOP.set()

    try:
        return word2vec.train(texts, out, show=show, **{**SMALL, **options})
    except Failure as failure:
        return failure.args
    finally:
        word2vec.STOP.clear()


def same(one, other):
    return Path(one).read_bytes() == Path(other).read_bytes()


def test_three_formats_hold_the_same_vectors(tmp_path):
    words = ["the", "a", "word"]
    vectors = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    for suffix in word2vec.WRITERS:
        word2vec.write_vectors(tmp_path / f"v{suffix}", words, vectors)
    found = [load_vectors(tmp_path / name) for name in ("v.txt", "v.bin")]
    for keyed in [*found, KeyedVectors.load(str(tmp_path / "v.kv"))]:
        assert keyed.index_to_key == words and (keyed.vectors == vectors).all()
    with pytest.raises(ValueError, match="NaN or infinity"):
        word2vec.write_vectors(tmp_path / "nan.txt", words, np.full_like(vectors, np.nan))
    assert len(list(tmp_path.iterdir())) == 3


def test_a_training_and_what_it_tells(text, tmp_path):
    other = tmp_path / "b.txt"
    other.write_text(text.read_text()[:50_000])
    done = train(str(text), str(tmp_path / "*.txt"), out=tmp_path / "v.bin", logs=tmp_path / "logs")
    assert done["texts"] == [str(text), str(other)] and 30_000 < done["words"] < 45_000
    assert (done["first"], done["steps"]) == (0, 20) and done["loss"] > 0 and done["words_per_s"] > 0
    assert {"encoding", "training", "cutting blocks", "writing"} <= done["seconds"].keys()
    assert len(load_vectors(tmp_path / "v.bin")) == done["vocabulary"] > 500
    assert len(list(tmp_path.glob("logs/rank-0/events*"))) == 1
    json.dumps(done)


def test_stopped_anywhere_it_ends_with_the_bits_of_the_uninterrupted_run(text, tmp_path):
    train(str(text), out=tmp_path / "whole.txt")
    kept = tmp_path / "kept"
    for stop_at in (3, 14):
        sentence, code = train(str(text), out=tmp_path / "v.txt", checkpoint=kept, minutes=0.0, stop_at=stop_at)
        stopped = f"stopped after {stop_at + 1} of 20 intervals"
        assert code == 75 and sentence == f"{stopped}: the same line goes on from {kept}"
        assert not (tmp_path / "v.txt").exists()
        assert sorted(file.name for file in kept.iterdir()) == [f"{stop_at + 1}-0-of-1.npy", "checkpoint.json"]
    (kept / "stop").touch()
    sentence, code = train(str(text), out=tmp_path / "v.txt", checkpoint=kept)
    assert code == 75 and sentence.startswith("stopped after 16 of 20") and not (kept / "stop").exists()
    done = train(str(text), out=tmp_path / "v.txt", checkpoint=kept)
    assert done["first"] == 16 and same(tmp_path / "v.txt", tmp_path / "whole.txt")
    assert list(kept.iterdir()) == []
    assert train(str(text), out=tmp_path / "v.txt", stop_at=1) == (
        "stopped after 2 of 20 intervals: nothing is kept without --checkpoint", 75,
    )  # fmt: skip


def test_what_does_not_fit_is_a_sentence_and_a_code(text, tmp_path, monkeypatch):
    out, kept = tmp_path / "v.txt", tmp_path / "kept"
    train(str(text), out=out, checkpoint=kept, stop_at=1)
    other = tmp_path / "other.txt"
    other.write_text(text.read_text()[::-1])
    (tmp_path / "short.txt").write_text("a few words " * 30)
    (tmp_path / "empty.txt").write_text("")

    def failure(*texts, **options):
        sentence, code = train(*map(str, texts or [text]), **{"out": out, **options})
        assert "\n" not in sentence
        return f"{code}: {sentence}"

    assert failure("nowhere.txt") == "66: There is no file nowhere.txt."
    assert failure(tmp_path / "empty.txt").startswith("65: no word of the text comes 5 times")
    assert failure(tmp_path / "short.txt") == "65: the text has 90 words, but each of 1 ranks needs 1,000"
    assert failure(min_count=10**6).startswith("65: no word of the text comes 1000000 times")
    assert failure(out=tmp_path / "v.vec").startswith("65: --out") and failure(alpha=0).startswith("65: lr=0")
    assert failure(out=text) == f"65: {text} is one of the texts, and would be overwritten"
    (tmp_path / "f.txt").mkdir()
    assert failure(out=tmp_path / "f.txt") == f"65: {tmp_path / 'f.txt'} is a folder"
    assert failure(out=tmp_path / "no" / "v.txt") == f"66: There is no folder {tmp_path / 'no'}."
    of_another, folder = f"65: the checkpoint in {kept} is of another", "give another folder"
    assert failure(checkpoint=kept, size=9) == f"{of_another} size: 9 and not 8; {folder}"
    assert failure(other, checkpoint=kept) == f"{of_another} text; {folder}"
    with largest_file(100_000):
        full = failure(checkpoint=tmp_path / "full", stop_at=2, size=64)
        assert full == f"74: {tmp_path}/full/3-0-of-1.npy cannot be written: File too large"
        assert failure(size=64) == f"74: {out} cannot be written: File too large"
    assert list((tmp_path / "full").iterdir()) == []
    monkeypatch.setattr("helpers.cluster.engines.available", lambda: 1e4)
    assert "words x 8 need 0.0 GB, and " in (said := failure()) and said.startswith("71: ")
    monkeypatch.undo()
    next(kept.glob("*.npy")).write_bytes(b"")
    assert failure(checkpoint=kept).startswith(f"65: {kept}/2-0-of-1.npy cannot be read")
    (kept / "checkpoint.json").write_text("{}")
    assert failure(checkpoint=kept).startswith(f"65: {kept}/checkpoint.json is no checkpoint of this program")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert failure(out=tmp_path / "v.kv").startswith("65: a .kv file needs gensim")
    assert not out.exists()


def test_a_diverging_run_ends_and_the_last_good_checkpoint_stays(text, tmp_path, monkeypatch):
    kept, save = tmp_path / "kept", checkpoint.save

    def save_what_is_spoiled_in_the_end(folder, header, step, tables, common, hvd):
        if step == 6:
            tables[0][1:] = np.nan
        save(folder, header, step, tables, common, hvd)

    monkeypatch.setattr(checkpoint, "save", save_what_is_spoiled_in_the_end)
    sentence, code = train(str(text), out=tmp_path / "v.txt", checkpoint=kept, minutes=0.0)
    assert code == 65 and sentence == "the tables hold NaN or infinity: take a smaller --alpha"
    monkeypatch.undo()
    assert train(str(text), out=tmp_path / "v.txt", checkpoint=kept)["first"] == 5
    with pytest.raises(Failure, match="no longer a number: take a smaller --alpha"):
        word2vec.check_loss(np.nan)


def test_a_launcher_or_a_host_that_is_set_up_wrongly_is_refused_before_horovod_starts(monkeypatch):
    for name in word2vec.LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    word2vec.join_ranks()
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(Failure, match="the 4 processes of this srun do not know each other: srun --mpi=pmix"):
        word2vec.join_ranks()
    monkeypatch.setenv("HOROVOD_RANK", "0")
    monkeypatch.setenv("HOROVOD_CROSS_SIZE", "2")
    monkeypatch.setattr("socket.gethostbyname", lambda name: "127.0.1.1")
    with pytest.raises(Failure, match="calls itself 127.0.1.1, where nobody else reaches it") as error:
        word2vec.join_ranks()
    assert error.value.args[1] == 78


def test_as_a_program_it_ends_with_the_sentence_and_the_code(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(word2vec, "choose_threads", lambda threads: 1)  # TensorFlow runs here already
    monkeypatch.setattr(word2vec, "USUAL", {})
    monkeypatch.setattr("signal.signal", lambda number, handler: None)

    def ends_with(*more):
        monkeypatch.setattr(sys, "argv", ["word2vec.py", "nowhere.txt", "--out", str(tmp_path / "v.txt"), *more])
        with pytest.raises(SystemExit) as end:
            word2vec.main()
        return end.value.code, capsys.readouterr().err

    assert ends_with() == (66, "word2vec.py: There is no file nowhere.txt.\n")
    nowhere = tmp_path / "no" / "done.json"
    assert ends_with("--json", str(nowhere)) == (66, f"word2vec.py: There is no folder {nowhere.parent}.\n")
    monkeypatch.delenv(word2vec.ELASTIC, raising=False)
    alone = (78, "word2vec.py: --elastic needs horovodrun with a --host-discovery-script\n")
    assert ends_with("--elastic") == alone
    word2vec.TRAINING.clear()
    with pytest.raises(Failure, match="stopped before training; what is encoded is kept"):
        word2vec.stop_by_signal(15, None)
    word2vec.STOP.clear()


def test_elastic_ranks_take_the_copy_that_has_got_furthest():
    """A rank that has just come has the number of the interval, but no tables of its own before it restores."""
    from examples.kept_in_memory import Kept

    steps = []  # what all ranks say, in rank order; None stands for the rank that is asked
    sent = {}  # by the rank that all take it from
    hvd = SimpleNamespace(
        rank=lambda: 0,
        broadcast_object=lambda value: value,
        allgather_object=lambda own: [own if step is None else step for step in steps],
        broadcast=lambda value, root: sent.get(root, value),
    )
    tables, common = [np.zeros((3, 2))], [np.zeros((3, 2))]

    def formed_anew(kept, *said):
        steps[:] = said
        kept.sync()
        kept.restore_into(tables, common)
        return kept.step, kept.steps, tables[0][0, 0], common[0][0, 0]

    old = Kept(hvd)
    old.keep(5, 10, [np.ones((3, 2))], [np.full((3, 2), 2.0)], None)
    assert formed_anew(old, None, (0, 0)) == (5, 10, 1, 2)  # its own tables, and the common ones
    sent[1] = np.full((3, 2), 3.0)
    new = Kept(hvd)
    assert formed_anew(new, None, (6, 10)) == (6, 10, 3, 3)
    assert formed_anew(old, None, (6, 10)) == (6, 10, 3, 3)  # it was an interval behind
    assert formed_anew(new, None) == (6, 10, 3, 3)  # the one that had them is lost
    lost = Kept(hvd)
    steps[:] = None, (6, 10)
    lost.sync()  # and now the other is lost, before this one has got the tables
    steps[:] = [None]
    lost.sync()
    assert (lost.step, lost.steps) == (0, 0)


# ---- Ranks


@pytest.fixture(scope="module")
def ranks(text):
    with connect(2, cluster=False, env=SELDOM) as ranks:
        ranks.run(limit_threads, 1)
        yield ranks


def train_on_rank(texts, out, **options):
    import horovod.tensorflow as hvd

    return train(texts[hvd.rank()], out=out, **options)


@pytest.mark.ranks
def test_any_number_of_ranks_goes_on_and_the_same_number_with_the_same_bits(ranks, text, tmp_path):
    often = {"blocks": Blocks(interval=1_000)}  # 60 intervals on one rank, 30 on two

    def on_two(out, **options):
        return ranks.run(train_on_rank, [str(text)] * 2, tmp_path / out, **often, **options)

    done, _ = on_two("whole.txt")
    assert done["hosts"][0] == done["hosts"][1] and done["seconds"]["Horovod"] > 0
    kept = tmp_path / "kept"
    for sentence, code in on_two("two.txt", checkpoint=kept, minutes=0.0, stop_at=12):
        assert code == 75 and sentence.startswith("stopped after 13 of 30 intervals")
    names = [f"13-{whose}-of-2.npy" for whose in (0, 1, "common")]
    assert sorted(file.name for file in kept.iterdir()) == [*names, "checkpoint.json"]
    saved = {file.name: file.read_bytes() for file in kept.iterdir()}

    done, _ = on_two("two.txt", checkpoint=kept)
    assert done["first"] == 13 and same(tmp_path / "two.txt", tmp_path / "whole.txt") and not any(kept.iterdir())

    for name, content in saved.items():
        (kept / name).write_bytes(content)
    done = train(str(text), out=tmp_path / "one.txt", checkpoint=kept, stop_at=28, **often)  # two ranks, then one
    assert done[0].startswith("stopped after 29 of 60 intervals")
    done, _ = on_two("more.txt", checkpoint=kept)  # one rank, then two
    assert done["first"] == 14
    whole, more = (load_vectors(tmp_path / name).vectors for name in ("whole.txt", "more.txt"))
    cosines = (whole * more).sum(axis=1) / np.linalg.norm(whole, axis=1) / np.linalg.norm(more, axis=1)
    assert np.median(cosines) > 0.8


@pytest.mark.ranks
def test_all_ranks_end_with_the_sentence_of_one(ranks, text, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(text.read_text()[:-100])
    for texts, code, said in (
        ([str(text), "nowhere.txt"], 66, "There is no file nowhere.txt."),
        ([str(text), str(other)], 65, "is another one than on"),
    ):
        (first, second) = ranks.run(train_on_rank, texts, tmp_path / "v.txt")
        assert first == second and first[1] == code and said in first[0]
    (first, second) = ranks.run(train_on_rank, [str(text)] * 2, tmp_path / "no" / "v.txt")
    assert first == second and first[1] == 66 and not (tmp_path / "v.txt").exists()


def test_the_merged_checkpoint_of_ranks_is_an_exchange_of_all_rows(tmp_path):
    """Changes at right angles are added, equal ones averaged."""
    common = [np.zeros((2, 2), np.float32)] * 2
    own = [[[0.1, 0], [0.2, 0.2]], [[0, 0.1], [0.2, 0.2]]]
    for whose, tables in (("common", common), (0, [own[0]] * 2), (1, [own[1]] * 2)):
        with open(tmp_path / f"5-{whose}-of-2.npy", "wb") as file:
            for table in tables:
                np.save(file, np.float32(table))
    for table in checkpoint.merged(tmp_path, {"step": 5, "ranks": 2}):
        np.testing.assert_allclose(table, [[0.1, 0.1], [0.2, 0.2]], rtol=1e-6)
