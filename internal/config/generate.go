package config

//go:generate go test -run TestDocsAreGenerated -update .
