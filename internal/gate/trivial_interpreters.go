package gate

import (
	"slices"
	"strings"
)

func interpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	return slices.Contains([]string{"python", "pypy", "node", "nodejs", "ruby", "perl", "php", "deno", "bun"}, name)
}

// judgeInterpreter judges code on the command line, and modules that are programs of their own.
func judgeInterpreter(name string, args []string) (verdict, bool) {
	for i, a := range args {
		switch a {
		case "-c", "-e", "-r", "--eval", "-p", "--print":
			if i+1 < len(args) && doesNothing(args[i+1]) {
				return always("`%s %s` runs code that does nothing", name, a), true
			}
			return verdict{}, true
		case "-m":
			if strings.HasPrefix(name, "py") && i+1 < len(args) {
				return judgeArgv(words(args[i+1:])), true
			}
		case "-V", "--version", "-v":
			if len(args) == 1 {
				return always("`%s %s` only says what the program is", name, a), true
			}
		}
		if !strings.HasPrefix(a, "-") {
			return verdict{}, false
		}
	}
	if len(args) == 0 {
		return always("`%s` reads its program from an input that is empty", name), true
	}
	return verdict{}, false
}

func doesNothing(code string) bool {
	if code == unknown {
		return false
	}
	for _, part := range strings.FieldsFunc(code, func(r rune) bool { return r == ';' || r == '\n' }) {
		part = strings.TrimSpace(part)
		switch strings.ReplaceAll(part, " ", "") {
		case "", "pass", "0", "1", "true", "True", "None", "exit", "exit0", "exit(0)", "exit()", "quit()", "sys.exit(0)", "sys.exit()", "process.exit(0)", "process.exit()", "importsys", "...":
			continue
		}
		if !printsConstant(part) {
			return false
		}
	}
	return true
}

// printsConstant knows print("ok") and its kin.
func printsConstant(code string) bool {
	rest, ok := code, false
	for _, p := range []string{"print", "console.log", "puts", "echo", "say"} {
		if rest, ok = strings.CutPrefix(code, p); ok {
			break
		}
	}
	rest = strings.Trim(rest, " ()")
	return ok && len(rest) >= 2 && (rest[0] == '"' || rest[0] == '\'') && strings.IndexByte(rest[1:], rest[0]) == len(rest)-2
}
