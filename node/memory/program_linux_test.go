package memory

import (
	"os"
	"reflect"
	"runtime"
	"testing"
)

const listed = `00400000-01000000 r-xp 00000000 fe:00 17                 /opt/starling
Size:              12288 kB
Rss:                9000 kB
Anonymous:             0 kB
01000000-02000000 r--p 00c00000 fe:00 17                 /opt/starling
Anonymous:             8 kB
02000000-02400000 r--p 01c00000 fe:00 17                 /opt/starling
Anonymous:             0 kB
02400000-02500000 rw-p 02000000 fe:00 17                 /opt/starling
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 fe:00 18         /lib/other
Anonymous:             0 kB
7f0000200000-7f0000300000 rw-p 00000000 00:00 0
Anonymous:             0 kB
`

// Pages that were changed, may be changed, or are of another file stay.
func TestUnchanged(t *testing.T) {
	want := []span{{0x400000, 0x1000000}, {0x2000000, 0x2400000}}
	if got := unchanged([]byte(listed), "/opt/starling"); !reflect.DeepEqual(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// The program runs on after its pages were dropped.
func TestDropProgram(t *testing.T) {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	if len(unchanged(maps, file)) == 0 {
		t.Errorf("no pages of %s:\n%s", file, maps)
	}
	dropProgram()
	if err := os.WriteFile(t.TempDir()+"/x", maps, 0o600); err != nil {
		t.Error(err)
	}
}

// The start of a process does not count garbage, and is below its peak.
func TestStart(t *testing.T) {
	garbage := make([]byte, 64<<20)
	for i := range garbage {
		garbage[i] = 1
	}
	before := resident()
	runtime.KeepAlive(garbage)
	if start := Start(); start == 0 || start > before-uint64(len(garbage))/2 || start > Peak() {
		t.Errorf("%d bytes at the start, %d with garbage, %d at the most", start, before, Peak())
	}
}
