package memory

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Bytes that were written are read again, from memory or from a file that has no name and is gone in the end.
func TestSpool(t *testing.T) {
	part := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	for _, parts := range []int{3, spoolMemory>>20 + 3} {
		dir := filepath.Join(t.TempDir(), "new")
		s := NewSpool(dir)
		for i := range parts {
			part[0] = byte(i)
			if _, err := s.WriteAt(part, int64(i)<<20); err != nil {
				t.Fatal(err)
			}
		}
		one := make([]byte, 16)
		if _, err := s.ReadAt(one, 2<<20); err != nil || one[0] != 2 || one[15] != 'f' {
			t.Errorf("%q, %v", one, err)
		}
		all, err := s.Bytes(parts<<20 - 5)
		if err != nil || len(all) != parts<<20-5 || all[2<<20] != 2 || all[(parts-1)<<20] != byte(parts-1) {
			t.Fatalf("%d bytes, %v", len(all), err)
		}
		s.Rest(all[:5<<19])
		if all[1<<20] != 1 {
			t.Error("bytes that rested are others")
		}
		if names, _ := os.ReadDir(dir); len(names) > 0 {
			t.Errorf("%v lies in the folder", names)
		}
		if err := s.Close(); err != nil || s.Close() != nil {
			t.Errorf("closed: %v", err)
		}
	}
	if err := (*Spool)(nil).Close(); err != nil {
		t.Error(err)
	}
}
