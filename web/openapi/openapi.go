// Package openapi describes the API in OpenAPI 3.1: its operations are the routes of the server, its schemas the types
// of client/api, with the comments of their source. It checks no request.
package openapi

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/stream"
)

type object = map[string]any

// Describe returns the description of routes as JSON.
func Describe(routes []route.Route, version string) ([]byte, error) {
	d := describer{schemas: object{}}
	if err := d.read(); err != nil {
		return nil, err
	}
	paths := object{}
	for _, r := range routes {
		path := strings.ReplaceAll(r.Path, "...}", "}")
		at, ok := paths[path].(object)
		if !ok {
			at = object{}
			paths[path] = at
		}
		at[strings.ToLower(r.Method)] = d.operation(r)
	}
	d.schema(reflect.TypeFor[api.Problem]())
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{"title": "Starling", "version": version, "summary": "Runs, and the network that they run on",
			"description": "Amounts are in uzen, or in grains of the coin of the object that has them: its base units, or " +
				"10^-9 of a coin with more than nine decimals. Losses are in nats a token, times in RFC 3339. Errors are " +
				"application/problem+json with a stable code and what to do. Lists have cursors: ask again with after."},
		"servers":  []any{object{"url": "/"}},
		"tags":     tagList(),
		"security": []any{object{"bearer": []string{}}, object{}},
		"paths":    paths,
		"components": object{"schemas": d.schemas,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer",
				"description": "A token of the server's --token-file; a server on the loopback needs none."}}},
	}, "", " ")
}

type describer struct {
	schemas object
	types   map[string]string // comment of a type
	fields  map[string]string // comment of Type.Field
}

// read takes the comments from the source of client/api.
func (d *describer) read() error {
	d.types, d.fields = map[string]string{}, map[string]string{}
	files, err := api.Source.ReadDir(".")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := api.Source.ReadFile(f.Name())
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), text,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				d.note(g)
			}
		}
	}
	return nil
}

func (d *describer) note(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		t := spec.(*ast.TypeSpec)
		d.types[t.Name.Name] = strings.Join(strings.Fields(g.Doc.Text()), " ")
		s, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				d.fields[t.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
			}
		}
	}
}

func (d *describer) operation(r route.Route) object {
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.TrimPrefix(r.Path, "/v1"), "_"), "_")
	op := object{"operationId": strings.ToLower(r.Method) + "_" + name, "summary": r.Summary}
	if r.Scope == "" {
		op["security"] = []any{object{}}
	} else {
		op["x-scope"] = r.Scope
	}
	var params []any
	for _, name := range r.PathParams() {
		params = append(params, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range r.Params {
		params = append(params, object{"name": p.Name, "in": "query", "description": p.Text,
			"schema": object{"type": p.Kind}})
	}
	if r.Method == "POST" && (r.Path == "/v1/jobs" || r.Path == "/v1/fine_tuning/jobs") {
		params = append(params, object{"name": request.KeyHeader, "in": "header",
			"schema": object{"type": "string", "maxLength": request.MaxKey}})
	}
	if r.Path == "/v1/jobs/{id}/events" {
		params = append(params, object{"name": stream.LastEvent, "in": "header",
			"description": "the id of the last event received: the stream continues after it, or begins with a reset",
			"schema":      object{"type": "string"}})
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = object{"required": true,
			"content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(r.Body))}}}
	}
	if r.Object > 0 || r.Method == "POST" && r.Stream != nil { // its body is another interface's to describe
		op["requestBody"] = object{"required": true,
			"content": object{"application/json": object{"schema": object{"type": "object"}}}}
	}
	if r.Upload > 0 {
		op["requestBody"] = object{"required": true,
			"content": object{"multipart/form-data": object{"schema": object{"type": "object",
				"required": []string{"file", "purpose"}, "properties": object{
					"file": object{"type": "string", "contentMediaType": answer.JSONL,
						"description": "an example a line"},
					"purpose": object{"const": "fine-tune"}}}}}}
	}
	op["tags"] = []string{tagOf(r.Path)}
	op["responses"] = d.responses(r)
	return op
}

// schema describes a type, and notes it among the components if it has a name there.
func (d *describer) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[api.Auto]():
		return object{"oneOf": []any{object{"const": "auto"}, object{"type": "number", "exclusiveMinimum": 0}}}
	case t == reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Struct:
		if _, ok := d.schemas[t.Name()]; !ok {
			d.schemas[t.Name()] = object{} // it may hold itself
			d.schemas[t.Name()] = d.structure(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Uint32:
		return object{"type": "integer", "minimum": 0, "maximum": 1<<32 - 1}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	}
	panic(fmt.Sprintf("web: %s has no place in the API", t))
}

func (d *describer) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous {
				add(f.Type)
				continue
			}
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			s := d.schema(f.Type)
			if f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omit") {
				s = object{"anyOf": []any{s, object{"type": "null"}}}
			}
			if text := d.fields[t.Name()+"."+f.Name]; text != "" {
				s["description"] = text
			}
			properties[name] = s
			if !strings.Contains(options, "omit") {
				required = append(required, name)
			}
		}
	}
	add(t)
	out := object{"type": "object", "properties": properties, "required": required}
	if text := d.types[t.Name()]; text != "" {
		out["description"] = text
	}
	return out
}
