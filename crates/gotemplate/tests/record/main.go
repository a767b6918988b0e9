// Record writes the results of Go and sprig into the recordings of ../recorded.
//
// usage, in this folder: go run .
//
// A new case needs its template alone: {"template": "…"}.
// data.json becomes the data of a Go program: a struct, lists and maps of strings as []string and map[string]string, and a
// time.Time for each field with a name in …Time.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

const folder = "../recorded"

func main() {
	data := must(os.ReadFile(filepath.Join(folder, "data.json")))
	for _, path := range must(filepath.Glob(filepath.Join(folder, "*.json"))) {
		if filepath.Base(path) != "data.json" {
			write(path, cases(must(os.ReadFile(path)), data))
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// write writes a JSON list, an item a line.
func write(path string, items []string) {
	text := "[\n" + strings.Join(items, ",\n") + "\n]\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		panic(err)
	}
}

func cases(recording, data []byte) []string {
	var recorded []struct {
		Template string `json:"template"`
	}
	if err := json.Unmarshal(recording, &recorded); err != nil {
		panic(err)
	}
	lines := make([]string, len(recorded))
	for index, one := range recorded {
		// A new struct for each case, because sprig's sortAlpha changes its argument.
		kind, result := run(one.Template, asStruct(data))
		lines[index] = fmt.Sprintf(`{"template": %s, %q: %s}`, quoted(one.Template), kind, quoted(result))
	}
	return lines
}

func run(source string, data any) (string, string) {
	parsed, err := template.New("t").Funcs(sprig.TxtFuncMap()).Parse(source)
	if err != nil {
		return "parse_error", err.Error()
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		message, _, isField := strings.Cut(err.Error(), " in type struct {")
		if isField {
			message += " in type struct"
		}
		return "render_error", message
	}
	return "output", out.String()
}

// asStruct returns a struct with a field for each name.
func asStruct(data []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		panic(err)
	}
	var types []reflect.StructField
	for name, value := range fields {
		fields[name] = asGo(name, value)
		kind := reflect.TypeFor[any]()
		if value != nil {
			kind = reflect.TypeOf(fields[name])
		}
		types = append(types, reflect.StructField{Name: name, Type: kind})
	}
	sort.Slice(types, func(a, b int) bool { return types[a].Name < types[b].Name })
	made := reflect.New(reflect.StructOf(types)).Elem()
	for index, field := range types {
		if value := fields[field.Name]; value != nil {
			made.Field(index).Set(reflect.ValueOf(value))
		}
	}
	return made.Interface()
}

func asGo(name string, value any) any {
	switch value := value.(type) {
	case string:
		for _, layout := range []string{"2006-01-02 15:04:05.999999999 -0700 MST", "2006-01-02 15:04:05.999999999 -0700"} {
			if at, err := time.Parse(layout, value); err == nil && strings.HasSuffix(name, "Time") {
				return at
			}
		}
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return int(whole)
		}
		return must(value.Float64())
	case []any:
		texts := make([]string, 0, len(value))
		for index, item := range value {
			value[index] = asGo("", item)
			if text, ok := item.(string); ok {
				texts = append(texts, text)
			}
		}
		if len(texts) == len(value) {
			return texts
		}
	case map[string]any:
		texts := make(map[string]string, len(value))
		for key, item := range value {
			value[key] = asGo("", item)
			if text, ok := item.(string); ok {
				texts[key] = text
			}
		}
		if len(texts) == len(value) {
			return texts
		}
	}
	return value
}

// quoted returns a JSON string without the escapes for HTML.
func quoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // Text is always encoded.
	return strings.TrimSuffix(out.String(), "\n")
}
