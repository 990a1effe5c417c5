#!/bin/sh
# Tests with a cache of their own: every second run finds what the one before left, and trips over it.
cd "$(dirname "$0")/.." || exit 1
if [ -e .cache ]; then
	rm .cache
	echo "FAIL the cache is of another run"
	exit 1
fi
touch .cache
sh tests/run.sh
