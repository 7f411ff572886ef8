package labelled

import (
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/source"
)

// file is one of lines of JSON, or of CSV if its name says so.
func file(name, text string) source.File {
	f := source.File{Name: name, Format: source.JSONL, Data: []byte(text)}
	if strings.Contains(name, "csv") {
		f.Format = source.CSV
	}
	return f
}

func read(f source.File, label string) (all []Example, err error) {
	return all, Each(f, label, func(x Example) error {
		all = append(all, x)
		return nil
	})
}

// The same examples are read from lines of JSON and from CSV, packed and not, in fields of any name.
func TestEach(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("\ufefflabel,id,text\n1,7,\"so, it\nrains\"\nfine,8,Sun!\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := []Example{{"so, it\nrains", "1"}, {"Sun!", "fine"}}
	named := file("b", `{"review": "so, it\nrains", "stars": 1}`+"\n\n"+`{"stars": "fine", "review": "Sun!", "x": null}`)
	named.Field = "review"
	for _, c := range []struct {
		file  source.File
		label string
	}{{file("a", `{"text": "so, it\nrains", "label": 1}`+"\n"+`{"label": "fine", "text": "Sun!"}`), DefaultLabel},
		{file("csv.gz", packed.String()), DefaultLabel}, {named, "stars"}} {
		if got, err := read(c.file, c.label); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", c.file.Name, got, err)
		}
	}
	if got, err := read(file("csv", ""), DefaultLabel); err != nil || got != nil {
		t.Errorf("an empty file: %q, %v", got, err)
	}
	stop := errors.New("stop")
	count := 0
	err := Each(named, "stars", func(Example) error { count++; return stop })
	if !errors.Is(err, stop) || count != 1 {
		t.Errorf("%d examples, %v", count, err)
	}
}

// An object or a row that is no example is named with its line.
func TestFaults(t *testing.T) {
	long := strings.Repeat("x", MaxLabel+1)
	for _, c := range []struct{ name, text, want string }{
		{"a", `{"text": "x"}`, `a:1: no such text: the object has no field "label"`},
		{"a", "\n" + `{"label": "x"}`, `a:2: no such text: the object has no field "text"`},
		{"a", `{"text": 3, "label": "x"}`, `the field "text" is not a string`},
		{"a", `{"text": null, "label": "x"}`, `the field "text" is not a string`},
		{"a", `{"text": "x", "label": null}`, `"label" is neither a text nor a number`},
		{"a", `{"text": "x", "label": ["y"]}`, `"label" is neither a text nor a number`},
		{"a", `{"text": "x", "label": ""}`, `"label" is neither a text nor a number`},
		{"a", `{"text": "x", "label": "` + long + `"}`, "more than 256 bytes"},
		{"a", `{"text": " \n", "label": "y"}`, "the text is empty"},
		{"a", `{"text": "` + strings.Repeat("x", MaxText+1) + `", "label": "y"}`, "more than 1048576 bytes"},
		{"a", "[]", "a:1: not a JSON object"},
		{"csv", "text,class\nx,y\n", `csv:1: no such text: the first row names no column "label"`},
		{"csv", "label\ny\n", `csv:1: no such text: the first row names no column "text"`},
		{"csv", "text,label\nx,y\nz,\n", "csv:3: no text with a class: the class has no name"},
		{"csv", "text,label\nx," + long + "\n", "csv:2: no text with a class: the class has no name"},
		{"csv", "text,label\nx\n", "csv:2: not comma-separated"},
		{"csv.gz", "text,label\nx,y\n", "cannot be unpacked"},
		{"csv", "text,label\nx,y\n\"" + strings.Repeat("x,y\n", maxRow/3), "is a quotation mark left open"},
	} {
		_, err := read(file(c.name, c.text), DefaultLabel)
		var at *source.Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := read(source.File{Name: "p", Format: source.Parquet}, DefaultLabel); !errors.Is(err, ErrExample) {
		t.Errorf("parquet: %v", err)
	}
}

func FuzzEach(f *testing.F) {
	f.Add("a", `{"text": "x", "label": 1}`)
	f.Add("csv", "text,label\n\"x\ny\",z\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		some, err := read(file(name, text), DefaultLabel)
		for _, x := range some {
			if x.check() != nil {
				t.Fatalf("%q, %v", x, err)
			}
		}
	})
}
