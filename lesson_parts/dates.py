"""The dates of lesson 29, as people write them."""

from datetime import date, timedelta
from textwrap import fill

import numpy as np

FORMS = (
    "{d} / {m} / {y}",
    "{d} {month} {y}",
    "{month} {d} , {y}",
    "{weekday} , {d} {month} {y}",
    "on {weekday} , which was day {d} of the month of {month} , in the year of our lord {y}",
    "we met in this house on {weekday} , the day with the number {d} of the month that is called {month} , when it was "
    "the year {y} of our lord",
)
CHARS = "0123456789-"  # what the decoder writes
START = len(CHARS)  # what it reads first
DAYS = [date(1801, 1, 1) + timedelta(n) for n in range(72_000)]


def written(day, form):
    """Write a day in one of the six ways.

    Parameters
    ----------
    day : datetime.date
    form : int
        0 to 5: the first four are short, at most 10 tokens, the last two are long.

    Returns
    -------
    list of str
        Its tokens: words, digits and signs.
    """
    d, m, y = (" ".join(str(number)) for number in (day.day, day.month, day.year))
    month, weekday = f"{day:%B}".lower(), f"{day:%A}".lower()
    return FORMS[form].format(d=d, m=m, y=y, month=month, weekday=weekday).split()


WORDS = sorted({word for day in DAYS[::41] for form in range(len(FORMS)) for word in written(day, form)})


def examples(days, seed):
    """Make what the model learns from: some days, each in a form that is drawn, as numbers.

    Parameters
    ----------
    days : sequence of int
        Places in DAYS.
    seed : int
        Of the forms.

    Returns
    -------
    x : array of int32, [n, 36]
        Tokens: their places in WORDS, counted from 1; 0 behind the end.
    y : array of int32, [n, 10]
        The places of the answer's characters in CHARS.
    """
    rng = np.random.default_rng(seed)
    x = np.zeros([len(days), 36], np.int32)
    for row, day in zip(x, days, strict=True):
        text = written(DAYS[day], rng.integers(len(FORMS)))
        row[: len(text)] = [1 + WORDS.index(word) for word in text]
    y = [[CHARS.index(c) for c in DAYS[day].isoformat()] for day in days]
    return x, np.array(y, np.int32)


def print_dates(x, y, answers):
    """Print dates in whole, what the model wrote, and the right answer where that is another one.

    Parameters
    ----------
    x, y : array of int32, [n, 36], [n, 10]
        As of `examples`.
    answers : array of int32, [n, 10]
        What the model wrote, as y.
    """
    for tokens, right, answer in zip(x, y, answers, strict=True):
        read = " ".join(WORDS[token - 1] for token in tokens if token)
        wrote, true = ("".join(CHARS[c] for c in text) for text in (answer, right))
        end = "" if wrote == true else f", right is {true}"
        print(fill(f"{read} => {wrote}{end}", 78, subsequent_indent="    ", break_on_hyphens=False))
