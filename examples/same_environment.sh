# Equal environments on all hosts without containers: sh same_environment.sh HOST...
# Build Horovod once, on one host of the oldest kind, into a folder that all hosts see (wheels/); install from there:
#
#   pip wheel --no-build-isolation --no-deps -w wheels horovod==0.28.1      # once, beside TensorFlow, as make setup does
#   for host in HOSTS; do ssh $host "python3 -m venv ~/w2v && ~/w2v/bin/pip install -r requirements.txt wheels/*"; done
#
# This script then compares what is installed: the Python, each package with its version, the kind of processor.
# PYTHON: the interpreter, under the same path on all hosts.
PYTHON=${PYTHON:-python3}
ask="import hashlib, importlib.metadata as m, platform
have = sorted({(d.metadata['Name'].lower(), d.version) for d in m.distributions()})
print(platform.python_version(), platform.machine(), len(have), hashlib.sha256(repr(have).encode()).hexdigest()[:12])"
for host in "$@"; do
    echo "$(ssh "$host" "$PYTHON" -c "\"$ask\"") $host"
done | sort | awk '
    { print; seen[$1 " " $2 " " $4] = 1 }
    END { n = 0; for (e in seen) n++; print n == 1 ? "equal environments" : n " different environments"; exit n != 1 }'
