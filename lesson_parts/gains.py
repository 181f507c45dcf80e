"""For lesson 28: ways of a step take turns on two ranks, and beside a rival on all cores; what they bring is drawn."""

from timeit import timeit

import numpy as np

import lesson_parts.kept as kept
from helpers.plots import COLORS, SERIAL

QUARTILES = [0.25, 0.5, 0.75]
COLOR_OF = {"gains": COLORS[2], "open": SERIAL, "loses": COLORS[1]}


# ---- Turns


def in_turns(timed, steps, n, turns, warm):
    """Time several ways of a step on this rank, turn by turn; each turn begins with another way.

    Parameters
    ----------
    timed : function
        timed(step, n) -> (ms, MB) of a step, the mean of n.
    steps : dict of str to function
        {way: step()}. In the way "alone" the steps are those of rank 0, and the others do nothing.
    n : int
        Steps of each way in a turn.
    turns : int
    warm : int
        So many turns before, which do not count.

    Returns
    -------
    dict of str to list
        {way: (ms, MB) of the slower rank, turn by turn}; the same on every rank.
    """
    rows = [_one_turn(timed, steps, n, turn) for turn in range(warm + turns)]
    return {way: [row[way] for row in rows[warm:]] for way in steps}


def against_all_cores(ranks, steps_of, timed, rival, turns=10, ms=100):
    """Let a rival in this process take turns with several ways of a step on the ranks, which rest meanwhile.

    In a turn each does the same number of steps: as many as the way "both" does in so many ms.

    Parameters
    ----------
    ranks : Ranks
    steps_of : function
        Called on each rank: () -> {way: step()}, see `in_turns`; one way is "both".
    timed : function
        See `in_turns`.
    rival : function
        A step in this process.
    turns : int
    ms : float

    Returns
    -------
    dict of str to list
        {"all cores" or way: (ms, MB) of a step, turn by turn}.
    """
    ranks.run(_keep, steps_of)
    rival()  # the first steps take longer
    ranks.run(_turn_of_kept, timed, 2, 0)
    ms_of_both, _ = ranks.run(_turn_of_kept, timed, 2, 0)[0]["both"]
    n = max(1, round(ms / ms_of_both))

    def on_all_cores(turn):
        return {"all cores": (1e3 * timeit(rival, number=n) / n, 0)}

    def on_ranks(turn):
        return ranks.run(_turn_of_kept, timed, n, turn)[0]

    found = {}
    for turn in range(turns):
        for side in _rotated([on_all_cores, on_ranks], turn):
            for way, row in side(turn).items():
                found.setdefault(way, []).append(row)
    return found


def _keep(steps_of):
    """On a rank: make the steps, which stay there from one call to the next."""
    kept.steps = steps_of()


def _turn_of_kept(timed, n, turn):
    return _one_turn(timed, kept.steps, n, turn)


def _one_turn(timed, steps, n, turn):
    """On a rank: {way: (ms, MB) of the slower one}."""
    import horovod.tensorflow as hvd

    found = {}
    for way in _rotated([*steps], turn):
        rests = way == "alone" and hvd.rank() > 0
        mine = timed(_nothing if rests else steps[way], n)
        found[way] = max(hvd.allgather_object(mine))
    return found


def _nothing():
    """The step of a rank that rests."""


def _rotated(ways, turn):
    first = turn % len(ways)
    return ways[first:] + ways[:first]


# ---- Drawn


def draw_gains(axes, gains, verdict):
    """Draw each turn as a dot, the quartiles as a bar, the median as a tick, and a line at 1.

    Right of the line two ranks do more. The rows of one model stand together, and the verdict stands at the right.

    Parameters
    ----------
    axes : sequence of matplotlib.axes.Axes
        One for each rival; they share y.
    gains : dict of (str, int) to dict
        {(model, images): {rival: the ratios of its turns}}, from top to bottom; each case has the same rivals.
    verdict : function
        Ratios -> "gains", "open" or "loses".
    """
    models = list(dict.fromkeys(model for model, _ in gains))
    heights = [row + 0.7 * models.index(model) for row, (model, _) in enumerate(gains)]
    rivals = list(next(iter(gains.values())))
    for axis, rival in zip(axes, rivals):
        for height, ratios_of in zip(heights, gains.values()):
            ratios = ratios_of[rival]
            low, middle, high = np.quantile(ratios, QUARTILES)
            word = verdict(ratios)
            color = COLOR_OF[word]
            axis.plot(ratios, [height] * len(ratios), ls="", marker="o", ms=3.5, alpha=0.5, color=color)
            axis.plot([low, high], [height, height], lw=7, alpha=0.4, solid_capstyle="butt", color=color)
            axis.plot(middle, height, ls="", marker="|", ms=14, mew=3, color=color)
            place = axis.get_yaxis_transform()
            axis.text(1.03, height, word, color=color, va="center", transform=place)
        axis.axvline(1, color="k", ls="--", lw=1)
        axis.set(title=f"2 ranks / {rival}", xlabel="times as many\nexamples a second")
        axis.set_xlim(left=0)
    axes[0].set(yticks=heights, yticklabels=[f"{model}, {images}" for model, images in gains])
    axes[0].invert_yaxis()


def draw_options(axes, ms, losses, silent):
    """Draw a step of each option as a bar, with a line from quartile to quartile, and its loss as a dot.

    Dashed lines stand at what "both" has.

    Parameters
    ----------
    axes : sequence of matplotlib.axes.Axes
        Two, which share y: for the time, and for the loss.
    ms : dict of str to numpy.ndarray
        {option: ms of a step, turn by turn}, from top to bottom.
    losses : dict of str to float
    silent : set of str
        Options that send nothing: they are grey.
    """
    time_of, loss_of = axes
    for row, (option, turns) in enumerate(ms.items()):
        low, middle, high = np.quantile(turns, QUARTILES)
        color = SERIAL if option in silent else COLORS[0]
        time_of.barh(row, middle, 0.6, color=color, alpha=0.6)
        time_of.plot([low, high], [row, row], color="k", lw=1.5)
        loss_of.plot(losses[option], row, ls="", marker="o", color=color)
    time_of.axvline(np.median(ms["both"]), color="k", ls="--", lw=1)
    loss_of.axvline(losses["both"], color="k", ls="--", lw=1)
    time_of.set(xlabel="ms a step", yticks=range(len(ms)))
    time_of.set_yticklabels([option.replace(", ", ",\n") for option in ms])
    loss_of.set(xlabel="held-out loss", xlim=(0, 1.1 * max(losses.values())))
    time_of.invert_yaxis()
