//go:build tools

// Package tools pins the programs that the end-to-end tests run.
package tools

import (
	_ "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
	_ "github.com/nektos/act"
	_ "github.com/rhysd/actionlint/cmd/actionlint"
)
