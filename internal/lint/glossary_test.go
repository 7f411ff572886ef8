package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// unused are the words of the glossary's last table, singular and plural.
func unused(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| not | but |\n|---|---|\n")
	if !found {
		t.Fatal("docs/glossary.md has no table of words that names do not use")
	}
	words := map[string]bool{}
	for line := range strings.Lines(table) {
		for _, w := range strings.Split(strings.Split(line, "|")[1], ",") {
			w = strings.TrimSpace(w)
			words[w], words[w+"s"] = true, true
		}
	}
	return words
}

// split cuts a name into its words: camel case, snake case and dashes.
func split(name string) (words []string) {
	start := 0
	runes := []rune(name)
	add := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case r == '-' || r == '_' || r == ' ':
			add(i)
			start = i + 1
		case unicode.IsUpper(r) && (i > 0 && unicode.IsLower(runes[i-1]) ||
			i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			add(i)
		}
	}
	add(len(runes))
	return words
}

// exported lists the names that a file declares for other packages.
func exported(f *ast.File) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
				case *ast.TypeSpec:
					add(s.Name)
					if x, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() {
						for _, field := range x.Fields.List {
							for _, id := range field.Names {
								add(id)
							}
						}
					}
				}
			}
		}
	}
	return names
}

// TestNamesUseTheGlossary refuses names made of words that the glossary replaces.
func TestNamesUseTheGlossary(t *testing.T) {
	not := unused(t)
	bad := func(name string) bool { return slices.ContainsFunc(split(name), func(w string) bool { return not[w] }) }
	for _, s := range sources(t) {
		if s.test() || s.generated() {
			continue
		}
		for _, name := range exported(s.file) {
			if bad(name) {
				t.Errorf("%s: %s: docs/glossary.md has another word for it", s.name, name)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^## starling (.*)$|^ +(?:-\w, )?--([a-z-]+)`).FindAllSubmatch(text, -1) {
		if name := string(m[1]) + string(m[2]); bad(name) {
			t.Errorf("docs/cli.md: %q: docs/glossary.md has another word for it", name)
		}
	}
}

func TestNamesAreSplitIntoWords(t *testing.T) {
	for name, want := range map[string][]string{
		"UnitID": {"unit", "id"}, "HTTPServer": {"http", "server"}, "dry-run": {"dry", "run"}, "aB": {"a", "b"},
	} {
		if got := split(name); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
