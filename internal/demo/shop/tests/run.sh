#!/bin/sh
# The visible tests: each line is a discount, the items (";" for a new line), and the total.
cd "$(dirname "$0")/.." || exit 1
failed=0
while IFS='|' read -r discount items want; do
	got=$(printf '%s\n' "$items" | tr ';' '\n' | bin/total -d "$discount")
	if [ "$got" = "$want" ]; then
		echo "ok   $items at $discount% is $got"
	else
		echo "FAIL $items at $discount% is $got, want $want"
		failed=1
	fi
done <<CASES
0|pen,2,1.50|3.00
10|book,1,10.00|9.00
0|pen,2,1.50;book,1,10.00|13.00
25|lamp,1,40.00;bulb,4,2.50|37.50
CASES
exit $failed
