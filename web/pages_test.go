package web

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page asks for all modules at once, not for each when the one that imports it is there.
func TestModulesArePreloaded(t *testing.T) {
	page, err := fs.ReadFile(static, "static/index.html")
	if err != nil {
		t.Fatal(err)
	}
	var preloaded, imported []string
	modules := regexp.MustCompile(`<(?:link rel="modulepreload" href|script type="module" src)="/([^"]+)"`)
	for _, m := range modules.FindAllSubmatch(page, -1) {
		preloaded = append(preloaded, string(m[1]))
	}
	imports := regexp.MustCompile(`(?m)^import [^;]* from '([^']+)'`)
	err = fs.WalkDir(static, "static", func(p string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(p) != ".js" {
			return err
		}
		imported = append(imported, strings.TrimPrefix(p, "static/"))
		text, err := fs.ReadFile(static, p)
		for _, m := range imports.FindAllSubmatch(text, -1) {
			if to := path.Join(path.Dir(p), string(m[1])); !slices.Contains(preloaded, strings.TrimPrefix(to, "static/")) {
				t.Errorf("%s imports %s, which is not preloaded", p, to)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(preloaded)
	if slices.Sort(imported); !slices.Equal(preloaded, imported) {
		t.Errorf("preloaded %v, there are %v", preloaded, imported)
	}
}
