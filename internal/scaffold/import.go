package scaffold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/proctor-ci/proctor/internal/config"
)

// Imported is what was taken over from another tool's file.
type Imported struct {
	File     string
	Settings []Setting
	Left     []string // what was not taken over, one line each with why
}

// maxImport is far above any file of these tools.
const maxImport = 256 << 10

// Import reads loopkit.toml and autoloop.toml at the root of the repository. Only what means the same here is taken
// over; everything else is listed. A file that is not there is no error.
func Import(fsys fs.FS) ([]Imported, error) {
	var all []Imported
	for _, f := range []struct {
		name string
		keys map[string]rule
	}{{"loopkit.toml", loopkitKeys()}, {"autoloop.toml", autoloopKeys()}} {
		data, err := fs.ReadFile(fsys, f.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.name, err)
		}
		got, err := importFile(f.name, data, f.keys)
		if err != nil {
			return nil, err
		}
		all = append(all, got)
	}
	return all, nil
}

// rule says what becomes of one key: the settings it stands for, and why it or a part of it is left.
type rule func(value any) (settings []Setting, left string)

func importFile(name string, data []byte, keys map[string]rule) (Imported, error) {
	got := Imported{File: name}
	if len(data) > maxImport {
		return got, fmt.Errorf("%s has %d bytes, which no file of that tool has. Next: move it away and run proctor init again", name, len(data))
	}
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		where := ""
		if d := (*toml.DecodeError)(nil); errors.As(err, &d) {
			line, column := d.Position()
			where = fmt.Sprintf(":%d:%d", line, column)
		}
		return got, fmt.Errorf("%s%s: %w. Next: repair it, or move it away and run proctor init again", name, where, err)
	}
	flat := map[string]any{}
	flatten("", doc, flat)
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		r, known := keys[key]
		if !known {
			got.leave(key, "is not known here")
			continue
		}
		settings, left := r(flat[key])
		if left != "" {
			got.leave(key, left)
		}
		if len(settings) > 0 {
			got.take(key, settings)
		}
	}
	return got, nil
}

func (i *Imported) leave(key, why string) {
	i.Left = append(i.Left, fmt.Sprintf("%s: %s %s", i.File, key, why))
}

// take keeps settings that the strict loader takes too.
func (i *Imported) take(key string, settings []Setting) {
	for n := range settings {
		settings[n].From = i.File + ": " + key
	}
	if _, err := config.Load(i.File, Starter(settings, nil)); err != nil {
		why := err.Error()
		if all := config.All(err); len(all) > 0 {
			why = all[0].Msg
		}
		i.leave(key, "has a value that does not fit here: "+why)
		return
	}
	i.Settings = Merge(i.Settings, settings)
}

// flatten gives tables' keys their dotted paths.
func flatten(prefix string, table map[string]any, into map[string]any) {
	for k, v := range table {
		if sub, ok := v.(map[string]any); ok {
			flatten(prefix+k+".", sub, into)
			continue
		}
		into[prefix+k] = v
	}
}

// as takes a value over unchanged, where it has the type that the key wants.
func as[T any](key string) rule {
	return func(v any) ([]Setting, string) {
		got, ok := v.(T)
		if !ok {
			return nil, fmt.Sprintf("has a value of another kind than that tool takes (%T)", v)
		}
		return []Setting{{Key: key, Value: yamlValue(got)}}, ""
	}
}

// texts takes a list of texts over.
func texts(key string, each func(string) ([]string, string)) rule {
	return func(v any) ([]Setting, string) {
		list, ok := v.([]any)
		if !ok {
			return nil, "is no list"
		}
		out, not := []string{}, []string{}
		for _, e := range list {
			s, ok := e.(string)
			if !ok {
				return nil, "holds something that is no text"
			}
			more, left := each(s)
			if out = append(out, more...); left != "" {
				not = append(not, left)
			}
		}
		if len(out) == 0 {
			return nil, strings.Join(not, "; ")
		}
		return []Setting{{Key: key, Value: yamlValue(out)}}, strings.Join(not, "; ")
	}
}

// seconds takes a whole number of seconds over as a duration.
func seconds(key string) rule {
	return func(v any) ([]Setting, string) {
		n, ok := v.(int64)
		if !ok || n <= 0 || n > 7*24*3600 {
			return nil, "is no number of seconds"
		}
		return []Setting{{Key: key, Value: (time.Duration(n) * time.Second).String()}}, ""
	}
}

// leave is a key without a counterpart.
func leave(why string) rule { return func(any) ([]Setting, string) { return nil, why } }

func yamlValue(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // texts, numbers and lists of them
	}
	return strings.TrimSpace(b.String())
}
