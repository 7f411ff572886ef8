package web

import (
	"encoding/json"
	"mime"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/sourcetest"
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
	path := filepath.Join("clients", "node_modules", "@seriousme", "openapi-schema-validator", "schemas", "v3.1",
		"schema.json")
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

// Every reference of a description is to a part of it, every parameter of a path is declared, and no two operations
// have one name.
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
		for _, name := range (route.Route{Path: path}).PathParams() {
			if !declared["path "+name] {
				t.Errorf("%s %s does not declare %s", method, path, name)
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

// Every operation has a tag that is described, says which errors it has for reasons of its own, and answers what it
// says.
func TestOpenAPISaysWhatIsAnswered(t *testing.T) {
	doc, known := described(t), map[string]bool{}
	for _, tag := range doc["tags"].([]any) {
		known[tag.(map[string]any)["name"].(string)] = true
	}
	content := map[string]map[string]any{}
	operations(doc, func(path, method string, op map[string]any) {
		if tags, _ := op["tags"].([]any); len(tags) != 1 || !known[tags[0].(string)] {
			t.Errorf("%s %s has the tags %v", method, path, tags)
		}
		answers := op["responses"].(map[string]any)
		if op["x-scope"] != nil && (answers["401"] == nil || answers["403"] == nil) || strings.Contains(path, "{") &&
			answers["404"] == nil || answers["default"] == nil {
			t.Errorf("%s %s answers %v", method, path, answers)
		}
		if good, ok := answers["200"].(map[string]any); ok {
			content[method+" "+path], _ = good["content"].(map[string]any)
		}
	})
	if len(known) != 6 {
		t.Errorf("tags %v", known)
	}
	s := server(t, Config{Files: sourcetest.Files{}})
	for path, asked := range map[string]string{"/v1/jobs/{id}/metrics.csv": "/v1/jobs/first/metrics.csv",
		"/v1/jobs/{id}/files/{name}": "/v1/jobs/first/files/adapter/config.json",
		"/v1/files/{file}/content":   "/v1/files/file-1/content", "/metrics": "/metrics", "/v1/jobs/{id}": "/v1/jobs/first"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+asked, nil))
		kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
		if _, said := content["get "+path][kind]; !said || w.Code != 200 {
			t.Errorf("%s is answered with %d, %s, and described as %v", asked, w.Code, kind, content["get "+path])
		}
	}
}
