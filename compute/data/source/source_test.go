package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	reference "github.com/parquet-go/parquet-go"

	"github.com/starling-network/starling/compute/data/parquet"
)

const lines = "{\"text\":\"a\"}\n{\"text\":\"\"}\n{\"text\":\"é\"}\n"

func gzipped(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	io.WriteString(w, text)
	w.Close()
	return out.Bytes()
}

func zstandard(text string) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

func column(t testing.TB, docs ...string) []byte {
	type row struct {
		Text string `parquet:"text"`
	}
	var out bytes.Buffer
	rows := make([]row, len(docs))
	for i, d := range docs {
		rows[i].Text = d
	}
	if err := reference.Write(&out, rows); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// all are the documents of a file.
func all(f File) (docs []Document, err error) {
	for d, err := range f.Documents(readAhead, nil) {
		if err != nil {
			return docs, err
		}
		docs = append(docs, d)
	}
	return docs, nil
}

func TestDocuments(t *testing.T) {
	for _, c := range []struct {
		name string
		in   File
		want []string
	}{
		{"text is one document", File{Format: Text, Data: []byte("a\n\nb\n")}, []string{"a\n\nb\n"}},
		{"text of any bytes", File{Format: Text, Data: []byte("a\xff\x00")}, []string{"a\xff\x00"}},
		{"empty text", File{Format: Text}, nil},
		{"lines", File{Format: JSONL, Data: []byte("{\"text\":\"a\\nb\"}\r\n\n{\"n\":1,\"text\":\"é\"}")},
			[]string{"a\nb", "é"}},
		{"another field", File{Format: JSONL, Field: "body", Data: []byte(`{"text":"a","body":"b"}`)}, []string{"b"}},
		{"empty documents are left out", File{Format: JSONL, Data: []byte("{\"text\":\"\"}\n{\"text\":\"a\"}\n")},
			[]string{"a"}},
		{"gzip", File{Format: JSONL, Name: "x.jsonl.gz", Data: gzipped(lines)}, []string{"a", "é"}},
		{"gzip in two parts", File{Format: Text, Name: "x.gz", Data: append(gzipped("a"), gzipped("b")...)},
			[]string{"ab"}},
		{"zstd", File{Format: JSONL, Name: "x.jsonl.zst", Data: zstandard(lines)}, []string{"a", "é"}},
		{"zstd of text", File{Format: Text, Name: "dir/x.txt.zst", Data: zstandard("a\n")}, []string{"a\n"}},
		{"the name decides", File{Format: Text, Name: "x.txt", Data: zstandard("")}, []string{string(zstandard(""))}},
		{"parquet", File{Format: Parquet, Data: column(t, "a", "", "é\n")}, []string{"a", "é\n"}},
		{"csv", File{Format: CSV, Data: []byte("n,text\r\n1,a\r\n2,\r\n3,\"b,\n\"\"c\"\"\"\r\n")},
			[]string{"a", "b,\n\"c\""}},
		{"csv, packed, another column", File{Format: CSV, Field: "body", Name: "x.csv.gz", Data: gzipped("text,body\na,b")},
			[]string{"b"}},
		{"csv, byte order mark", File{Format: CSV, Data: []byte("\ufefftext\na\n")}, []string{"a"}},
		{"empty csv", File{Format: CSV}, nil},
		{"csv without rows", File{Format: CSV, Data: []byte("text\n")}, nil},
		{"byte order mark", File{Format: JSONL, Data: []byte("\ufeff{\"text\":\"a\"}\n")}, []string{"a"}},
	} {
		docs, err := all(c.in)
		var got []string
		for _, d := range docs {
			got = append(got, d.Text)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestDocumentsSaysWhereAndWhat(t *testing.T) {
	file := string(column(t, "a", "b"))
	for _, c := range []struct {
		format, data string
		line         int
		want         error
	}{
		{"tsv", "a\tb", 0, ErrFormat},
		{CSV, "a,b\n1,2\n", 1, ErrField},
		{CSV, "text,b\n1,2\n3\n", 3, ErrCSV},
		{CSV, "text\n\"a\n", 2, ErrCSV},
		{Parquet, file[:len(file)/2], 0, parquet.ErrMalformed},
		{Parquet, strings.ReplaceAll(file, "text", "body"), 0, parquet.ErrColumn},
		{JSONL, "{\"text\":\"a\"}\n\nnope\n", 3, ErrLine},
		{JSONL, "{\"text\":\"a\"} {\"text\":\"b\"}\n", 1, ErrLine},
		{JSONL, "null", 1, ErrLine},
		{JSONL, "[\"a\"]", 1, ErrLine},
		{JSONL, "{\"text\":\"a\"}\n{\"Text\":\"a\"}", 2, ErrField},
		{JSONL, "{\"text\":7}", 1, ErrField},
		{JSONL, "{\"text\":null}", 1, ErrField},
	} {
		_, err := all(File{Format: c.format, Name: "f", Data: []byte(c.data)})
		var at *Error
		if !errors.As(err, &at) || at.Name != "f" || at.Line != c.line || !errors.Is(err, c.want) {
			t.Errorf("%q: got %v, want line %d, %v", c.data, err, c.line, c.want)
		}
	}
}

func TestPackedSourcesAreRefused(t *testing.T) {
	for ending, pack := range map[string]func(string) []byte{".gz": gzipped, ".zst": zstandard} {
		whole := pack(strings.Repeat(lines, 1000))
		for _, data := range [][]byte{nil, []byte("no archive"), whole[:len(whole)/2], whole[:len(whole)-1],
			append(bytes.Clone(whole), 'x')} {
			_, err := all(File{Format: JSONL, Name: "f" + ending, Data: data})
			var at *Error
			if len(data) == 0 && ending == ".zst" && err == nil {
				continue // no frames are a valid file
			}
			if !errors.As(err, &at) || at.Name != "f"+ending || !errors.Is(err, ErrPacked) {
				t.Errorf("%s, %d bytes: %v", ending, len(data), err)
			}
		}
		r, err := File{Name: ending, Data: pack("0123456789")}.unpacked()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != "0123456789" || r.Close() != nil {
			t.Errorf("%s: %q, %v", ending, got, err)
		}
	}
}

func FuzzUnpacked(f *testing.F) {
	f.Add(gzipped(lines))
	f.Add(zstandard(lines))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"f.gz", "f.zst"} {
			r, err := File{Name: name, Data: data}.unpacked()
			if err == nil {
				_, err = io.CopyN(io.Discard, r, 1<<16)
				_ = r.Close()
			}
			if err != nil && !errors.Is(err, ErrPacked) && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	})
}

func FuzzDocuments(f *testing.F) {
	f.Add([]byte("{\"text\":\"a\"}\n{\"text\":1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := all(File{Format: JSONL, Data: data})
		if at := (*Error)(nil); err != nil && !errors.As(err, &at) {
			t.Fatalf("untyped error %v", err)
		}
		if slices.ContainsFunc(docs, func(d Document) bool { return d.Text == "" }) {
			t.Fatal("an empty document")
		}
	})
}
