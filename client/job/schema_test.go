package job

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/job/stores"
	"github.com/starling-network/starling/client/job/strict"
)

// writer writes the JSON Schema of a type from the tags of its fields, and what is said of them in plain.
type writer struct{ t *testing.T }

type object = map[string]any

func (w writer) section(t reflect.Type) object {
	keys, required := object{}, []string{}
	for _, f := range strict.Keys(t) {
		s := w.of(f.Kind, f)
		name := t.Name() + "." + t.Field(f.Index).Name
		said := plain[name]
		first, _, more := strings.Cut(said, " ")
		if headless := strings.Fields("of in for by that from with at on 0: 1: none: default:"); !more ||
			strings.Count(said, " ") < 2 || slices.Contains(headless, first) {
			w.t.Errorf("%s says %q: name the thing that the key sets", name, said)
		}
		s["description"] = said
		if f.Null || f.Kind.Kind() == reflect.Pointer {
			s = nullable(s)
		}
		keys[f.Name] = s
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := object{"type": "object", "properties": keys, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func nullable(s object) object {
	said, ok := s["description"]
	delete(s, "description")
	s = object{"anyOf": []any{s, object{"type": "null"}}}
	if ok {
		s["description"] = said
	}
	return s
}

func (w writer) of(t reflect.Type, f strict.Key) object {
	number := []string{"string", "number"}
	switch t {
	case reflect.TypeFor[spec.Tokenizer]():
		return object{"anyOf": []any{
			object{"type": "string"},
			object{"type": "object", "additionalProperties": false, "required": []string{"train"},
				"properties": object{"train": object{
					"type": "object", "additionalProperties": false, "required": []string{"type", "vocab_size"},
					"description": "train a tokenizer on the datasets",
					"properties": object{
						"type": object{"enum": []string{"bpe"}, "description": "the kind of tokenizer: byte-pair encoding"},
						"vocab_size": object{"type": "integer", "minimum": 257, "maximum": 1 << 20,
							"description": "the number of its tokens"},
					},
				}}},
		}}
	case reflect.TypeFor[spec.Workers]():
		return object{"anyOf": []any{object{"type": "integer", "minimum": 1, "maximum": spec.MaxWorkers}, w.section(t)}}
	case reflect.TypeFor[spec.Reward]():
		section := w.section(t)
		return object{"anyOf": []any{section, section["properties"].(object)["rules"]}}
	case reflect.TypeFor[stores.Push]():
		return object{"anyOf": []any{object{"type": "string"}, w.section(t)}}
	case reflect.TypeFor[quantity.Auto]():
		return object{"anyOf": []any{object{"const": "auto"}, object{"type": "integer", "minimum": 1, "maximum": 1 << 20}}}
	case reflect.TypeFor[quantity.Amount](), reflect.TypeFor[quantity.AtLeast](), reflect.TypeFor[quantity.Size](),
		reflect.TypeFor[quantity.Bandwidth](),
		reflect.TypeFor[quantity.Duration]():
		return object{"type": number}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem(), f)
	case reflect.Struct:
		return w.section(t)
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return object{"type": "object"}
		}
		return object{"type": "object", "additionalProperties": w.of(t.Elem(), strict.Key{})}
	case reflect.Slice:
		s := object{"type": "array", "items": w.of(t.Elem(), f)}
		if f.Size.Given {
			s["minItems"], s["maxItems"] = f.Size.Low, f.Size.High
		}
		return s
	case reflect.String:
		s := object{"type": "string"}
		if len(f.One) > 0 {
			s = object{"enum": f.One}
		}
		return s
	case reflect.Bool:
		return object{"type": "boolean"}
	}
	s := object{"type": "number"}
	if t.Kind() != reflect.Float64 {
		s = object{"type": "integer"}
	}
	if f.In.Given {
		s[map[bool]string{true: "exclusiveMinimum", false: "minimum"}[f.In.LowOpen]] = f.In.Low
		if !math.IsInf(f.In.High, 1) {
			s[map[bool]string{true: "exclusiveMaximum", false: "maximum"}[f.In.HighOpen]] = f.In.High
		}
	}
	return s
}

// schema.json follows the tags of client/job/spec, and every key in it says what it is.
func TestSchemaIsThatOfTheSpec(t *testing.T) {
	s := writer{t}.section(reflect.TypeFor[spec.Spec]())
	s["$schema"], s["$id"] = "https://json-schema.org/draft/2020-12/schema", "urn:starling:training-job:v1"
	s["title"] = "Starling training job"
	s["description"] = "A job file of `starling train`, apiVersion starling/v1, kind TrainingJob or FederatedJob."
	s["required"] = slices.DeleteFunc(s["required"].([]string), func(key string) bool { return key == "datasets" })
	s["anyOf"] = []object{{"required": []string{"datasets"}}, {"required": []string{"experts"}}} // each has its own
	want := new(bytes.Buffer)
	e := json.NewEncoder(want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("schema.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(Schema, want.Bytes()) {
		t.Error("schema.json is not what the tags of client/job/spec say: go test ./client/job -run Schema -rewrite")
	}
}

// The schema accepts and refuses the same files as Parse, as far as a schema can express the rule.
func TestSchemaAgreesWithParse(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("job", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("job")
	if err != nil {
		t.Fatal(err)
	}
	holds := func(source []byte) error {
		var v any
		if err := yaml.Unmarshal(source, &v); err != nil {
			return err
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return err
		}
		return s.Validate(instance)
	}
	taken, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range taken {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		isJob := regexp.MustCompile(`(?m)^kind: \w+Job$`).Match(source)
		if err := holds(source); (err == nil) != isJob {
			t.Errorf("%s: %v", path, err)
		}
	}
	quickstart := filepath.Join("..", "..", "examples", "quickstart.yaml")
	for _, change := range [][2]string{
		{"max_steps:", "max_stepz:"}, {"kind: TrainingJob", "kind: Job"}, {"architecture: gpt2", "architecture: [gpt2]"},
		{"val_set_size: 0.02", "val_set_size: 0.9"}, {"method: diloco", "method: magic"}, {"workers: 4", "workers: 0"},
		{"budget:", "fortune:"}, {"seed: 42", "seed: many"}, {"datasets:", "labels:"},
	} {
		source, err := os.ReadFile(quickstart)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Replace(source, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(bad, source) {
			t.Fatalf("%s is not in %s", change[0], quickstart)
		}
		if holds(bad) == nil {
			t.Errorf("the schema takes %s", change[1])
		}
		if _, err := Parse(bad, quickstart); err == nil {
			t.Errorf("a job file takes %s", change[1])
		}
	}
}
