package data

import (
	"errors"
	"slices"
	"testing"
)

func TestDocuments(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Source
		want []string
	}{
		{"text is one document", Source{Format: Text, Data: []byte("a\n\nb\n")}, []string{"a\n\nb\n"}},
		{"text of any bytes", Source{Format: Text, Data: []byte("a\xff\x00")}, []string{"a\xff\x00"}},
		{"empty text", Source{Format: Text}, nil},
		{"lines", Source{Format: JSONL, Data: []byte("{\"text\":\"a\\nb\"}\r\n\n{\"n\":1,\"text\":\"é\"}")}, []string{"a\nb", "é"}},
		{"another field", Source{Format: JSONL, Field: "body", Data: []byte(`{"text":"a","body":"b"}`)}, []string{"b"}},
		{"empty documents are left out", Source{Format: JSONL, Data: []byte("{\"text\":\"\"}\n{\"text\":\"a\"}\n")}, []string{"a"}},
		{"byte order mark", Source{Format: JSONL, Data: []byte("\ufeff{\"text\":\"a\"}\n")}, []string{"a"}},
	} {
		got, err := Documents(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestDocumentsSaysWhereAndWhat(t *testing.T) {
	for _, c := range []struct {
		format, data string
		line         int
		want         error
	}{
		{"csv", "a,b", 0, ErrFormat},
		{JSONL, "{\"text\":\"a\"}\n\nnope\n", 3, ErrLine},
		{JSONL, "{\"text\":\"a\"} {\"text\":\"b\"}\n", 1, ErrLine},
		{JSONL, "null", 1, ErrLine},
		{JSONL, "[\"a\"]", 1, ErrLine},
		{JSONL, "{\"text\":\"a\"}\n{\"Text\":\"a\"}", 2, ErrField},
		{JSONL, "{\"text\":7}", 1, ErrField},
		{JSONL, "{\"text\":null}", 1, ErrField},
	} {
		_, err := Documents(Source{Format: c.format, Name: "f", Data: []byte(c.data)})
		var at *SourceError
		if !errors.As(err, &at) || at.Name != "f" || at.Line != c.line || !errors.Is(err, c.want) {
			t.Errorf("%q: got %v, want line %d, %v", c.data, err, c.line, c.want)
		}
	}
}

func FuzzDocuments(f *testing.F) {
	f.Add([]byte("{\"text\":\"a\"}\n{\"text\":1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := Documents(Source{Format: JSONL, Data: data})
		if at := (*SourceError)(nil); err != nil && !errors.As(err, &at) {
			t.Fatalf("untyped error %v", err)
		}
		if slices.Contains(docs, "") {
			t.Fatal("an empty document")
		}
	})
}
