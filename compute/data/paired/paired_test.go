package paired

import (
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

func read(f source.File, positive string) (all []Pair, err error) {
	return all, Each(f, positive, func(p Pair) error {
		all = append(all, p)
		return nil
	})
}

// The same pairs are read from lines of JSON and from CSV, in fields of any name.
func TestEach(t *testing.T) {
	want := []Pair{{"so, it\nrains?", "It rains."}, {"Sun?", "No."}}
	named := file("b", `{"answer": "It rains.", "query": "so, it\nrains?"}`+"\n\n"+
		`{"query": "Sun?", "answer": "No.", "x": 1}`)
	named.Field = "query"
	for _, c := range []struct {
		file     source.File
		positive string
	}{{file("a", `{"anchor": "so, it\nrains?", "positive": "It rains."}`+"\n"+`{"positive": "No.", "anchor": "Sun?"}`),
		DefaultPositive}, {named, "answer"},
		{file("csv", "\ufeffpositive,id,anchor\nIt rains.,7,\"so, it\nrains?\"\nNo.,8,Sun?\n"), DefaultPositive}} {
		if got, err := read(c.file, c.positive); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", c.file.Name, got, err)
		}
	}
	stop := errors.New("stop")
	if err := Each(named, "answer", func(Pair) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// An object or a row that is no pair is named with its line.
func TestFaults(t *testing.T) {
	long := strings.Repeat("x", MaxText+1)
	for _, c := range []struct{ name, text, want string }{
		{"a", `{"anchor": "x"}`, `a:1: no such text: the object has no field "positive"`},
		{"a", "\n" + `{"positive": "x"}`, `a:2: no such text: the object has no field "anchor"`},
		{"a", `{"anchor": 3, "positive": "x"}`, `the field "anchor" is not a string`},
		{"a", `{"anchor": "x", "positive": null}`, `the field "positive" is not a string`},
		{"a", `{"anchor": " \n", "positive": "y"}`, "the first text is empty"},
		{"a", `{"anchor": "x", "positive": ""}`, "the second text is empty"},
		{"a", `{"anchor": "x", "positive": "` + long + `"}`, "the second text has more than 1048576 bytes"},
		{"a", "[]", "a:1: not a JSON object"},
		{"csv", "anchor,text\nx,y\n", `csv:1: no such text: the first row names no column "positive"`},
		{"csv", "positive\ny\n", `csv:1: no such text: the first row names no column "anchor"`},
		{"csv", "anchor,positive\nx,y\nz,\n", "csv:3: no pair of texts: the second text is empty"},
		{"csv", "anchor,positive\nx\n", "csv:2: not comma-separated"},
	} {
		_, err := read(file(c.name, c.text), DefaultPositive)
		var at *source.Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := read(source.File{Name: "p", Format: source.Parquet}, DefaultPositive); !errors.Is(err, ErrPair) {
		t.Errorf("parquet: %v", err)
	}
}

func FuzzEach(f *testing.F) {
	f.Add("a", `{"anchor": "x", "positive": "1"}`)
	f.Add("csv", "anchor,positive\n\"x\ny\",z\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		some, err := read(file(name, text), DefaultPositive)
		for _, p := range some {
			if p.check() != nil {
				t.Fatalf("%q, %v", p, err)
			}
		}
	})
}
