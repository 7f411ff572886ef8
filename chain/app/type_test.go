package app

import (
	"reflect"
	"strings"
	"testing"
)

// TestTypeNamesNoCollection: a package that reads a type with collections of the SDK in it compiles their generic code
// again.
func TestTypeNamesNoCollection(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(path string, typ reflect.Type)
	visit = func(path string, typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		if strings.HasPrefix(typ.PkgPath(), "cosmossdk.io/collections") {
			t.Errorf("%s is a %v", path, typ)
			return
		}
		for i := range typ.NumMethod() {
			visit(path+"."+typ.Method(i).Name, typ.Method(i).Type)
		}
		switch typ.Kind() {
		case reflect.Struct:
			for i := range typ.NumField() {
				visit(path+"."+typ.Field(i).Name, typ.Field(i).Type)
			}
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			visit(path, typ.Elem())
		case reflect.Map:
			visit(path, typ.Key())
			visit(path, typ.Elem())
		case reflect.Func:
			for i := range typ.NumIn() {
				visit(path, typ.In(i))
			}
			for i := range typ.NumOut() {
				visit(path, typ.Out(i))
			}
		}
	}
	visit("App", reflect.TypeFor[*App]())
	if len(seen) < 100 {
		t.Errorf("%d types were visited", len(seen))
	}
}
