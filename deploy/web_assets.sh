#!/usr/bin/env bash
# Fetches the style sheet and the script of the web pages from npm, with their licences, into cdb_web/static/cdb_web/vendor.
# The files are part of the repository; run this only to change a version.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$PWD/cdb_web/static/cdb_web/vendor
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT

fetch() {
    local package=$1 version=$2 file=$3 name=$4 licence=$5
    (cd "$directory" && npm pack --silent "$package@$version" >archive && mkdir -p "$name" && tar -xzf "$(cat archive)" -C "$name")
    cp "$directory/$name/package/$file" "$target/"
    cp "$directory/$name/package/$licence" "$target/$name-$version.LICENSE.txt"
}

mkdir -p "$target"
rm -f "$target"/*
fetch @picocss/pico 2.1.1 css/pico.min.css pico LICENSE.md
fetch htmx.org 2.0.11 dist/htmx.min.js htmx LICENSE
