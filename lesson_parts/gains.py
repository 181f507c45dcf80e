"""For lesson 28: ways of a step take turns on two ranks, and beside a rival on all cores; what they bring is shown."""

from functools import partial
from itertools import cycle
from timeit import timeit

import numpy as np

import lesson_parts.kept as kept
from helpers.exchange.cost_model import bytes_sent
from helpers.plots import COLORS, SERIAL, median_and_range, table
from lesson_parts.peak_memory import stacked_bars
from lesson_parts.rotation import rotated

NO_EXCHANGE = ("alone", "beside", "all cores")
COLOR_OF = {"gains": COLORS[2], "open": SERIAL, "loses": COLORS[1]}


# ---- Turns


def in_turns(steps, n, turns, warm):
    """Time several ways of a step on this rank, turn by turn; each turn begins with another way.

    Parameters
    ----------
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
        {way: (ms, MB sent) of a step of the slower rank, turn by turn}; the same on every rank.
    """
    rows = [_one_turn(steps, n, turn) for turn in range(warm + turns)]
    return {way: [row[way] for row in rows[warm:]] for way in steps}


def against_all_cores(ranks, ways_of, rival, batches, turns):
    """Let a rival in this process take turns with several ways of a step on the ranks, which rest meanwhile.

    In a turn each does the same number of steps: as many as the way "both" does in 100 ms, and at least three. The
    rival trains on a whole batch, and each rank on its own part of it.

    Parameters
    ----------
    ranks : Ranks
    ways_of : function
        Called on each rank: () -> {way: step(x, y)}, see `in_turns`; one way is "both".
    rival : function
        rival(x, y), a step in this process.
    batches : dict of int to tuple
        {images of a rank: the batch of all ranks (x, y)}.
    turns : int

    Returns
    -------
    dict of int to dict
        {images of a rank: {"all cores" or way: [(ms, MB sent) of a step, turn by turn]}}.
    """
    ranks.run(_keep, ways_of, batches)
    found = {}
    for images, batch in batches.items():
        work = partial(rival, *batch)
        work()  # the first steps take longer
        ranks.run(_turn_of_kept, images, 2, 0)
        ms_of_both, _ = ranks.run(_turn_of_kept, images, 2, 0)[0]["both"]
        found[images] = _race(ranks, work, images, max(3, round(100 / ms_of_both)), turns)
    return found


def train_options(ranks, start, step_of, options, data, turns, warm=2):
    """Let options take turns while each trains a model of its own, and one process on all cores the same model.

    A turn is four steps of each. A step is a batch of 32 images of each rank; the process on all cores takes those of
    all ranks.

    Parameters
    ----------
    ranks : Ranks
    start : function
        start() -> model, the same weights in every process.
    step_of : function
        step_of(model, optimizer) -> step(images, labels) -> loss.
    options : dict of str to function
        {option: model -> optimizer}. In "alone" rank 0 trains by itself; its optimizer trains on all cores, too.
    data : tuple
        (images, labels) to train on, and (images, labels) held out.
    turns : int
    warm : int
        So many turns before, which do not count for the time, and do for the training.

    Returns
    -------
    dict of str to list
        {"all cores" or option: [(ms, MB sent) of a step, turn by turn]}.
    dict of str to float
        {"all cores" or option: the held-out loss at the end}.
    """
    train, held = data
    on_all_cores = start()
    rival = _on_batches(step_of(on_all_cores, options["alone"](on_all_cores)), train, 0, 1)
    ranks.run(_keep, partial(_steps_of_options, start, step_of, options, train), {None: ()})
    found = _race(ranks, rival, None, 4, warm + turns)
    losses = {"all cores": _loss(on_all_cores, held), **ranks.run(_losses_of_kept, held)[0]}
    return {way: rows[warm:] for way, rows in found.items()}, losses


def losses_after(ranks, start, step_of, options, data, steps=48):
    """Train a model with each option on the batches of `train_options`, untimed: {option: held-out loss}."""
    train, held = data

    def on_a_rank():
        for step in _steps_of_options(start, step_of, options, train).values():
            for _ in range(steps):
                step()
        return _losses_of_kept(held)

    return ranks.run(on_a_rank)[0]


def _on_batches(step, train, rank, size):
    """Return step() -> loss on the next batch, of 32 images of each rank."""
    x, y = (side[rank::size] for side in train)
    steps = len(train[0]) // 64  # of an epoch: 32 images of each of two ranks
    batches = cycle(zip(np.split(x, steps), np.split(y, steps)))
    return lambda: step(*next(batches))


