package terminal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The fix of a file error is about what is wrong: a path, rights, or room.
func TestFileProblem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	below, _ := errors.AsType[*fs.PathError](os.MkdirAll(filepath.Join(file, "below"), 0o755))
	for name, c := range map[string]struct {
		err  *fs.PathError
		code int
		says string
	}{
		"a folder below a file": {below, ExitFailure, "is a file"},
		"a folder in no folder": {&fs.PathError{Op: "mkdir", Path: "/proc/x", Err: syscall.ENOENT}, ExitFailure,
			"cannot make the folder /proc/x"},
		"a file that is not there": {&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, ExitNotFound,
			"there is no x"},
		"a full disk": {&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ExitFailure, "no room"},
		"no rights": {&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, ExitFailure,
			"may not open x"},
		"a disk to read only": {&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EROFS}, ExitFailure,
			"may not mkdir x"},
		"there already": {&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EEXIST}, ExitConflict, "already"},
	} {
		err := FileProblem(c.err)
		if p := Problems(err)[0]; ExitCode(err) != c.code || !strings.Contains(p.What, c.says) || p.Fix == "" {
			t.Errorf("%s: exit %d, %+v", name, ExitCode(err), p)
		}
	}
}
