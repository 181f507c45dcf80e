"""What a rank reports while it trains, and the line that shows it in the kernel."""

import time
import uuid

from ipyparallel.datapub import publish_data
from IPython import get_ipython
from IPython.display import display
from tqdm.std import tqdm


def report(step, steps, loss, pairs_per_s):
    """What the live line shows: called on a rank, in a `%%px` cell or inside `ranks.run(fn, progress=True)`.

    Parameters
    ----------
    step, steps : int
        Steps done, and in all.
    loss : float
        Of the last step or steps.
    pairs_per_s : float
        Of this rank.
    """
    publish_data({"step": step, "steps": steps, "loss": float(loss), "pairs_per_s": float(pairs_per_s)})


class LiveLine:
    """One line with what rank 0 last reported, in a notebook or a terminal; nothing before its first report.

    Parameters
    ----------
    wanted : bool
        Whether to show anything.
    """

    def __init__(self, wanted):
        self._wanted = wanted
        self._shown = None
        self._id = uuid.uuid4().hex

    def show(self, report):
        """Show a report: a dict with what `report` was given, or with a text "said" in place of loss and pairs/s."""
        if not self._wanted or not report or report == self._shown:
            return
        before = self._shown
        self._shown = dict(report)
        if not before or report["step"] < before["step"]:  # a new training, or one that goes back
            self._first = report["step"]
            self._since = time.monotonic()
        said = report.get("said") or f"rank 0: loss {report['loss']:.3f}, {report['pairs_per_s']:,.0f} pairs/s"
        what = {"initial": self._first, "ncols": 80, "unit": "step", "postfix": said}
        if report["steps"]:  # with the steps per second, which tqdm adds, six digits of pairs/s do not fit
            what["bar_format"] = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
        line = tqdm.format_meter(report["step"], report["steps"], time.monotonic() - self._since, **what)
        if get_ipython() is None:
            print(f"\r{line}", end="", flush=True)
        else:
            display({"text/plain": line}, raw=True, display_id=self._id, update=before is not None)

    def close(self):
        """End the line."""
        if self._shown and get_ipython() is None:
            print()
