#!/bin/sh
# Held out: both parts round alike.
cd "$(dirname "$0")/.." || exit 1
web=$(cd web && node --input-type=module -e "import { total } from './src/total.js'; console.log(total(1, 5, 10))")
mkdir -p service/held-out-check
printf 'package main\n\nimport "example.com/shop/service"\n\nfunc main() { println(shop.Total(1, 5, 10)) }\n' >service/held-out-check/main.go
service=$(cd service && go run ./held-out-check 2>&1)
rm -r service/held-out-check
[ "$web" = 5 ] && [ "$service" = 5 ] || { echo "web $web, service $service, want 5"; exit 1; }
