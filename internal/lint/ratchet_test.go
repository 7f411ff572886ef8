package lint

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

var rewrite = flag.Bool("rewrite", false, "write the counts of testdata/*.txt again, unless their sum grew")

// A ratchet is a limit that some places exceed. Its file, testdata/NAME.txt, holds each of them with its count, which
// may only fall.
type ratchet struct {
	name  string
	unit  string
	limit int
	count func([]source) map[string]int
}

var ratchets = []ratchet{
	{"package_lines", "lines outside tests and generated files", 1500, packageLines},
	{"node_lines", "lines outside tests and generated files", 1300, nodeLines},
	{"type_methods", "methods", 25, typeMethods},
	{"columns", "lines of more than 120 columns", 0, wideLines},
	{"prose", "unclear turns of phrase", 0, prose},
	{"links_sdk", "test binaries that link the Cosmos SDK", 0, linking(ofSDK)},
	{"links_server", "test binaries that link the server of the Cosmos SDK", 0, linking(ofServer)},
}

// maxColumns counts characters; a tab is one.
const maxColumns = 120

func packageLines(all []source) map[string]int {
	out := map[string]int{}
	for _, s := range all {
		if !s.test() && !s.generated() {
			out[s.dir()] += bytes.Count(s.text, []byte("\n"))
		}
	}
	return out
}

// nodeLines are packageLines of the packages of node/, which assemble processes from others.
func nodeLines(all []source) map[string]int {
	out := packageLines(all)
	maps.DeleteFunc(out, func(dir string, _ int) bool { return dir != "node" && !strings.HasPrefix(dir, "node/") })
	return out
}

func typeMethods(all []source) map[string]int {
	out := map[string]int{}
	for _, s := range all {
		if s.test() || s.generated() {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				out[s.dir()+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	return out
}

func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	panic(fmt.Sprintf("receiver of type %T", x))
}

func wideLines(all []source) map[string]int {
	out := map[string]int{}
	for _, s := range all {
		if s.generated() {
			continue
		}
		for line := range bytes.Lines(s.text) {
			if utf8.RuneCount(bytes.TrimRight(line, "\n")) > maxColumns {
				out[s.name]++
			}
		}
	}
	return out
}

// above returns the places over the limit.
func (r ratchet) above(all []source) map[string]int {
	out := r.count(all)
	for k, n := range out {
		if n <= r.limit {
			delete(out, k)
		}
	}
	return out
}

func (r ratchet) file() string { return filepath.Join("testdata", r.name+".txt") }

func (r ratchet) read() (map[string]int, error) {
	text, err := os.ReadFile(r.file())
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		n, place, ok := strings.Cut(strings.TrimSpace(line), " ")
		count, err := strconv.Atoi(n)
		if !ok || err != nil || out[place] != 0 {
			return nil, fmt.Errorf("%s:%d: want one line \"COUNT PLACE\" for each place, not %q", r.file(), i+1, line)
		}
		out[place] = count
	}
	return out, nil
}

func (r ratchet) write(counts map[string]int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, where there are more than %d. Written by go test ./internal/lint -rewrite\n", r.unit, r.limit)
	for _, k := range slices.Sorted(keys(counts)) {
		fmt.Fprintf(&b, "%5d %s\n", counts[k], k)
	}
	return os.WriteFile(r.file(), []byte(b.String()), 0o644)
}

// excess is the sum of the counts over the limit, which may not grow. Code may move from one place to another.
func (r ratchet) excess(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n - r.limit
	}
	return sum
}

// TestRatchets holds every count where it is: above its entry a place grew, and below it the entry is out of date.
func TestRatchets(t *testing.T) {
	all := sources(t)
	for _, r := range ratchets {
		have := r.above(all)
		want, err := r.read()
		if err != nil {
			t.Error(err)
			continue
		}
		if *rewrite {
			if now, before := r.excess(have), r.excess(want); now > before {
				t.Errorf("%s: the sum over the limit grew from %d to %d: the list was not written", r.file(), before, now)
			} else if err := r.write(have); err != nil {
				t.Error(err)
			} else {
				want = have
			}
		}
		for _, fault := range r.compare(have, want) {
			t.Error(fault)
		}
	}
}

func (r ratchet) compare(have, want map[string]int) []string {
	var faults []string
	for _, k := range slices.Sorted(keys(have)) {
		if have[k] > max(want[k], r.limit) {
			faults = append(faults, fmt.Sprintf("%s: %d %s, at most %d", k, have[k], r.unit, max(want[k], r.limit)))
		}
	}
	for _, k := range slices.Sorted(keys(want)) {
		if have[k] < want[k] {
			faults = append(faults, fmt.Sprintf("%s: fewer %s than the %d of %s: run go test ./internal/lint -rewrite", k,
				r.unit, want[k], r.file()))
		}
	}
	return faults
}

// TestRatchetHoldsCounts checks the comparison itself.
func TestRatchetHoldsCounts(t *testing.T) {
	r := ratchet{name: "lines", unit: "lines", limit: 10}
	for _, c := range []struct {
		why        string
		have, want map[string]int
		faults     int
	}{
		{"as listed", map[string]int{"a": 12}, map[string]int{"a": 12}, 0},
		{"grown", map[string]int{"a": 13}, map[string]int{"a": 12}, 1},
		{"shrunk", map[string]int{"a": 11}, map[string]int{"a": 12}, 1},
		{"below the limit now", nil, map[string]int{"a": 12}, 1},
		{"new", map[string]int{"b": 11}, nil, 1},
		{"moved", map[string]int{"b": 12}, map[string]int{"a": 12}, 2},
	} {
		if got := r.compare(c.have, c.want); len(got) != c.faults {
			t.Errorf("%s: %q, want %d faults", c.why, got, c.faults)
		}
	}
}

// TestNumbers prints how far the source is from its limits: go test ./internal/lint -run Numbers -v.
func TestNumbers(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("it prints with -v only")
	}
	all := sources(t)
	for _, r := range ratchets {
		have := r.above(all)
		sum := 0
		for _, n := range have {
			sum += n
		}
		t.Logf("%-14s %4d places with more than %d %s; sum %d", r.name, len(have), r.limit, r.unit, sum)
	}
	lines := packageLines(all)
	largest := slices.MaxFunc(slices.Sorted(keys(lines)), func(a, b string) int {
		return cmp.Compare(node(a)*lines[a], node(b)*lines[b])
	})
	t.Logf("%-14s %s has %d lines", "node", largest, lines[largest])
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-14s %d lines", "README.md", bytes.Count(readme, []byte("\n")))
}

// node is 1 for a package under node/ and 0 for another.
func node(dir string) int {
	if under(dir, "node") {
		return 1
	}
	return 0
}
