package runs

import (
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-network/starling/web/browser"
)

// saved is a figure that was saved.
type saved browser.Saved

// read reads the files that a figure was saved as: the points that are drawn are in the one, and the picture in the
// others.
func (s saved) read(t *testing.T, dir string) {
	t.Helper()
	name := strings.ReplaceAll(strings.ToLower(s.Title), " ", "-")
	if len(s.Names) != 3 {
		t.Fatalf("%s is saved as %q", s.Title, s.Names)
	}
	for i, kind := range []string{".csv", ".svg", ".png"} {
		if !strings.HasSuffix(s.Names[i], name+kind) {
			t.Errorf("%s is saved as %q", s.Title, s.Names)
		}
	}
	s.readCSV(t, filepath.Join(dir, s.Names[0]))
	width, height := s.readSVG(t, filepath.Join(dir, s.Names[1]))
	f, err := os.Open(filepath.Join(dir, s.Names[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// for screens of twice as many dots
	if c, err := png.DecodeConfig(f); err != nil || c.Width != 2*width || c.Height != 2*height {
		t.Errorf("%s: %+v, %v, of a drawing of %d by %d", s.Names[2], c, err, width, height)
	}
	if n := shades(t, f.Name()); n < 3 {
		t.Errorf("%s has %d colours", s.Names[2], n)
	}
}

// readCSV wants a row for each point that is drawn, with its series and two numbers, or, of a front, with those that it
// marks.
func (s saved) readCSV(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", s.Title, err)
	}
	heads := [][]string{{"series", "inner step", "value"}, {"series", "step", "value"},
		{"variant", "seconds", "eval_loss", "unbeaten"}, {"variant", "bytes", "eval_loss", "unbeaten"}}
	if !slices.ContainsFunc(heads, func(h []string) bool { return slices.Equal(h, rows[0]) }) {
		t.Errorf("%s: the head is %q", s.Title, rows[0])
	}
	drawn, last := 0, map[string]float64{}
	for _, r := range rows[1:] {
		x, err := strconv.ParseFloat(r[1], 64)
		y, failed := strconv.ParseFloat(r[2], 64)
		if err := errors.Join(err, failed); err != nil || math.IsNaN(x+y) || math.IsInf(x+y, 0) || r[0] == "" {
			t.Fatalf("%s: %q: %v", s.Title, r, err)
		}
		if before, ok := last[r[0]]; ok && x <= before {
			t.Fatalf("%s: %q comes after %v", s.Title, r, before)
		}
		if last[r[0]] = x; len(r) == 3 || r[3] == "true" {
			drawn++
		}
	}
	if drawn != s.Points || drawn == 0 {
		t.Errorf("%s: %d points are saved and %d drawn", s.Title, drawn, s.Points)
	}
}

// readSVG wants a drawing that says what it is, in well-formed XML that names nothing outside of it.
func (s saved) readSVG(t *testing.T, path string) (width, height int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, words, curves, spaces := xml.NewDecoder(strings.NewReader(string(text))), "", 0, map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			spaces[token.Name.Space] = true
			for _, a := range token.Attr {
				switch {
				case a.Name.Local == "href" || strings.Contains(a.Value, "url("):
					t.Errorf("%s: %s is %s", path, a.Name.Local, a.Value)
				case a.Name.Local == "viewBox" && width == 0:
					var x, y int
					if _, err := fmt.Sscan(a.Value, &x, &y, &width, &height); err != nil {
						t.Errorf("%s: %s: %v", path, a.Value, err)
					}
				case a.Name.Local == "d" && a.Value != "":
					curves++
				}
			}
		case xml.CharData:
			words += string(token)
		}
	}
	if curves == 0 || !strings.Contains(words, s.Title) || len(spaces) != 1 || !spaces["http://www.w3.org/2000/svg"] {
		t.Errorf("%s: %d curves, %q, in %v", path, curves, words, spaces)
	}
	return width, height
}
