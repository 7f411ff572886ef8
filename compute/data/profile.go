package data

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/starling-network/starling/compute/data/parquet"
)

// Profile is what a source holds, and everything that is wrong with it.
type Profile struct {
	Bytes      int64 // unpacked
	Documents  int   // that are not empty
	Empty      int
	Text       int64   // bytes of all documents
	Longest    int     // bytes of a document
	Repeated   int     // documents that are the same as one before them
	NotUTF8    int     // documents that are no valid UTF-8
	Fields     []Field // of the objects of JSONL or the columns of CSV and Parquet, in order of their names
	Beginning  string  // of the first document
	Tokens     int     // of a source that holds them
	Largest    uint32  // of these
	Faults     []*SourceError
	MoreFaults int // that Faults leaves out
}

// Field is a field of the objects of a source.
type Field struct {
	Name  string
	Texts int // objects in which it is a text; of a column: 0
	Of    int // objects that have it
}

// Limits of a Profile.
const (
	maxFields    = 1000
	maxBeginning = 200 // bytes
)

// NewProfile reads a source as Documents does, but to its end: a line that is wrong is passed over, and told. At most
// so many faults are listed. A format that is unknown, or a file that cannot be read at all, is a fault of the whole.
func NewProfile(s Source, faults int) *Profile {
	p := &profiler{limit: faults, name: s.Name, seen: map[string]bool{}}
	if s.Field == "" {
		s.Field = DefaultField
	}
	if Tokenized(s.Format) {
		t, err := tokens(s)
		p.Bytes, p.Tokens = int64(len(t.raw)), t.Len()
		p.fault(0, err)
		for i := range t.Len() {
			p.Largest = max(p.Largest, t.At(i))
		}
		return &p.Profile
	}
	if s.Format == JSONL {
		p.lines(s)
		return &p.Profile
	}
	docs, err := Documents(s)
	var whole *SourceError
	if errors.As(err, &whole) {
		p.fault(whole.Line, whole.Err)
	}
	p.Bytes = int64(len(s.Data))
	for _, c := range columns(s) {
		p.Fields = append(p.Fields, Field{Name: c})
	}
	for _, d := range docs {
		if s.Format == Text {
			p.Bytes = int64(len(d)) // unpacked
		}
		p.document(d)
	}
	return &p.Profile
}

// columns are the names of those of CSV, and of the text columns of Parquet, in order. What is wrong with the source is
// said where it is read.
func columns(s Source) (names []string) {
	switch s.Format {
	case CSV:
		names = csvColumns(s)
	case Parquet:
		names, _ = parquet.Columns(s.Data)
	}
	slices.Sort(names)
	return names[:min(len(names), maxFields)]
}

// profiler makes a Profile.
type profiler struct {
	Profile
	name  string
	limit int
	seen  map[string]bool // documents
}

func (p *profiler) fault(line int, err error) {
	switch {
	case err == nil:
	case len(p.Faults) < p.limit:
		p.Faults = append(p.Faults, &SourceError{Name: p.name, Line: line, Err: err})
	default:
		p.MoreFaults++
	}
}

func (p *profiler) document(text string) {
	if text == "" {
		p.Empty++
		return
	}
	if p.Documents++; p.Documents == 1 {
		p.Beginning = strings.ToValidUTF8(text[:min(len(text), maxBeginning)], "")
	}
	p.Text += int64(len(text))
	p.Longest = max(p.Longest, len(text))
	if p.seen[text] {
		p.Repeated++
	}
	p.seen[text] = true
	if !utf8.ValidString(text) {
		p.NotUTF8++
	}
}

func (p *profiler) lines(s Source) {
	text, err := unpacked(s, MaxUnpacked)
	p.fault(0, err)
	p.Bytes = int64(len(text))
	fields := map[string]*Field{}
	for line, raw := range eachLine(text) {
		o, err := object(raw)
		if err != nil {
			p.fault(line, err)
			continue
		}
		for name, value := range o {
			f := fields[name]
			if f == nil && len(fields) >= maxFields {
				continue
			}
			if f == nil {
				f = &Field{Name: name}
				fields[name] = f
			}
			f.Of++
			if value[0] == '"' {
				f.Texts++
			}
		}
		doc, err := s.document(o)
		if err != nil {
			p.fault(line, err)
			continue
		}
		if !utf8.Valid(raw) {
			p.NotUTF8++ // JSON replaces what is none
		}
		p.document(doc.Text)
	}
	for _, f := range fields {
		p.Fields = append(p.Fields, *f)
	}
	slices.SortFunc(p.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
}
