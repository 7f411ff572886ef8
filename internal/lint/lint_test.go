// Package lint holds the rules of the repository as tests: which folder may import which, what a pure package may not
// do, and how big packages, types and lines may be. It checks the source of this module, not its behaviour.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/starling-network/starling/"

// layers, from the bottom up. A folder imports only folders before it.
var layers = []string{"canon", "proof", "compute", "exchange", "protocol", "network", "chain", "role", "client", "web",
	"sim", "node", "cmd"}

// exceptions to the order, each with its reason. A package in the list may import the folder given.
var exceptions = map[string]string{}

// forbidden imports inside the order.
var forbidden = []struct{ from, to, why string }{
	{"protocol", module + "compute", "the rules are about digests, never about tensors"},
	{"protocol", module + "exchange", "the rules are about digests, never about tensors"},
	{"role", module + "compute/record", "a role runs programs and never writes them"},
	{"role", module + "compute/model", "a role runs programs and never writes them"},
	{"role", "github.com/gomlx", "a role runs programs and never writes them"},
	{"chain", "github.com/gomlx", "the chain runs operators and never writes programs"},
	{"compute/program", "github.com/gomlx", "a program stands on its own"},
	{"compute/lower", "github.com/gomlx", "a plan stands on its own"},
	{"compute/lower", module + "compute/kernel", "a plan is data, for the processor and for devices alike"},
	{"compute/cpu", "github.com/gomlx", "the executor stands on its own"},
	{"compute/recompute", "github.com/gomlx", "the chain runs operators and never writes programs"},
	{"compute/train", "github.com/gomlx", "the inner loop stands on its own"},
	{"chain", "github.com/consensys/gnark/", "the chain verifies proofs, and makes none"},
	{"protocol", "github.com/ethereum", licence},
	{"network", "github.com/ethereum", licence},
	{"chain", "github.com/ethereum", licence},
	{"role", "github.com/ethereum", licence},
	{"client", "github.com/ethereum", licence},
	{"web", "github.com/ethereum", licence},
	{"sim", "github.com/ethereum", licence},
	{"node", "github.com/ethereum", licence},
	{"cmd", "github.com/ethereum", licence},
	{"contracts", "github.com/ethereum", licence},
}

// licence is why no program imports go-ethereum for itself.
const licence = "go-ethereum has another licence: tests alone import it"

// pure folders have no clock, no dice, no I/O.
var pure = []string{"canon", "compute", "exchange", "protocol", "role"}

var impure = []string{"os", "net", "net/http", "time", "math/rand", "math/rand/v2", "crypto/rand", "io/ioutil", "log",
	"log/slog", "os/exec"}

// mayFork are the only pure packages with goroutines: they join over a fixed partition.
var mayFork = []string{"compute/kernel"}

// inexact functions of package math give other bits on other ports.
var inexact = []string{"Exp", "Exp2", "Expm1", "Log", "Log2", "Log10", "Log1p", "Pow", "Tanh", "Sinh", "Cosh", "Sin",
	"Cos", "Tan", "Asin", "Acos", "Atan", "Atan2", "Erf", "Erfc", "Gamma", "Hypot", "Cbrt", "Sincos"}

const (
	maxFileLines     = 600
	maxFunctionLines = 100
)

var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base"}

type source struct {
	name string // slash-separated, from the root of the module
	file *ast.File
	set  *token.FileSet
	text []byte
}

func (s source) dir() string { return path.Dir(s.name) }
func (s source) test() bool  { return strings.HasSuffix(s.name, "_test.go") }
func (s source) generated() bool {
	return ast.IsGenerated(s.file)
}

// walk reads each file of the module whose name has the ending. Names are slash-separated, from the root of the module.
func walk(ending string, do func(name string, text []byte) error) error {
	root := filepath.Join("..", "..")
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" ||
			d.Name() == "out" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ending) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return do(filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))), text)
	})
}

// parsed is each source of the module, which is read once for all tests.
var parsed = sync.OnceValues(func() ([]source, error) {
	var out []source
	err := walk(".go", func(name string, text []byte) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join("..", "..", name), text,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, source{name, file, set, text})
		return nil
	})
	return out, err
})

func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found only %d source files", len(out))
	}
	return out
}

func under(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }

func top(dir string) int { return slices.Index(layers, strings.SplitN(dir, "/", 2)[0]) }

