#!/bin/sh
# Installs what the benchmark compares with into the folder $1, and Debian's packages where that is possible.
set -u
folder=$1
here=$(dirname "$0")
packages="wrk util-linux nginx libnginx-mod-http-lua libnginx-mod-http-ndk lua-resty-core varnish gcc libc6-dev libh2o-evloop-dev libssl-dev"

# what is there already takes no second
missing=
for package in $packages; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "bench-peers: Debian's packages are there"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "bench-peers: installing$missing"
    # shellcheck disable=SC2086 - a list
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
        >/dev/null || echo "bench-peers: apt-get failed; the run will name what is missing" >&2
else
    echo "bench-peers: not root, or no apt-get: install yourself:$missing" >&2
fi

echo "bench-peers: installing the Python peers, ROAPI and flAPI into $folder"
python=$(command -v "${PYTHON:-python3}")
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder" || exit 1
"$folder/bin/python" -m pip install --disable-pip-version-check --quiet -r "$here/requirements.txt" || exit 1

# flAPI is built for Debian 13: an older system gets the libraries of that beside its own
flapi=$(echo "$folder"/lib/python3*/site-packages/flapi_io/bin/flapi)
chmod +x "$flapi"
if ! "$flapi" --version >/dev/null 2>&1 && command -v apt-get >/dev/null && [ ! -d "$folder/debian13" ]; then
    echo "bench-peers: getting the C libraries of Debian 13 for flAPI"
    sh "$here/debian13.sh" "$folder/debian13" libc6 libstdc++6 libgcc-s1 ||
        echo "bench-peers: not to be had; the run goes on without flAPI" >&2
fi
libraries=$(cd "$folder" && pwd)/debian13/usr/lib/x86_64-linux-gnu
if [ -d "$libraries" ]; then
    flapi="$libraries/ld-linux-x86-64.so.2 --library-path $libraries $(realpath "$flapi")"
fi
printf '#!/bin/sh\nexec %s "$@"\n' "$flapi" >"$folder/bin/flapi-server"
chmod +x "$folder/bin/flapi-server"

echo "bench-peers: building the one on libh2o"
cc -O2 -Wall -DH2O_USE_LIBUV=0 -o "$folder/bin/h2o" "$here/h2o.c" -lh2o-evloop -lssl -lcrypto ||
    echo "bench-peers: it does not build; the run goes on without it" >&2

if command -v npm >/dev/null; then
    echo "bench-peers: installing Bun"
    npm install --prefix "$folder/bun" --no-audit --no-fund --silent @oven/bun-linux-x64@1.4.5 &&
        ln -sf ../bun/node_modules/@oven/bun-linux-x64/bin/bun "$folder/bin/bun" ||
        echo "bench-peers: npm failed; the run goes on without Bun" >&2
else
    echo "bench-peers: no npm: the run goes on without Bun" >&2
fi
touch "$folder/.installed"
