// Package templates holds job files to start from. It is no part of the format: client/job reads them as any other.
package templates

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Template is a job file to start from.
type Template struct {
	Name  string
	About string // its first comment
	File  []byte
}

// All are the templates, in order of their names.
func All() []Template {
	paths, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err) // a mistake in the pattern
	}
	all := make([]Template, len(paths))
	for i, p := range paths {
		file, err := files.ReadFile(p)
		if err != nil {
			panic(err) // it is part of the binary
		}
		about, _, _ := strings.Cut(strings.TrimPrefix(string(file), "# "), "\n")
		all[i] = Template{Name: strings.TrimSuffix(p, ".yaml"), About: about, File: file}
	}
	return all
}