func imports(s source) []string {
	var out []string
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			panic(err)
		}
		out = append(out, p)
	}
	return out
}

func TestFoldersImportDownward(t *testing.T) {
	for _, s := range sources(t) {
		from := top(s.dir())
		if from < 0 {
			continue // tests and tools outside the house
		}
		for _, i := range imports(s) {
			to, ours := strings.CutPrefix(i, module)
			if ours && top(to) > from && exceptions[s.dir()] != to {
				t.Errorf("%s imports %s, which stands above it", s.name, to)
			}
			for _, f := range forbidden {
				if under(s.dir(), f.from) && !s.test() && under(i, f.to) {
					t.Errorf("%s imports %s: %s", s.name, i, f.why)
				}
			}
		}
	}
}

// TestImportsStandInGroups: the imports of the standard library, of others and of the project, in this order, with an
// empty line between groups.
func TestImportsStandInGroups(t *testing.T) {
	for _, s := range sources(t) {
		if s.generated() {
			continue
		}
		last, line := -1, 0
		for _, i := range s.file.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			group, first, end := 0, i.Pos(), s.set.Position(i.End()).Line
			if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
				group = 1
			}
			if strings.HasPrefix(p, module) {
				group = 2
			}
			if i.Doc != nil {
				first = i.Doc.Pos()
			}
			apart := s.set.Position(first).Line > line+1
			if last >= 0 && (group < last || (group > last) != apart) {
				t.Errorf("%s: the import of %s is in another group", s.name, p)
				break
			}
			last, line = group, end
		}
	}
}

func TestPurePackagesArePure(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !slices.ContainsFunc(pure, func(f string) bool { return under(s.dir(), f) }) ||
			strings.Contains(s.dir()+"/", "/gen/") || forTests(s.dir()) {
			continue
		}
		for _, i := range imports(s) {
			if slices.Contains(impure, i) {
				t.Errorf("%s imports %q: a pure package takes time, seeds and bytes as arguments", s.name, i)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt:
				if !slices.Contains(mayFork, s.dir()) {
					t.Errorf("%s: goroutines in a pure package", s.set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "math" && slices.Contains(inexact, n.Sel.Name) {
					t.Errorf("%s: math.%s has other bits on other ports; use compute/detmath", s.set.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestProcessorsAreCountedOnce: the program sets GOMAXPROCS to more than the processors, so the number of goroutines
// that compute is kernel.Cores.
func TestProcessorsAreCountedOnce(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.dir() == "compute/kernel" || s.dir() == "node/maxprocs" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if n, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "runtime" && n.Sel.Name == "GOMAXPROCS" {
					t.Errorf("%s: runtime.GOMAXPROCS is not the number of processors; use kernel.Cores", s.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// forTests reports whether a package, by its name, is one that tests alone import.
func forTests(dir string) bool { return strings.HasSuffix(dir, "test") }

func TestPackagesForTestsStayThere(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || forTests(s.dir()) {
			continue
		}
		for _, i := range imports(s) {
			if strings.HasPrefix(i, module) && forTests(i) {
				t.Errorf("%s imports %s, which is for tests alone", s.name, i)
			}
		}
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	said := map[string]bool{}
	for _, s := range sources(t) {
		if s.generated() || s.test() && s.dir() != "internal/lint" {
			continue
		}
		if slices.Contains(bannedNames, s.file.Name.Name) {
			t.Errorf("%s: a package is named for what it provides, not %q", s.name, s.file.Name.Name)
		}
		text := ""
		if s.file.Doc != nil {
			text = s.file.Doc.Text()
		}
		said[s.dir()] = said[s.dir()] || len(text) > 80
	}
	for _, dir := range slices.Sorted(keys(said)) {
		if !said[dir] {
			t.Errorf("%s has no package comment that says what it is and is not", dir)
		}
	}
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if s.generated() {
			continue
		}
		if n := strings.Count(string(s.text), "\n"); n > maxFileLines {
			t.Errorf("%s has %d lines, at most %d", s.name, n, maxFileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test() {
				continue
			}
			if n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, at most %d", s.name, f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestNoSleepsInUnitTests(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && x.Sel.Name == "Sleep" {
				if p, ok := x.X.(*ast.Ident); ok && p.Name == "time" {
					t.Errorf("%s: a test that sleeps is slow or flaky", s.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
