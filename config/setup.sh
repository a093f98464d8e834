#!/bin/sh
# Creates the virtual environment $1 and installs this checkout into it, with the extras $2. Errors are one line.
set -u
venv=$1
extras=$2
log=$venv.log

fail() {
    echo "setup: $1" >&2
    exit 1
}

[ "$(uname -s)" = Linux ] || fail "this needs Linux; elsewhere, use a container: docker compose up"

python=
for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "this needs Python 3.11 or later; install it, or set its path: make PYTHON=/path/to/python3"

"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python lacks its venv module: install it (Debian, Ubuntu: apt-get install python3-venv)"

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    echo "setup: creating $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv" >"$log" 2>&1 || fail "cannot create $venv: see $log"
fi

echo "setup: installing $extras (the first time takes about half a minute; on a slow network or a busy machine, longer)"
# Does not compile: most modules are never imported, and the others are compiled on first import.
install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-compile --constraint constraints.txt "$@"
}
# The generator of the documentation has 17,000 files, as long as all others together: it is installed beside them.
build_docs() {
    rm -rf "$venv/docs"
    install --target "$venv/docs" zensical && "$venv/bin/python" -m config.build_docs
}
build_docs >"$log.docs" 2>&1 &
if ! { install editables hatchling && install --no-build-isolation --editable ".[$extras]"; } >"$log" 2>&1; then
    grep -qE 'Temporary failure|NewConnectionError|Name or service|timed out|ProxyError' "$log" &&
        fail "the package index is unreachable; connect, or set PIP_INDEX_URL to a mirror; see $log"
    fail "installation failed: $(grep -m 1 '^ERROR' "$log" || echo "see $log") (whole log: $log)"
fi
rm -f "$log"
if wait $!; then rm -f "$log.docs"; else echo "setup: the documentation could not be built; see $log.docs. To try again: rm -f $venv/.runnable $venv/.installed; make setup"; fi
[ -s service/operators/page/uplot/uPlot.iife.min.js ] ||
    echo "setup: npm is not installed, or cannot reach its registry: no charts, API reference and diagrams, only tables and text"
touch "$venv/.runnable"
case $extras in *dev*) touch "$venv/.installed" ;; esac
