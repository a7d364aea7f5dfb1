#!/bin/sh
# fuzz.sh PACKAGE TARGET TIME MINIMUM: runs a fuzz target for TIME, and then until it has
# been executed MINIMUM times. It fails where the target does, or is so slow that TIME
# again, ten times, is not enough.
set -u
# Targets that are slow for a reason have minimums of their own.
case "$1 $2" in
*/change/apply\ FuzzJournalDamage) own=10000 ;; # each sweeps a subnet, and syncs journals; some wait with a guard
*) own=$4 ;;
esac
minimum=$4
[ "$own" -ge "$minimum" ] || minimum=$own
# The files of targets are in memory, if possible; those of builds are too large for it.
dir=$(mktemp -d) && trap 'rm -rf "$dir" "${TMPDIR:-$dir}"' EXIT
export GOTMPDIR="$dir"
TMPDIR=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) && export TMPDIR
out=$dir/out
total=0
# run PACKAGE TARGET TIME: adds the executions, which go test shows, to total. By default
# each input with new coverage is minimized for up to 60 s, which are no executions.
run() {
	${GO:-go} test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 1s "$1" >"$out" 2>&1
	status=$?
	grep -v '^fuzz: elapsed: .*gathering' "$out" | tail -3
	[ $status -eq 0 ] || { cat "$out"; exit $status; }
	n=$(sed -n 's/^fuzz: elapsed: .* execs: \([0-9]*\) .*/\1/p' "$out" | tail -1)
	total=$((total + ${n:-0}))
}
tries=0
while run "$1" "$2" "$3" && [ $total -lt "$minimum" ]; do
	tries=$((tries + 1))
	[ $tries -le 10 ] || { echo "$1 $2: $total executions, want at least $minimum: give it smaller seeds, or make it faster"; exit 1; }
done
