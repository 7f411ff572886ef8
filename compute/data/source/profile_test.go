package source

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/data/parquet"
)

// Every fault of a file is reported with its line, and the documents between them are counted.
func TestProfileFindsAllFaults(t *testing.T) {
	text := "{\"text\":\"a\",\"n\":1}\nnot " +
		"json\n\n{\"body\":\"b\"}\n{\"text\":3}\n[]\n{\"text\":\"\"}\n{\"text\":\"a\"}\n{\"text\":\"long\"}\nnull\n"
	p := NewProfile(File{Format: JSONL, Name: "x.jsonl", Data: []byte(text)}, 100)
	type fault struct {
		line int
		err  error
	}
	want := []fault{{2, ErrLine}, {4, ErrField}, {5, ErrField}, {6, ErrLine}, {10, ErrLine}}
	for i, f := range p.Faults {
		if i >= len(want) || f.Line != want[i].line || !errors.Is(f, want[i].err) || f.Name != "x.jsonl" {
			t.Errorf("fault %d: %v", i, f)
		}
	}
	if len(p.Faults) != len(want) || p.Documents != 3 || p.Empty != 1 || p.Repeated != 1 || p.Longest != 4 ||
		p.Text != 6 || p.Beginning != "a" || p.Bytes != int64(len(text)) {
		t.Errorf("%+v", p)
	}
	if !slices.Equal(p.Fields, []Field{{"body", 1, 1}, {"n", 0, 1}, {"text", 4, 5}}) {
		t.Errorf("fields %v", p.Fields)
	}
	if p := NewProfile(File{Format: JSONL, Data: []byte(text)}, 2); len(p.Faults) != 2 || p.MoreFaults != 3 {
		t.Errorf("%d faults and %d more", len(p.Faults), p.MoreFaults)
	}
}

func TestProfileOfFormats(t *testing.T) {
	p := NewProfile(File{Format: Text, Name: "x.gz", Data: gzipped("caf\xe9")}, 1)
	if p.Documents != 1 || p.Bytes != 4 || p.NotUTF8 != 1 || p.Beginning != "caf" || len(p.Faults) > 0 {
		t.Errorf("text: %+v", p)
	}
	p = NewProfile(File{Format: Parquet, Data: column(t, "a", "", "bb")}, 1)
	if p.Documents != 2 || p.Text != 3 || len(p.Fields) != 1 || p.Fields[0].Name != "text" || len(p.Faults) > 0 {
		t.Errorf("parquet: %+v", p)
	}
	p = NewProfile(File{Format: Parquet, Field: "body", Data: column(t, "a")}, 1)
	if len(p.Faults) != 1 || !errors.Is(p.Faults[0], parquet.ErrColumn) || len(p.Fields) != 1 {
		t.Errorf("another column: %+v", p)
	}
	p = NewProfile(File{Format: LLMC, Data: llmc(llmcGPT2, 1, 2, 5, 9, 7)}, 1)
	if p.Tokens != 3 || p.Largest != 9 || len(p.Faults) > 0 {
		t.Errorf("tokens: %+v", p)
	}
	for _, s := range []File{{Format: "tar"}, {Format: Text, Name: "x.gz", Data: []byte("no")},
		{Format: JSONL, Name: "x.zst", Data: []byte("no")}, {Format: LLMC}} {
		if p := NewProfile(s, 5); len(p.Faults) != 1 || p.Faults[0].Line != 0 {
			t.Errorf("%+v: %+v", s, p.Faults)
		}
	}
}

// A source has faults exactly if it cannot be used, and as many documents as are used.
func FuzzProfile(f *testing.F) {
	f.Add([]byte("{\"text\":\"a\"}\n{}\n"), uint8(0))
	f.Add([]byte("plain"), uint8(1))
	f.Add(column(f, "a", "b"), uint8(2))
	f.Add([]byte("n,text\n1,\"a\nb\"\n"), uint8(3))
	f.Fuzz(func(t *testing.T, raw []byte, kind uint8) {
		s := File{Format: []string{JSONL, Text, Parquet, CSV}[kind%4], Data: raw}
		docs, err := all(s)
		p := NewProfile(s, 3)
		if (err == nil) != (len(p.Faults) == 0) || err == nil && p.Documents != len(docs) {
			t.Fatalf("%d documents, %v; the profile has %d and %v", len(docs), err, p.Documents, p.Faults)
		}
	})
}
