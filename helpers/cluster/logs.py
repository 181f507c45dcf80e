"""The logs of other processes."""

from pathlib import Path


def tail(log, lines=10):
    """The last lines of a log.

    Parameters
    ----------
    log : str or Path
        The log file.
    lines : int
        How many lines, at most.

    Returns
    -------
    str
        The lines, or a remark where there is no such file on this host.
    """
    path = Path(log)
    if not path.is_file():
        return "(its log cannot be read from here)"
    return last_lines(path.read_text(errors="replace"), lines)


def last_lines(text, lines=10):
    """The last lines of a text."""
    return "\n".join(text.splitlines()[-lines:])
