package lint

import (
	"go/ast"
	"go/build/constraint"
	"strings"
	"testing"
)

// TestFilesForAllSystemsUseWhatAllHave: a file without a build constraint is part of the program on Windows, too, where
// package syscall lacks most names of other systems, and golang.org/x/sys/unix lacks all.
func TestFilesForAllSystemsUseWhatAllHave(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || forTests(s.dir()) || strings.HasPrefix(s.dir(), "internal/fault") || constrained(s) {
			continue
		}
		for _, i := range imports(s) {
			if strings.HasPrefix(i, "golang.org/x/sys/unix") || strings.HasPrefix(i, "golang.org/x/sys/windows") {
				t.Errorf("%s imports %s, which is of some systems: move what needs it to files with build constraints", s.name, i)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "syscall" && !onEverySystem(sel.Sel.Name) {
					t.Errorf("%s: syscall.%s is not on every system: move it to files with build constraints",
						s.set.Position(n.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// onEverySystem reports whether all systems of a release have a name of package syscall: errors, signals, and few
// others.
func onEverySystem(name string) bool {
	return name == "Errno" || name == "Signal" || name == strings.ToUpper(name) &&
		(strings.HasPrefix(name, "E") || strings.HasPrefix(name, "SIG"))
}

// constrained reports whether a file is part of the program on some systems only, by its name or by its first lines.
func constrained(s source) bool {
	name := strings.TrimSuffix(s.name, ".go")
	for _, system := range []string{"linux", "windows", "darwin", "amd64", "arm64"} {
		if strings.HasSuffix(name, "_"+system) {
			return true
		}
	}
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if c.Pos() < s.file.Package && constraint.IsGoBuild(c.Text) {
				return true
			}
		}
	}
	return false
}
