// Record writes into each recording of tests/recorded what Go and sprig make of its templates.
//
// To record anew, in this folder: go run . ../recorded/*.json. A new case needs its template alone. What the file
// functions.json has is the names of all functions of both.
//
// The data of a recording becomes what a Go program would have: a struct, lists and maps of strings of their own types, and a
// time.Time for each field whose name ends in Time.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

type recording struct {
	Data  json.RawMessage   `json:"data"`
	Cases []json.RawMessage `json:"cases"`
}

func main() {
	for _, path := range os.Args[1:] {
		recorder := record
		if filepath.Base(path) == "functions.json" {
			recorder = recordNames
		}
		if err := recorder(path); err != nil {
			fmt.Fprintln(os.Stderr, path+":", err)
			os.Exit(1)
		}
	}
}

func record(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var recorded recording
	if err := json.Unmarshal(text, &recorded); err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("{\n  \"data\": ")
	out.Write(recorded.Data)
	out.WriteString(",\n  \"cases\": [")
	for index, raw := range recorded.Cases {
		var one struct {
			Template string `json:"template"`
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		// Anew for each: sprig's sortAlpha changes it.
		data, err := asStruct(recorded.Data)
		if err != nil {
			return err
		}
		kind, said := run(one.Template, data)
		if index > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(&out, "\n    {\"template\": %s,\n     %q: %s}", quoted(one.Template), kind, quoted(said))
	}
	out.WriteString("\n  ]\n}\n")
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// recordNames writes the names of all functions.
func recordNames(path string) error {
	// Those of text/template, which has no list of them to ask for.
	names := strings.Fields("and call html index slice js len not or print printf println urlquery eq ge gt le lt ne")
	for name := range sprig.TxtFuncMap() {
		names = append(names, name)
	}
	sort.Strings(names)
	text, err := json.MarshalIndent(slices.Compact(names), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func run(source string, data any) (string, string) {
	parsed, err := template.New("t").Funcs(sprig.TxtFuncMap()).Parse(source)
	if err != nil {
		return "parse_error", err.Error()
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		said, _, isField := strings.Cut(err.Error(), " in type struct {")
		if isField {
			said += " in type struct"
		}
		return "render_error", said
	}
	return "output", out.String()
}

// asStruct makes a struct with a field for each name.
func asStruct(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	types := make([]reflect.StructField, len(names))
	values := make([]reflect.Value, len(names))
	for index, name := range names {
		value := reflect.ValueOf(asGo(name, fields[name]))
		kind := reflect.TypeFor[any]()
		if value.IsValid() {
			kind = value.Type()
		} else {
			value = reflect.Zero(kind)
		}
		types[index] = reflect.StructField{Name: name, Type: kind}
		values[index] = value
	}
	made := reflect.New(reflect.StructOf(types)).Elem()
	for index, value := range values {
		made.Field(index).Set(value)
	}
	return made.Interface(), nil
}

func asGo(name string, value any) any {
	switch value := value.(type) {
	case string:
		if strings.HasSuffix(name, "Time") {
			for _, layout := range []string{"2006-01-02 15:04:05.999999999 -0700 MST", "2006-01-02 15:04:05.999999999 -0700"} {
				if at, err := time.Parse(layout, value); err == nil {
					return at
				}
			}
		}
		return value
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return int(whole)
		}
		fraction, _ := value.Float64()
		return fraction
	case []any:
		return asList(value)
	case map[string]any:
		return asMap(value)
	}
	return value
}

func asList(items []any) any {
	made, texts := make([]any, len(items)), make([]string, 0, len(items))
	for index, item := range items {
		made[index] = asGo("", item)
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	if len(texts) == len(items) {
		return texts
	}
	return made
}

func asMap(entries map[string]any) any {
	made, texts := make(map[string]any, len(entries)), make(map[string]string, len(entries))
	for key, value := range entries {
		made[key] = asGo("", value)
		if text, ok := value.(string); ok {
			texts[key] = text
		}
	}
	if len(texts) == len(entries) {
		return texts
	}
	return made
}

// quoted is JSON without what HTML would need.
func quoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
