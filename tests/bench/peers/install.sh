#!/bin/sh
# Installs what the benchmark compares with: Debian's packages where that is possible, Python's into the folder $1.
set -u
venv=$1
here=$(dirname "$0")
packages="wrk util-linux nginx libnginx-mod-http-lua libnginx-mod-http-ndk lua-resty-core varnish"

if command -v wrk >/dev/null && command -v varnishd >/dev/null && [ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ]; then
    echo "bench-peers: wrk, nginx with Lua and Varnish are there"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "bench-peers: installing $packages"
    # shellcheck disable=SC2086 - a list
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages \
        >/dev/null || echo "bench-peers: apt-get failed; the run will name what is missing" >&2
else
    echo "bench-peers: not root, or no apt-get: install yourself: $packages" >&2
fi

echo "bench-peers: installing the Python peers into $venv"
python=$(command -v python3)
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv" || exit 1
"$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r "$here/requirements.txt" || exit 1
touch "$venv/.installed"
