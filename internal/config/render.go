package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// render writes a value as the YAML that would load as it.
func render(field any) string {
	switch v := field.(type) {
	case *string:
		return yamlText(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *int64:
		return strconv.FormatInt(*v, 10)
	case *time.Duration:
		return durationText(*v)
	case *money.USD:
		return v.Decimal()
	case *[]string:
		return yamlList(*v, yamlText)
	case *[]int64:
		return yamlList(*v, func(n int64) string { return strconv.FormatInt(n, 10) })
	case *Command:
		return yamlCommand(*v)
	case *[]Command:
		return yamlList(*v, yamlCommand)
	case *[]Probe:
		return yamlList(*v, yamlProbe)
	case *[]Price:
		parts := make([]string, len(*v))
		for i, p := range *v {
			parts[i] = fmt.Sprintf("%s: {input: %s, output: %s, cache_read: %s, cache_write: %s}",
				yamlText(p.Model), p.Input.Decimal(), p.Output.Decimal(), p.CacheRead.Decimal(), p.CacheWrite.Decimal())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	panic(fmt.Sprintf("config: no way to write a %T", field))
}

func yamlCommand(c Command) string {
	if c.Line == "" && len(c.Argv) > 0 {
		return yamlList(c.Argv, yamlText)
	}
	return yamlText(c.Line)
}

func yamlList[T any](list []T, one func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = one(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// bareText is what needs no quotes in flow style, in any reader of YAML.
var bareText = pattern.Of(`^[A-Za-z/.][A-Za-z0-9 _./-]*$`)

var reserved = pattern.Of(`(?i)^(true|false|yes|no|on|off|y|n|null|\.nan|\.inf)$|^[.0-9]+$| $`)

func yamlText(s string) string {
	if bareText.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// durationText is the shortest way to write a duration: "45m", "1h30m".
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
