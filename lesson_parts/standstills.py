"""For lesson 22: where the time goes while ranks are lost and come, from what their processes reported."""

import numpy as np


def usual(period):
    """Seconds of a step, the median of the reports of a period."""
    return np.median([report["seconds"] for report in period])


def standstill(reports, end, period):
    """When training ended, a process started, all had met, and training went on.

    Parameters
    ----------
    reports : list of dict
        All reports of a job, of ranks and of the driver.
    end : float
        When training ended, as `time.time()` says it.
    period : list of dict
        The reports of the ranks after that, in the order of time.

    Returns
    -------
    list of float
        Four moments. The second is the first if no process was started.
    """
    first = period[0]["time"]
    met = max(r["time"] for r in reports if "start" in r and end < r["time"] < first)
    started = [r["time"] for r in reports if "pid" in r and "exit" not in r and end < r["time"] < met]
    trains = max(met, first - 20 * usual(period))
    return [end, max(started, default=end), met, trains]


def undone(report, restored):
    """Whether a `restore` after this report has undone its steps."""
    return any(report["time"] < back["time"] and report["step"] > back["restored"] for back in restored)
