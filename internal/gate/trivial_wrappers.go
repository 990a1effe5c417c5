package gate

import "strings"

// unwrap takes a program that runs another one off its front. ok is false when name is no such program.
func unwrap(name string, ws []word) (rest []word, ok bool) {
	switch name {
	case "nohup", "setsid", "exec", "builtin", "busybox", "toybox", "caffeinate", "unbuffer", "catchsegv", "dbus-run-session", "winpty":
		return skipOptions(ws, "a"), true
	case "command":
		if len(ws) > 0 && (ws[0].text == "-v" || ws[0].text == "-V") {
			return nil, false
		}
		return skipOptions(ws, ""), true
	case "time":
		return skipOptions(ws, "fo"), true
	case "nice", "ionice", "chrt":
		return skipOptions(ws, "ncp"), true
	case "stdbuf":
		return skipOptions(ws, "ioe"), true
	case "sudo", "doas":
		return skipAssigns(skipOptions(ws, "ugpCDhRTU")), true
	case "setpriv", "unshare", "firejail", "strace", "ltrace", "valgrind":
		return skipOptions(ws, "oepsSu"), true
	case "timeout", "gtimeout":
		return after(skipOptions(ws, "ks"), 1), true
	case "taskset", "flock", "chroot":
		return after(skipOptions(ws, "wE"), 1), true
	case "env", "genv":
		return unwrapEnv(ws), true
	case "xvfb-run":
		return skipOptions(ws, "efnspw"), true
	case "xargs", "parallel":
		rest = skipOptions(ws, "aEIiLlnPsdj")
		if len(rest) == 0 {
			rest = []word{{text: "echo", known: true}} // what xargs runs by itself
		}
		return rest, true
	case "npx", "bunx", "pnpx", "uvx", "pipx":
		return afterVerb(name, skipOptions(ws, "pc")), true
	case "npm", "pnpm", "yarn", "bun":
		if len(ws) > 0 && (ws[0].text == "exec" || ws[0].text == "x" || ws[0].text == "dlx") {
			return skipOptions(ws[1:], ""), true
		}
	case "poetry", "uv", "pipenv", "hatch", "pdm", "rye", "conda", "mamba":
		if len(ws) > 0 && ws[0].text == "run" {
			return skipOptions(ws[1:], "npe"), true
		}
	case "bundle":
		if len(ws) > 0 && ws[0].text == "exec" {
			return ws[1:], true
		}
	case "direnv", "dotenv", "doppler", "op", "mise", "asdf", "nix", "devbox":
		for i, w := range ws {
			if w.text == "--" || w.text == "--command" || w.text == "-c" {
				return ws[i+1:], true
			}
		}
	}
	return nil, false
}

// skipOptions drops leading options; letters in withValue take the next argument when they stand alone.
func skipOptions(ws []word, withValue string) []word {
	for len(ws) > 0 && ws[0].known && len(ws[0].text) > 1 && ws[0].text[0] == '-' {
		text := ws[0].text
		ws = ws[1:]
		if text == "--" {
			return ws
		}
		if len(text) == 2 && strings.IndexByte(withValue, text[1]) >= 0 {
			ws = after(ws, 1)
		}
	}
	return ws
}

func after(ws []word, n int) []word {
	if len(ws) < n {
		return nil
	}
	return ws[n:]
}

func skipAssigns(ws []word) []word {
	for len(ws) > 0 && ws[0].known && isAssign(ws[0].text) {
		ws = ws[1:]
	}
	return ws
}

func isAssign(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/- ")
}

func unwrapEnv(ws []word) []word {
	for len(ws) > 0 && ws[0].known {
		text := ws[0].text
		switch {
		case text == "-S" || text == "--split-string":
			if len(ws) < 2 || !ws[1].known {
				return ws[1:]
			}
			return append(words(strings.Fields(ws[1].text)), ws[2:]...)
		case strings.HasPrefix(text, "-S"):
			return append(words(strings.Fields(text[2:])), ws[1:]...)
		case text == "-u" || text == "-C" || text == "--unset" || text == "--chdir":
			ws = after(ws, 2)
		case strings.HasPrefix(text, "-"), isAssign(text):
			ws = ws[1:]
		default:
			return ws
		}
	}
	if len(ws) == 0 {
		return []word{{text: "printenv", known: true}} // what env does by itself
	}
	return ws
}

// afterVerb drops the verb of runners that have one (pipx run).
func afterVerb(name string, ws []word) []word {
	if name == "pipx" && len(ws) > 0 && ws[0].text == "run" {
		return skipOptions(ws[1:], "")
	}
	return ws
}
