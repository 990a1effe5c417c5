package config

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/proctor-ci/proctor/internal/money"
)

// SchemaID is where the JSON Schema is published; editors are pointed there by a first line
// "# yaml-language-server: $schema=…".
const SchemaID = "https://raw.githubusercontent.com/proctor-ci/proctor/main/docs/proctor.schema.json"

type object = map[string]any

const durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`

// Schema is the JSON Schema (2020-12) of the file, made from the same table that loads it. It knows
// each key's type, range and words; rules between keys are Load's alone.
func Schema() []byte {
	t := schema()
	root := t.jsonSection(section{})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "Proctor configuration"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic("config: schema: " + err.Error()) // maps of texts and numbers
	}
	return b.Bytes()
}

func (t table) jsonSection(s section) object {
	properties := object{}
	for _, name := range t.children(s.path) {
		path := join(s.path, name)
		if k, ok := t.key(path); ok {
			properties[name] = k.json()
			continue
		}
		sub, _ := t.section(path)
		properties[name] = t.jsonSection(sub)
	}
	o := object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if s.doc != "" {
		o["description"] = s.doc
	}
	if s.short == "" {
		return o
	}
	short, _ := t.key(join(s.path, s.short))
	return object{"description": s.doc, "anyOf": []object{o, short.json()}}
}

func (k key) json() object {
	o := k.jsonType()
	o["description"] = k.doc
	c := Default()
	if d := k.jsonDefault(&c); d != nil {
		o["default"] = d
	}
	return o
}

func (k key) jsonType() object {
	word := object{"type": "string"}
	if k.allowed != nil {
		word["enum"] = k.allowed
	}
	argv := object{"type": "array", "items": object{"type": "string"}, "minItems": 1}
	command := object{"anyOf": []object{{"type": "string"}, argv}}
	whole := object{"type": "integer", "minimum": k.min}
	if k.max != 0 {
		whole["maximum"] = k.max
	}
	amount := object{"type": "number", "exclusiveMinimum": 0}
	switch k.field(new(Config)).(type) {
	case *string:
		return word
	case *bool:
		return object{"type": "boolean"}
	case *int:
		return whole
	case *int64:
		return object{"anyOf": []object{whole, {"type": "string", "pattern": sizePattern.String()}}}
	case *time.Duration:
		return object{"type": "string", "pattern": durationPattern}
	case *money.USD:
		return amount
	case *[]string:
		return object{"type": "array", "items": word}
	case *[]int64:
		return object{"type": "array", "items": whole}
	case *Command:
		return command
	case *[]Command:
		return object{"type": "array", "items": command}
	case *[]Probe:
		return object{"type": "array", "items": jsonProbe()}
	default:
		part := object{"type": "number", "minimum": 0}
		price := object{
			"type": "object", "additionalProperties": false, "required": []string{"input", "output"},
			"properties": object{"input": part, "output": part, "cache_read": part, "cache_write": part},
		}
		return object{"type": "object", "additionalProperties": price}
	}
}

func (k key) jsonDefault(c *Config) any {
	switch v := k.field(c).(type) {
	case *string:
		return *v
	case *bool:
		return *v
	case *int:
		return *v
	case *int64:
		return *v
	case *time.Duration:
		return durationText(*v)
	case *money.USD:
		return *v
	case *[]string:
		if *v == nil {
			return []string{}
		}
		return *v
	case *Command:
		return v.Line
	}
	return nil
}
