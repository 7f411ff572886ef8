package node_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/validator"
)

// Of the end of a log whole lines are read, and what is added while it is followed.
func TestReadLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, keystore.FileValidatorLog)
	if err := os.WriteFile(path, []byte("first\nsecond\nthird\nfo"), 0o644); err != nil {
		t.Fatal(err)
	}
	var lines []string
	add := func(more []string) error { lines = append(lines, more...); return nil }
	for bytes, want := range map[int64]string{1000: "first second third", 12: "third", 1: ""} {
		lines = nil
		if err := validator.ReadLog(t.Context(), dir, bytes, false, add); err != nil || strings.Join(lines, " ") != want {
			t.Errorf("%d bytes: %q, %v", bytes, lines, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines = nil
	err := validator.ReadLog(ctx, dir, 9, true, func(more []string) error {
		if lines = append(lines, more...); lines[len(lines)-1] == "fourth" {
			cancel()
			return nil
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("urth\n")
			_ = f.Close()
		}
		return err
	})
	if err != nil || strings.Join(lines, " ") != "third fourth" {
		t.Errorf("followed: %q, %v", lines, err)
	}
}
