// Package pattern finds the files that a pattern with wildcards names, in the same order on every machine. It does not
// look into folders that runs left, and reads no file.
package pattern

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Wildcards are the characters that make a path a pattern.
const Wildcards = `*?[\`

// Match returns the sorted names that a pattern matches, but for those in the output folder, an absolute path. locate
// turns a name into a path to open.
func Match(pattern string, locate func(name string) string, output string) ([]string, error) {
	segments := strings.Split(pattern, "/")
	for _, s := range segments {
		if _, err := path.Match(s, ""); err != nil {
			return nil, fmt.Errorf("%q is not a pattern: %w", s, err)
		}
	}
	fixed := slices.IndexFunc(segments, func(s string) bool { return strings.ContainsAny(s, Wildcards) })
	base := strings.Join(segments[:fixed], "/")
	if base == "" && fixed > 0 {
		base = "/"
	}
	g := &glob{locate: locate, base: base, output: output, found: map[string]bool{}}
	if err := g.walk(base, segments[fixed:]); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(g.found)), nil
}

// glob is one search. The set makes a file that ** reaches in two ways count once.
type glob struct {
	locate func(name string) string
	base   string // what is written out of the pattern, as a folder
	output string // absolute path of the folder never looked into
	found  map[string]bool
}

// walk matches the segments of a pattern below a folder.
func (g *glob) walk(dir string, segments []string) error {
	place := g.locate(dir)
	if abs, err := filepath.Abs(place); err != nil || abs == g.output {
		return err
	}
	entries, err := os.ReadDir(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || dir != g.base && ofARun(entries) {
		return err
	}
	first, rest := segments[0], segments[1:]
	if first == "**" {
		if len(rest) == 0 {
			rest = []string{"*"}
		}
		if err := g.walk(dir, rest); err != nil {
			return err
		}
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(first, ".") {
			continue
		}
		if first == "**" {
			if e.IsDir() {
				err = g.walk(name, segments)
			}
		} else if ok, _ := path.Match(first, e.Name()); ok {
			switch {
			case len(rest) > 0 && e.IsDir():
				err = g.walk(name, rest)
			case len(rest) == 0 && e.Type().IsRegular():
				g.found[name] = true
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ofARun reports whether a folder is that of a run or of a simulation: it holds a job file, and what became of it.
func ofARun(entries []os.DirEntry) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return slices.Contains(names, e.Name()) })
	}
	return has("job.yaml") && has("run.json", "simulation.json", "submitted.json")
}
