package source

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
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
	Faults     []*Error
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

// NewProfile reads a file to its end. It skips lines that are wrong and counts their faults, of which it lists the
// first; faults is how many at most. An unknown format, and a file that cannot be read at all, are faults of the whole
// file.
func NewProfile(f File, faults int) *Profile {
	p := &profiler{limit: faults, name: f.Name, seen: map[[sha256.Size]byte]bool{}}
	if f.Field == "" {
		f.Field = DefaultField
	}
	if Tokenized(f.Format) {
		p.fault(0, f.Tokens(p.tokens))
		return &p.Profile
	}
	p.columns(f)
	fields := map[string]*Field{}
	for b, err := range f.Blocks(readAhead, lastSpace) {
		if at := (*Error)(nil); errors.As(err, &at) {
			p.fault(at.Line, at.Err)
			break
		}
		p.Bytes += int64(b.Bytes)
		if b.lines != nil {
			p.lines(b, fields)
			continue
		}
		for _, d := range b.docs {
			p.document(d.Text, b.Begins, b.Ends)
		}
	}
	for _, f := range fields {
		p.Fields = append(p.Fields, *f)
	}
	slices.SortFunc(p.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	p.Fields = p.Fields[:min(len(p.Fields), maxFields)]
	return &p.Profile
}

// lastSpace is where a text may be divided that is only looked at.
func lastSpace(text string) int { return max(0, strings.LastIndexAny(text, " \n")) }

// columns adds the names of those of CSV, and of the text columns of Parquet. The reader of the file reports its
// faults.
func (p *profiler) columns(f File) {
	var names []string
	switch f.Format {
	case CSV:
		names = csvColumns(f)
	case Parquet:
		if r, n, err := f.random(); err == nil {
			names, _ = parquet.Columns(r, n)
			_ = r.Close()
		}
	}
	for _, c := range names {
		p.Fields = append(p.Fields, Field{Name: c})
	}
}

// profiler makes a Profile.
type profiler struct {
	Profile
	name  string
	limit int
	seen  map[[sha256.Size]byte]bool // digests of documents

	// of a document, up to the part that was read last
	length int
	hash   hash.Hash
	broken bool // no valid UTF-8
}

func (p *profiler) fault(line int, err error) {
	switch {
	case err == nil:
	case len(p.Faults) < p.limit:
		p.Faults = append(p.Faults, &Error{Name: p.name, Line: line, Err: err})
	default:
		p.MoreFaults++
	}
}

func (p *profiler) tokens(width int, ids []byte) error {
	p.Bytes, p.Tokens = p.Bytes+int64(len(ids)), p.Tokens+len(ids)/width
	for ; len(ids) > 0; ids = ids[width:] {
		if width == 2 {
			p.Largest = max(p.Largest, uint32(binary.LittleEndian.Uint16(ids)))
		} else {
			p.Largest = max(p.Largest, binary.LittleEndian.Uint32(ids))
		}
	}
	return nil
}

// document counts a document, or a part of one.
func (p *profiler) document(text string, begins, ends bool) {
	if text == "" {
		p.Empty++
		return
	}
	if begins {
		p.length, p.hash, p.broken = 0, sha256.New(), false
		if p.Documents++; p.Documents == 1 {
			p.Beginning = strings.ToValidUTF8(text[:min(len(text), maxBeginning)], "")
		}
	}
	p.Text += int64(len(text))
	p.length += len(text)
	p.broken = p.broken || !utf8.ValidString(text)
	_, _ = io.WriteString(p.hash, text) // of a hash: it cannot fail
	if !ends {
		return
	}
	p.Longest = max(p.Longest, p.length)
	sum := [sha256.Size]byte(p.hash.Sum(nil))
	if p.seen[sum] {
		p.Repeated++
	}
	p.seen[sum] = true
	if p.broken {
		p.NotUTF8++
	}
}

// lines counts the lines of a block, and their fields.
func (p *profiler) lines(b Block, fields map[string]*Field) {
	for line, raw := range eachLine(b.lines) {
		line += b.first - 1
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
		docs, err := b.file.ofObject(o)
		if err != nil {
			p.fault(line, err)
			continue
		}
		if !utf8.Valid(raw) {
			p.NotUTF8++ // JSON replaces what is none
		}
		for _, doc := range docs {
			p.document(doc.Text, true, true)
		}
	}
}
