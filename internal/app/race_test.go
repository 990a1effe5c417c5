//go:build race

package app

func init() { firstRows = 1 }
