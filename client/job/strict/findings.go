package strict

import (
	"strings"

	"github.com/starling-network/starling/client/job/problem"
)

// Mark is the place of a value.
type Mark struct {
	File         string
	Line, Column int
}

// Marks are the places of values, by path: the keys from the top, joined by points; elements of lists are numbered
// from 0: datasets.0.path.
type Marks map[string]Mark

// Near is the place of a key, or of the nearest section above a key that is not given.
func (m Marks) Near(path string) Mark {
	for {
		if at, ok := m[path]; ok {
			return at
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
}

// Findings are the places of values that a file gives, and its problems and notes.
type Findings struct {
	bad      map[string]bool // paths with a problem
	marks    Marks
	notes    []problem.Note
	problems []*problem.Error
}

// Err is a *problem.ErrorList of all problems, or nil.
func (f *Findings) Err() error { return problem.Join(f.problems) }

// Marks are the places of all values given.
func (f *Findings) Marks() Marks { return f.marks }

// Notes are the notes of Note.
func (f *Findings) Notes() []problem.Note { return f.notes }

// Given reports whether the file or an override gives a key.
func (f *Findings) Given(path string) bool { _, ok := f.marks[path]; return ok }

// Bad reports whether a key, or a section that holds it, has a problem.
func (f *Findings) Bad(path string) bool {
	for ; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
		if f.bad[path] {
			return true
		}
	}
	return false
}

// Report adds a problem of a key.
func (f *Findings) Report(path, code, what, why, fix string) {
	f.report(f.marks.Near(path), path, code, what, why, fix)
}

// Note adds a note about a key.
func (f *Findings) Note(path, text string) {
	f.noteAt(f.marks.Near(path), path, text)
}

func (f *Findings) noteAt(m Mark, path, text string) {
	e := problem.Error{File: m.File, Line: m.Line, Column: m.Column}
	f.notes = append(f.notes, problem.Note{Place: e.Place(), Text: path + ": " + text})
}

func (f *Findings) report(at Mark, path, code, what, why, fix string) {
	f.bad[path] = true
	f.problems = append(f.problems,
		&problem.Error{Code: code, File: at.File, Line: at.Line, Column: at.Column, What: what, Why: why, Fix: fix})
}
