package memory

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Equal blobs of two parties are one file, and files without a name count while they are open.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for path, size := range map[string]int{"blobs/a": 1000, "network/one/blobs/a": 1000, "network/one/blobs/b": 100,
		"model": 10} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := files(dir, -1); got != 1110 {
		t.Errorf("%d bytes, want 1110", got)
	}
	before := files(dir, os.Getpid())
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if got := files(dir, os.Getpid()) - before; got != 5000 {
		t.Errorf("a file without a name adds %d bytes, want 5000", got)
	}
}

func TestMappedUnnamed(t *testing.T) {
	got := mappedUnnamed([]byte(`7f0000000000-7f0000002000 r--s 00000000 fe:00 12 /tmp/a b (deleted)
7f0000002000-7f0000003000 r--s 00002000 fe:00 12 /tmp/a b (deleted)
7f0000004000-7f0000005000 r-xp 00000000 fe:00 13 /bin/program
7f0000006000-7f0000007000 rw-s 00000000 00:01 14 /dev/zero (deleted)
7f0000008000-7f0000009000 rw-p 00000000 00:00 0
`))
	if len(got) != 1 || got["/tmp/a b (deleted)"] != 0x3000 {
		t.Errorf("mapped: %v", got)
	}
}

// A run that is off its plan by a fifth is within the bars; one that receives less than planned, too.
func TestOff(t *testing.T) {
	plan := Figures{Memory: 100, Disk: 100, Received: 100, Cost: 100, Seconds: 100, Processor: 100}
	for _, c := range []struct {
		run  Figures
		hold int
	}{
		{Figures{120, 80, 30, 119, 81, 100}, 6},
		{Figures{121, 79, 121, 121, 79, 121}, 0},
	} {
		holds := 0
		for _, b := range (Planned{Name: "x", Plan: plan, Run: c.run}).off() {
			if b.Holds {
				holds++
			}
		}
		if holds != c.hold {
			t.Errorf("%+v: %d bars hold, want %d", c.run, holds, c.hold)
		}
	}
}
