package job

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed templates/*.yaml
var templates embed.FS

// Template is a job file to start from.
type Template struct {
	Name  string
	About string // its first comment
	File  []byte
}

// Templates are the job files to start from, in order of their names.
func Templates() []Template {
	paths, err := fs.Glob(templates, "templates/*.yaml")
	if err != nil {
		panic(err) // a mistake in the pattern
	}
	all := make([]Template, len(paths))
	for i, p := range paths {
		file, err := templates.ReadFile(p)
		if err != nil {
			panic(err) // it is part of the binary
		}
		about, _, _ := strings.Cut(strings.TrimPrefix(string(file), "# "), "\n")
		all[i] = Template{Name: strings.TrimSuffix(strings.TrimPrefix(p, "templates/"), ".yaml"), About: about, File: file}
	}
	return all
}
