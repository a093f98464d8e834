#!/bin/sh
# Unpacks packages of Debian 13 into the folder $1, without installing them: debian13.sh FOLDER PACKAGE...
set -eu
folder=$1
shift
mkdir -p "$folder" && folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
chmod 755 "$work"
# from where this system gets its own
site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site trixie main" >"$work/list"
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$work/list" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" "$@"
}
cd "$work"
apt update
apt download "$@"
for package in ./*.deb; do
    dpkg -x "$package" "$folder"
done
