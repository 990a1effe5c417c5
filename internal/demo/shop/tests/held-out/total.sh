#!/bin/sh
# The held-out exam for bin/total. The agent never sees this file.
cd "$(dirname "$0")/../.." || exit 1
failed=0
while IFS='|' read -r discount items want; do
	got=$(printf '%s\n' "$items" | tr ';' '\n' | bin/total -d "$discount")
	if [ "$got" != "$want" ]; then
		echo "FAIL $items at $discount% is $got, want $want"
		failed=1
	fi
done <<CASES
0|pen,1,0.29|0.29
0|tape,1,4.35|4.35
10|clip,3,0.35|0.95
50|dot,1,0.01|0.01
15|desk,7,1999.99|11899.94
CASES
exit $failed