def _steps_of_options(start, step_of, options, train):
    """On a rank: {option: step()}, each with a model of its own, which stays there."""
    import horovod.tensorflow as hvd

    kept.models = {option: start() for option in options}
    return {
        option: _on_batches(step_of(model, options[option](model)), train, hvd.rank(), hvd.size())
        for option, model in kept.models.items()
    }


def _losses_of_kept(held):
    """On a rank: {option: held-out loss of its model}."""
    return {option: _loss(model, held) for option, model in kept.models.items()}


def _loss(model, held):
    from lesson_parts.digits import means_and_count

    return means_and_count(model, *held)[1]


def _keep(ways_of, batches):
    """On a rank: make the steps, which stay there from one call to the next, and take this rank's part of a batch."""
    import horovod.tensorflow as hvd

    kept.ways = ways_of()
    kept.batches = {
        images: [np.split(side, hvd.size())[hvd.rank()] for side in batch] for images, batch in batches.items()
    }


def _turn_of_kept(images, n, turn):
    steps = {way: partial(step, *kept.batches[images]) for way, step in kept.ways.items()}
    return _one_turn(steps, n, turn)


def _race(ranks, rival, images, n, turns):
    """Let the rival and the ranks take turns: {"all cores" or way: [(ms, MB)]}."""

    def on_all_cores(turn):
        return {"all cores": (1e3 * timeit(rival, number=n) / n, 0)}

    def on_ranks(turn):
        return ranks.run(_turn_of_kept, images, n, turn)[0]

    found = {}
    for turn in range(turns):
        for side in rotated([on_all_cores, on_ranks], turn):
            for way, row in side(turn).items():
                found.setdefault(way, []).append(row)
    return found


def _one_turn(steps, n, turn):
    """On a rank: {way: (ms, MB) of the slower one}."""
    import horovod.tensorflow as hvd

    found = {}
    for way in rotated([*steps], turn):
        rests = way == "alone" and hvd.rank() > 0
        mine = _ms_and_mb(_nothing if rests else steps[way], n)
        found[way] = max(hvd.allgather_object(mine))
    return found


