package strict

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/problem"
)

// MaxFileBytes bounds the size of a job file.
const MaxFileBytes = 1 << 20

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document parses the one YAML document of a file and refuses what a job file has no use for.
func (d *Decoder) document(source []byte) *yaml.Node {
	fail := func(line int, what, why, fix string) *yaml.Node {
		d.report(Mark{d.file, line, 1}, "", problem.BadYAML, what, why, fix)
		return nil
	}
	if len(source) > MaxFileBytes {
		return fail(1, fmt.Sprintf("the file has %d bytes", len(source)),
			fmt.Sprintf("a job file has at most %d", MaxFileBytes),
			"name data by its path instead of writing it into the file")
	}
	dec := yaml.NewDecoder(strings.NewReader(string(source)))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if len(strings.TrimSpace(string(source))) == 0 || err.Error() == "EOF" {
			return fail(1, "the file is empty", "a job needs at least a model, datasets and training.max_steps",
				"start from examples/quickstart.yaml")
		}
		line := 1
		if m := yamlErrorLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
		return fail(line, "the file is not valid YAML", yamlErrorLine.ReplaceAllString(err.Error(), ""),
			"check the indentation (spaces, no tabs), brackets and quotes near this line")
	}
	if err := dec.Decode(&next); !errors.Is(err, io.EOF) {
		return fail(next.Line, "the file has text after its YAML document", "a job file holds one job",
			"remove everything from the second --- line on")
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fail(root.Line, "the file is "+describe(root), "a job file is a section of keys",
			"start from examples/quickstart.yaml")
	}
	if !d.plain(root) {
		return nil
	}
	return root
}

// plain refuses anchors, aliases and tags: they make one value appear in two places, or change what is written.
func (d *Decoder) plain(n *yaml.Node) bool {
	ok := true
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		d.report(d.at(n), "", problem.BadYAML, "a YAML anchor, alias or tag",
			"a job file is plain: every value stands where it counts",
			"write the value out")
		return false
	}
	for _, c := range n.Content {
		ok = d.plain(c) && ok
	}
	return ok
}

// oldPaths are the paths of the keys of a section that have another name now, by their paths in the previous version.
func oldPaths(section reflect.Type) map[string]string {
	now := map[string]string{}
	Walk("", section, func(path string, k Key) {
		if k.Old != "" {
			now[strings.TrimSuffix(path, k.Name)+k.Old] = path
		}
	})
	return now
}

// renameKeys gives the keys of the previous version in a tree their names of now, with a note for each.
func (d *Decoder) renameKeys(root *yaml.Node) {
	for _, old := range slices.Sorted(maps.Keys(d.renamed)) {
		n, keys := root, strings.Split(old, ".")
		last := len(keys) - 1
		for _, k := range keys[:last] {
			if i := find(n, k); i >= 0 {
				n = n.Content[i+1]
			} else {
				n = &yaml.Node{}
			}
		}
		for i := find(n, keys[last]); i >= 0; i = find(n, keys[last]) {
			now := d.renamed[old]
			n.Content[i].Value = now[strings.LastIndexByte(now, '.')+1:]
			d.noteOld(d.at(n.Content[i]), old)
		}
	}
}

// current is the path of a key, given that of the previous version or of now.
func (d *Decoder) current(path string, at Mark) string {
	for old, now := range d.renamed {
		if rest, ok := strings.CutPrefix(path+".", old+"."); ok {
			d.noteOld(at, old)
			return strings.TrimSuffix(now+"."+rest, ".")
		}
	}
	return path
}

func (d *Decoder) noteOld(at Mark, old string) {
	d.noteAt(at, old, "the key is called "+d.renamed[old]+" now, and the next version will not read the old name")
}

// find is the index of a key in the content of a section, whose value comes next; -1 if there is none.
func find(n *yaml.Node, key string) int {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return i
			}
		}
	}
	return -1
}

// override sets one key in the tree, or takes it out where the value is null. Sections on the way are made when they
// are missing.
func (d *Decoder) override(root *yaml.Node, o string) {
	from := "--set " + o
	fail := func(what, why string) {
		d.report(Mark{File: from}, "", problem.BadOverride, what, why, "write it as --set training.learning_rate=1e-4")
	}
	key, val, ok := strings.Cut(o, "=")
	if !ok || key == "" {
		fail("an override without a key and a value", "it has the form key=value")
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(val), &doc); err != nil {
		fail("the value is not valid YAML", yamlErrorLine.ReplaceAllString(err.Error(), ""))
		return
	}
	leaf := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	if len(doc.Content) > 0 {
		leaf = doc.Content[0]
	}
	d.claim(leaf, from)
	if !d.plain(leaf) {
		return
	}
	at, keys := root, strings.Split(d.current(key, Mark{File: from}), ".")
	gone := len(doc.Content) > 0 && isNull(leaf)
	for i, k := range keys {
		if gone && i == len(keys)-1 && at.Kind == yaml.MappingNode {
			if j := find(at, k); j >= 0 {
				at.Content = slices.Delete(at.Content, j, j+2)
			}
			return
		}
		slot := d.slot(at, k, from)
		if slot == nil {
			fail(fmt.Sprintf("%s has no %q", strings.Join(keys[:i], "."), k),
				"the file gives it a value without keys, or a shorter list")
			return
		}
		if i == len(keys)-1 {
			*slot = leaf
		} else if *slot == nil || isNull(*slot) {
			*slot = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			d.origin[*slot] = from
		}
		at = *slot
	}
}

// claim marks a tree as coming from an override.
func (d *Decoder) claim(n *yaml.Node, from string) {
	d.origin[n] = from
	for _, c := range n.Content {
		d.claim(c, from)
	}
}

// slot is the place of a key in a section, added if missing, or of an element in a list; nil if there is none.
func (d *Decoder) slot(n *yaml.Node, key, from string) **yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		if i := find(n, key); i >= 0 {
			return &n.Content[i+1]
		}
		k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
		d.origin[k] = from
		n.Content = append(n.Content, k, nil)
		return &n.Content[len(n.Content)-1]
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
			return &n.Content[i]
		}
	}
	return nil
}
