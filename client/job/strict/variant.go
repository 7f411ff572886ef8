package strict

import (
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Variants names the key of a list whose elements are variants of a file, each with a name and, as `set`, a section of
// keys that stand in place of those of the file, and the key that chooses one of them by its name.
type Variants struct{ List, Choice string }

const variantName, variantKeys = "name", "set"

// divide parts overrides of the list of variants from all others.
func (v Variants) divide(overrides []string) (of, rest []string) {
	for _, o := range overrides {
		key, _, _ := strings.Cut(o, "=")
		if v.List != "" && strings.HasPrefix(key+".", v.List+".") {
			of = append(of, o)
		} else {
			rest = append(rest, o)
		}
	}
	return of, rest
}

// choose gives a file the keys of the variant that an override chooses, or else the file itself. Their places are those
// in the file. A name that no variant has changes nothing.
func (v Variants) choose(root *yaml.Node, overrides []string) {
	name := ""
	if i := find(root, v.Choice); i >= 0 {
		name = root.Content[i+1].Value
	}
	for _, o := range overrides {
		if value, ok := strings.CutPrefix(o, v.Choice+"="); ok {
			name = value
		}
	}
	at := find(root, v.List)
	if name == "" || at < 0 {
		return
	}
	for _, variant := range root.Content[at+1].Content {
		is, set := find(variant, variantName), find(variant, variantKeys)
		if is >= 0 && set >= 0 && variant.Content[is+1].Value == name {
			merge(root, variant.Content[set+1])
			return
		}
	}
}

// merge sets the keys of a section in another: sections are merged, and all else is replaced.
func merge(into, from *yaml.Node) {
	if from.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		at := find(into, key.Value)
		switch {
		case at < 0:
			into.Content = append(into.Content, key, value)
		case value.Kind == yaml.MappingNode && into.Content[at+1].Kind == yaml.MappingNode:
			merge(into.Content[at+1], value)
		default:
			into.Content[at], into.Content[at+1] = key, value
		}
	}
}
