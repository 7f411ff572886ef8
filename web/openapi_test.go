package web

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// described is /openapi.json.
func described(t *testing.T) map[string]any {
	t.Helper()
	_, _, text := get(t, server(t, Config{}), "/openapi.json")
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// operations calls visit with every operation of a description.
func operations(doc map[string]any, visit func(path, method string, op map[string]any)) {
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			visit(path, method, op.(map[string]any))
		}
	}
}

// TestOpenAPI holds the description against the schema of OpenAPI 3.1, which comes with a validator among the clients.
func TestOpenAPI(t *testing.T) {
	path := filepath.Join("clients", "node_modules", "@seriousme", "openapi-schema-validator", "schemas", "v3.1", "schema.json")
	f, err := os.Open(path)
	if err != nil {
		t.Skip("the schema of OpenAPI is not installed: run `npm ci --ignore-scripts` in web/clients")
	}
	defer f.Close()
	schema, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	doc := described(t)
	if err := compiled.Validate(doc); err != nil {
		t.Errorf("%v", err)
	}
	operations(doc, func(_, _ string, op map[string]any) {
		op["parameters"] = []any{map[string]any{"name": "a", "in": "body"}}
	})
	if compiled.Validate(doc) == nil {
		t.Error("a parameter in the body passes: the schema checks nothing")
	}
}

// Whatever a description refers to is in it, every parameter of a path is declared, and no two operations have one name.
func TestOpenAPIIsWhole(t *testing.T) {
	doc := described(t)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				if ref, ok := x.(string); ok && k == "$ref" && schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
					t.Errorf("%s is nowhere", ref)
				}
				walk(x)
			}
		}
	}
	walk(doc)
	names, resumes := map[string]bool{}, 0
	operations(doc, func(path, method string, op map[string]any) {
		if id := op["operationId"].(string); names[id] {
			t.Errorf("two operations are called %s", id)
		} else {
			names[id] = true
		}
		declared := map[string]bool{}
		list, _ := op["parameters"].([]any)
		for _, p := range list {
			p := p.(map[string]any)
			declared[p["in"].(string)+" "+p["name"].(string)] = true
		}
		for _, m := range pathParam.FindAllStringSubmatch(path, -1) {
			if !declared["path "+m[1]] {
				t.Errorf("%s %s does not declare %s", method, path, m[1])
			}
		}
		if declared["header Last-Event-ID"] {
			resumes++
		}
	})
	if resumes != 1 {
		t.Errorf("%d streams can be resumed, want that of a run", resumes)
	}
}
