package memory

import (
	"bytes"
	"os"
	"testing"
)

func TestAside(t *testing.T) {
	dir := t.TempDir()
	if Aside(dir).Keep([][]byte{{1, 2}}) != nil {
		t.Error("two bytes lie in a file")
	}
	a, b := bytes.Repeat([]byte{1}, leastAside), []byte{2, 3}
	kept := Aside(dir).Keep([][]byte{a, b})
	var got [3]byte
	if _, err := kept.ReadAt(got[:], int64(len(a)-1)); err != nil || got != [3]byte{1, 2, 3} {
		t.Fatalf("%v read: %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("files with names: %v, %v", names, err)
	}
	if Aside(dir+"/none").Keep([][]byte{a}) != nil {
		t.Error("bytes lie in a folder that is not there")
	}
}

func TestPercent(t *testing.T) {
	const mib = 1 << 20
	for live, want := range map[uint64]int{0: 100, 10 * mib: 100, 96 * mib: 100, 192 * mib: 50, 768 * mib: 12,
		8192 * mib: 12} {
		if got := percent(live); got != want {
			t.Errorf("%d MiB live: %d %% of garbage, want %d %%", live/mib, got, want)
		}
	}
}

func TestPaceIsSetBack(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC holds instead")
	}
	a, b := Pace(0), Pace(1<<30)
	a()
	a()
	if pace.users != 1 {
		t.Errorf("%d users, want 1", pace.users)
	}
	b()
	if pace.users != 0 {
		t.Errorf("%d users, want none", pace.users)
	}
}
