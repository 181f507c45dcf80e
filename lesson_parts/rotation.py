"""Ways of doing something take turns, each turn from another one on, so that what else a machine does meets all alike.

Free of other modules: ranks import it, too.
"""


def rotated(ways, turn):
    """Return the ways, a list or a tuple, in the order of this turn: the first one comes last in the next."""
    first = turn % len(ways)
    return ways[first:] + ways[:first]


def take_turns(ways, turns=5):
    """Call all functions of {name: function} in turns, each turn from another one on: {name: list of results}."""
    found = {name: [] for name in ways}
    for turn in range(turns):
        for name in rotated([*ways], turn):
            found[name].append(ways[name]())
    return found
