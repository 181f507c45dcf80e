"""What lesson 23 needs around its lines: hosts or why there are none, lines typed on host0, what their ranks wrote."""

import json
import os
import re
import shlex
import sys
import time

from laptop_cluster import HostsUnavailable

AS_DEBIAN = r"""
name=$(hostname)
sed "s/^.* $name\$/127.0.1.1 $name/" /etc/hosts > "names.$name"
mount --bind "names.$name" /etc/hosts
exec "$@"
"""
EXTRAS = ["matplotlib", "sklearn"]  # Keras imports both if it finds them: a second for each process


def or_why_not(make):
    """Make something of the hosts.

    Parameters
    ----------
    make : callable

    Returns
    -------
    object or None
        What make() returns; None where it cannot be had.
    str
        "", or why it cannot be had here.
    """
    try:
        return make(), ""
    except HostsUnavailable as error:
        return None, str(error)


def show(said):
    """Print the lines with ranks, sorted, since they come in any order; return them."""
    lines = sorted(re.findall(r".*[A-Z]=\d.*", said))
    print(*lines, sep="\n")
    return lines


def typing_on(machines, folder, programs, needs=""):
    """Return a function that types a line on host0.

    In the line, `python` and the names of `programs` stand for their full paths. `as-debian` runs the rest of the line
    where the host's own name has the address 127.0.1.1 (in a mount namespace, unseen by others). Python finds the
    `programs` there, and neither matplotlib nor scikit-learn.

    Parameters
    ----------
    machines : laptop_cluster.Hosts or None
    folder : pathlib.Path
        Where the lines run.
    programs : pathlib.Path
        The folder of the scripts.
    needs : str
        Why there are no hosts; every line then prints it.

    Returns
    -------
    callable
        `typed(line, missing="", env=None, fails=False, host=0)`: what the line says, or "" where it cannot run; it
        prints `missing` in that case. `fails` asserts that the line ends with an error. `host`: where it is typed.
    """
    (folder / "as_debian.sh").write_text(AS_DEBIAN)
    lean = folder / "lean"
    lean.mkdir(exist_ok=True)
    for name in EXTRAS:
        (lean / f"{name}.py").write_text("raise ModuleNotFoundError(__name__)\n")
    found_in = {"PYTHONPATH": os.pathsep.join([str(lean), str(programs)])}
    rights = "-m" if os.geteuid() == 0 else "-rm"
    stands_for = {file.name: [str(file)] for file in programs.iterdir()}
    stands_for["python"] = [sys.executable]
    stands_for["as-debian"] = ["unshare", rights, "sh", str(folder / "as_debian.sh")]

    def typed(line, missing="", env=None, fails=False, host=0):
        if needs or missing:
            print(needs or missing)
            return ""
        words = [word for written in shlex.split(line) for word in stands_for.get(written, [written])]
        done = machines.run(host, words, env={**found_in, **(env or {})}, cwd=folder, timeout=250)
        assert (done.returncode != 0) == fails, done.stdout[-2000:]
        return done.stdout

    return typed


def launching_with(typed, folder):
    """Return a function that types a line which ends in train.py.

    Parameters
    ----------
    typed : callable
        Of `typing_on`.
    folder : pathlib.Path
        For the file that rank 0 writes.

    Returns
    -------
    callable
        `launch(line, missing="", env=None)`: what train() returned on each rank, a list of dict, or None where the line
        cannot run. It prints the seconds from the line to its end.
    """

    def launch(line, missing="", env=None):
        result = folder / "ranks.json"
        result.unlink(missing_ok=True)
        begin = time.monotonic()
        if not typed(f"{line} --json '{result}'", missing, env):
            return None
        print(f"{time.monotonic() - begin:.0f} s from the line to its end")
        return json.loads(result.read_text())

    return launch


def losses_of_two_hosts(ranks):
    """Assert that these are ranks 0 and 1, each alone on its host; return their losses.

    Parameters
    ----------
    ranks : list of dict
        What examples/train.py returned on each rank.

    Returns
    -------
    list of float
    """
    assert [rank["rank"] for rank in ranks] == [rank["cross"] for rank in ranks] == [0, 1]
    assert {(rank["size"], rank["local"]) for rank in ranks} == {(2, 0)}
    assert len({rank["host"] for rank in ranks}) == 2
    return ranks[0]["losses"]


def missing_in(hosts, guess):
    """Say what an answer still lacks before horovodrun can start its four ranks.

    Parameters
    ----------
    hosts : str
        For -H.
    guess : list
        Where the ranks will be.

    Returns
    -------
    str
        "" if nothing is missing.
    """
    if not (hosts and guess):
        return "not yet: fill in HOSTS and GUESS"
    if not re.fullmatch(r"host[01]:\d+(,host[01]:\d+)*", hosts):
        return "not yet: HOSTS looks like host0:2,host1:2, without spaces"
    slots = sum(int(slots) for slots in re.findall(r":(\d+)", hosts))
    return "" if slots == 4 else f"not yet: HOSTS has {slots} slots, and four ranks need four"


def compare(lines, guess, hosts):
    """Print what four ranks said beside a reader's guess, and whether hosts and guess are right.

    Parameters
    ----------
    lines : list of str
        The lines of `show`, in the order of the ranks.
    guess : list of (str, int, int)
        Host, local rank and cross rank of each.
    hosts : list of str
        The host that each rank should be on.

    Returns
    -------
    bool
        Whether all is right; False without lines.
    """
    pattern = r":(\w+): HOROVOD_CROSS_RANK=(\d) HOROVOD_LOCAL_RANK=(\d)"
    found = [(host, int(local), int(cross)) for line in lines for host, cross, local in re.findall(pattern, line)]
    if not found:
        return False
    wrong = [rank for rank, host in enumerate(hosts) if found[rank][0] != host]
    other = [rank for rank, place in enumerate(found) if rank >= len(guess) or tuple(guess[rank]) != place]
    if wrong:
        print(f"not yet: rank {wrong[0]} is on {found[wrong[0]][0]}, and should be on {hosts[wrong[0]]}")
    elif other:
        print(f"not yet: your guess for rank {other[0]} is not what it says")
    else:
        print("correct")
    return not wrong and not other
