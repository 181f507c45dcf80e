"""Of lesson 04: what feeds a training step takes turns with the others; its tables, its figures, a profile read."""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display

from helpers.plots import COLORS, median_and_range, table

READY = "ready batches"  # the feeder that the others are compared with


def time_feeder(batches, n_batches, use):
    """Take some batches, one after the other, and use each.

    Parameters
    ----------
    batches : iterator of (centers, contexts)
    n_batches : int
    use : function
        use(centers, contexts): the training step, say.

    Returns
    -------
    tuple of float
        The mean ms that the loop waited for a batch, and the mean ms that it used it.
    """
    waiting = using = 0
    for _ in range(n_batches):
        asked = perf_counter()
        centers, contexts = next(batches)
        given = perf_counter()
        use(centers, contexts)
        waiting += given - asked
        using += perf_counter() - given
    return 1000 * waiting / n_batches, 1000 * using / n_batches


def seven_rounds(feeders, n_batches, use):
    """Time every feeder in each of seven rounds, so that other work of the computer disturbs all about equally.

    In a round a feeder first makes `n_batches` that nobody counts, which uses up what was prefetched, then as many that
    nobody uses, which give t_make, and then as many that are used.

    Parameters
    ----------
    feeders : dict of {str: iterator of (centers, contexts)}
        One is "ready batches".
    n_batches : int
    use : function
        use(centers, contexts); its first call, which may compile, is not timed.

    Returns
    -------
    dict of {str: float array [3, 7]}
        Of each feeder t_make, waiting and training, in ms, in each round.
    """
    use(*next(feeders[READY]))
    measured = {name: [] for name in feeders}
    for _ in range(7):
        for name, batches in feeders.items():
            time_feeder(batches, n_batches, _no_use)
            t_make, _ = time_feeder(batches, n_batches, _no_use)
            measured[name].append([t_make, *time_feeder(batches, n_batches, use)])
    return {name: np.transpose(rounds) for name, rounds in measured.items()}


def _no_use(centers, contexts):
    pass


def steps_in_all(measured):
    """Of each feeder the ms of a step, waiting and training together, in each round: {str: float array [7]}."""
    return {name: waiting + training for name, (_, waiting, training) in measured.items()}


def feeder_table(measured, digits):
    """Display what `seven_rounds` measured: medians, and ranges of the rounds.

    The last column divides by the step on ready batches of the same round, and takes the median of these ratios.

    Parameters
    ----------
    measured : dict
        See `seven_rounds`.
    digits : int
        Of a step, in ms.
    """
    in_all = steps_in_all(measured)
    rows = []
    for name, (t_make, waiting, _) in measured.items():
        middle = f"{np.median(t_make):.2f}", f"{np.median(waiting):.2f}"
        ratio = median_and_range(in_all[name] / in_all[READY])
        rows.append([name, *middle, median_and_range(in_all[name], digits), ratio])
    columns = ["fed by", "t_make, ms", "waiting, ms", "step in all, ms", "in all / ready batches"]
    display(table(columns, rows))


def rule_table(measured, makers):
    """Display what the rule says of a step with each maker, in turns and from a thread, and what was measured.

    Parameters
    ----------
    measured : dict
        See `seven_rounds`; a maker in a thread is called "..., thread".
    makers : sequence of str
    """
    in_all = steps_in_all(measured)
    t_train = np.median(in_all[READY])
    rows = []
    for name in makers:
        t_make = np.median(measured[name][0])
        in_turns, in_thread = in_all[name], in_all[f"{name}, thread"]
        turns = f"{t_make + t_train:.1f}", median_and_range(in_turns, 1)
        thread = f"{max(t_make, t_train):.1f}", median_and_range(in_thread, 1)
        rows.append([name, *turns, *thread, median_and_range(in_thread / in_turns)])
    columns = ["maker", "t_make + t_train", "in turns, ms", "max of both", "with a thread, ms", "thread / in turns"]
    display(table(columns, rows))


def draw_feeders(measured, title):
    """Draw the median step of each feeder, training and then waiting, with the range of the rounds.

    Parameters
    ----------
    measured : dict
        See `seven_rounds`.
    title : str
    """
    in_all = steps_in_all(measured)
    figure, axis = plt.subplots(figsize=(7, 3.4))
    for place, (name, step) in enumerate(in_all.items()):
        middle, low, high = np.median(step), min(step), max(step)
        trained = np.median(measured[name][2])
        axis.barh(place, trained, color=COLORS[1])
        spread = [[middle - low], [high - middle]]
        axis.barh(place, middle - trained, left=trained, xerr=spread, capsize=3, color=COLORS[0])
        text = {"va": "center", "textcoords": "offset points", "fontsize": 13}
        axis.annotate(f"{middle:.1f}", (high, place), (6, 0), **text)
    axis.axvline(np.median(in_all[READY]), color="gray", linestyle="--")
    axis.set_yticks(range(len(in_all)), labels=list(in_all), fontsize=13)
    axis.set_xlim(0, 1.15 * max(map(max, in_all.values())))
    axis.set_xlabel("ms a step: training (orange), waiting (blue)", fontsize=13)
    axis.invert_yaxis()
    figure.suptitle(title, x=0.02, ha="left", fontsize=13)
    plt.show()


def spans_named(file, ending):
    """Read from a profile when something happened.

    Parameters
    ----------
    file : pathlib.Path
        Of TensorFlow's profiler, *.xplane.pb: planes (the processor), in them lines (threads), in them events.
    ending : str
        Of the events' names.

    Returns
    -------
    list of tuple
        (begin, end) of each such event, in ms, sorted.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    found = []
    for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes:
        for line in plane.lines:
            for event in line.events:
                if plane.event_metadata[event.metadata_id].name.endswith(ending):
                    begin = line.timestamp_ns / 1e6 + event.offset_ps / 1e9
                    found.append((begin, begin + event.duration_ps / 1e9))
    return sorted(found)


def common_ms(some, others):
    """The ms that lie in a span (begin, end) of `some` and in one of `others`."""
    return sum(max(0, min(end, stop) - max(begin, start)) for begin, end in some for start, stop in others)


def draw_spans(trains, waits, blocks, title):
    """Draw what the loop did, and below it a block in the middle of the recording.

    Parameters
    ----------
    trains, waits, blocks : list of tuple
        (begin, end) in ms: training steps, waits for a batch, blocks made.
    title : str
    """
    zero = blocks[len(blocks) // 2][0]
    figure, axis = plt.subplots(figsize=(7, 2.2))
    for row, found, color, label in [
        (0, trains, COLORS[1], "training step"),
        (0, waits, COLORS[0], "waiting for a batch"),
        (1, blocks, COLORS[2], "making a block"),
    ]:
        bars = [(begin - zero, end - begin) for begin, end in found]
        axis.broken_barh(bars, (row - 0.35, 0.7), color=color, label=label)
    axis.set(xlim=(-5, 9), ylim=(1.6, -0.6), xlabel="ms")
    axis.set_yticks([0, 1], labels=["the loop", "the pipeline"], fontsize=13)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.4), ncols=3)
    figure.suptitle(title, x=0.02, ha="left")
    plt.show()
