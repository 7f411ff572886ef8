package strict

import (
	"fmt"
	"reflect"

	yaml "go.yaml.in/yaml/v3"
)

// Clip keeps a stranger's text short enough for one line.
func Clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

// describe names what a node is, for "X is ...".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section of keys"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty (null)"
	case "!!str":
		return fmt.Sprintf("the text %q", Clip(n.Value))
	case "!!int", "!!float":
		return "the number " + Clip(n.Value)
	}
	return Clip(n.Value)
}

// wanted names what a value of a type must be, for "give ...".
func wanted(v reflect.Value) string {
	if t, ok := v.Addr().Interface().(Text); ok {
		return t.Wanted()
	}
	switch v.Kind() {
	case reflect.String:
		return "text (in quotes if it looks like something else)"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Uint64:
		return "a whole number such as 100"
	case reflect.Float64:
		return "a finite number such as 0.5"
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			return "a list: every element on lines of its own, the first of them starting with a hyphen"
		}
		return "a list such as [a, b]"
	}
	return "a section of keys"
}
