package fleet

import (
	"os"
	"path/filepath"
	"testing"
)

// Invitations are written to new files: those of an earlier command stay.
func TestInvitationsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "invitations")
	for _, want := range []string{"machine-1", "machine-2", "machine-3"} {
		file, err := writeInvitation(dir, want)
		if err != nil || file != filepath.Join(dir, want) {
			t.Fatalf("%s, %v", file, err)
		}
	}
	for _, name := range []string{"machine-1", "machine-3"} {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if info, failed := os.Stat(file); err != nil || failed != nil || string(text) != name+"\n" ||
			info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