def _ms_and_mb(step, n):
    """On a rank: ms and MB sent of a step, the mean of n."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.allreduce(tf.zeros(1))  # all begin at the same time
    before = bytes_sent()
    ms = 1e3 * timeit(step, number=n) / n
    return ms, (bytes_sent() - before) / 1e6 / n


def _nothing():
    """The step of a rank that rests."""


# ---- Numbers of the turns


def times(turns):
    """Take the ms out of [(ms, MB)]: an array."""
    return np.array([ms for ms, _ in turns])


def mb_of(turns):
    """Take the median of the MB out of [(ms, MB)]."""
    return float(np.median([megabytes for _, megabytes in turns]))


def near(counted, expected):
    """Tell whether counted MB are within 5% of what is expected, or nan, as with MPI and on a Mac."""
    return bool(np.isnan(counted) or abs(counted / expected - 1) < 0.05)


def verdict(ratios):
    """Return "gains" if all turns are above 1, "loses" if none is, and else "open"."""
    above = np.array(ratios) > 1
    if above.all():
        return "gains"
    return "open" if above.any() else "loses"


def gainers(gains, rival):
    """Count and name the cases that gain over a rival, as "1 of 4 cases: cnn 256"; gains as in `draw_gains`."""
    names = [f"{model} {images}" for (model, images), of in gains.items() if verdict(of[rival]) == "gains"]
    return f"{len(names) or 'none'} of {len(gains)} cases" + (f": {', '.join(names)}" if names else "")


def table_of_steps(found):
    """Make a table of the ms of a step, median of the turns; exchange and two shares with their smallest and largest.

    Parameters
    ----------
    found : dict of (str, int) to dict
        {(model, images): {way: [(ms, MB), turn by turn]}}.
    """
    rows = []
    for (model, images), turns in found.items():
        alone, beside, both = (times(turns[way]) for way in ("alone", "beside", "both"))
        ms = [f"{np.median(each):.1f}" for each in (alone, beside, both)]
        shares = [median_and_range(alone / beside), median_and_range(beside / both)]
        rows.append([f"{model}, {images}", *ms, median_and_range(both - beside, 1), *shares])
    columns = ["ms a step", "alone", "beside", "both", "exchange", "alone / beside", "efficiency"]
    return table(columns, rows)


def table_of_options(ms, sent, losses):
    """Make a table of what options cost and change.

    Parameters
    ----------
    ms : dict of str to numpy.ndarray
        {option: ms of a step, turn by turn}, from top to bottom; among them "all cores", "alone" and "both".
    sent : dict of str to float
        {option: MB of a step}.
    losses : dict of str to float
    """
    rows = []
    for option, each in ms.items():
        on_two = option not in NO_EXCHANGE
        ratios = [2 * ms["alone"] / each, ms["all cores"] / each] if on_two else []
        gain = [f"{median_and_range(ratio)} {verdict(ratio)}" for ratio in ratios] or ["", ""]
        rows.append([option, median_and_range(each, 1), *gain, f"{sent[option]:.2f}", f"{losses[option]:.3f}"])
    columns = ["ms a step", "2 ranks / 1 rank", "2 ranks / all cores", "MB a step", "held-out loss"]
    return table(["wide, 32 images", *columns], rows)


# ---- Drawn


def draw_parts_of_steps(ax, found):
    """Draw a step of "both" as a bar of three parts: alone, what the other rank adds, and what the exchange adds.

    A part below 0 is not drawn. The title names the case whose step has the largest share of exchange.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    found : dict of (str, int) to dict
        As in `table_of_steps`; drawn are the medians of the turns.
    """
    bars, shares = {}, {}
    for (model, images), turns in found.items():
        alone, beside, both = (times(turns[way]) for way in ("alone", "beside", "both"))
        parts = np.median([alone, beside, both], axis=1)
        bars[f"{model}, {images}"] = [parts[0], *np.maximum(0, np.diff(parts))]
        shares[f"{model}, {images}"] = np.median(beside / both)
    stacked_bars(ax, bars, ["alone", "+ other rank", "+ exchange"], [SERIAL, COLORS[0], COLORS[1]])
    least = min(shares, key=shares.get)
    ax.set_title(f"{least} has the largest share of exchange\n(ms of a step of two ranks, medians)", loc="left")


def draw_gains(axes, gains):
    """Draw each turn as a dot, the median as a tick, and a line at 1.

    Right of the line two ranks do more. The rows of one model stand together. At the right stand the median, how many
    turns are above 1, and the verdict.

    Parameters
    ----------
    axes : sequence of matplotlib.axes.Axes
        One for each rival; they share y.
    gains : dict of (str, int) to dict
        {(model, images): {rival: the ratios of its turns}}, from top to bottom; each case has the same rivals.
    """
    models = list(dict.fromkeys(model for model, _ in gains))
    heights = [row + 0.7 * models.index(model) for row, (model, _) in enumerate(gains)]
    rivals = list(next(iter(gains.values())))
    for axis, rival in zip(axes, rivals):
        for height, ratios_of in zip(heights, gains.values()):
            ratios = ratios_of[rival]
            middle = np.median(ratios)
            word = verdict(ratios)
            label = f"{middle:.2f}\n{np.sum(np.array(ratios) > 1)} of {len(ratios)}\n{word}"
            color = COLOR_OF[word]
            axis.plot(ratios, [height] * len(ratios), ls="", marker="o", ms=3.5, alpha=0.5, color=color)
            axis.plot(middle, height, ls="", marker="|", ms=14, mew=3, color=color)
            place = axis.get_yaxis_transform()
            axis.text(1.03, height, label, color=color, va="center", transform=place)
        axis.axvline(1, color="k", ls="--", lw=1)
        axis.set(title=f"2 ranks / {rival}", xlabel="times as many\nexamples a second")
        axis.set_xlim(left=0)
    axes[0].set(yticks=heights, yticklabels=[f"{model}, {images}" for model, images in gains])
    axes[0].invert_yaxis()


def draw_options(ax, ms):
    """Draw how long each option takes for the images of two ranks, with a line from the shortest turn to the longest.

    A dashed line stands at what "both" has. Those that send nothing are grey; "alone" takes two steps for these images.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    ms : dict of str to numpy.ndarray
        {option: ms of a step, turn by turn}, from top to bottom.
    """
    names = {"alone": "alone, two steps"}
    for row, (option, turns) in enumerate(ms.items()):
        took = turns * (2 if option == "alone" else 1)
        color = SERIAL if option in NO_EXCHANGE else COLORS[0]
        ax.barh(row, np.median(took), 0.6, color=color, alpha=0.6)
        ax.plot([min(took), max(took)], [row, row], color="k", lw=1.5)
    ax.axvline(np.median(ms["both"]), color="k", ls="--", lw=1)
    ax.set(xlabel="ms for 64 images", yticks=range(len(ms)))
    ax.set_yticklabels([names.get(option, option) for option in ms])
    ax.invert_yaxis()
