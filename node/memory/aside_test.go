package memory

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

func TestAside(t *testing.T) {
	dir := t.TempDir()
	aside := Aside{Dir: dir, Reserve: func(int64) (func(), error) {
		t.Error("room for two bytes")
		return nil, nil
	}}
	if aside.Keep([][]byte{{1, 2}}) != nil {
		t.Error("two bytes lie in a file")
	}
	if (Aside{Dir: dir, Least: 2}).Keep([][]byte{{1, 2}}) == nil {
		t.Error("two bytes stay in memory")
	}
	a, b := bytes.Repeat([]byte{1}, LeastAside), []byte{2, 3}
	kept := Aside{Dir: dir}.Keep([][]byte{a, b})
	var got [3]byte
	if _, err := kept.ReadAt(got[:], int64(len(a)-1)); err != nil || got != [3]byte{1, 2, 3} {
		t.Fatalf("%v read: %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("files with names: %v, %v", names, err)
	}
	room := int64(0)
	take := func(bytes int64) (func(), error) { room += bytes; return func() { room -= bytes }, nil }
	if (Aside{Dir: dir + "/none", Reserve: take}).Keep([][]byte{a}) != nil || room != 0 {
		t.Error("bytes lie in a folder that is not there")
	}
	if (Aside{Dir: dir, Reserve: take}).Keep([][]byte{a, b}) == nil || room != LeastAside+2 {
		t.Errorf("room for %d bytes", room)
	}
	full := func(int64) (func(), error) { return nil, errors.New("full") }
	if (Aside{Dir: dir, Reserve: full}).Keep([][]byte{a}) != nil {
		t.Error("bytes lie in a file for which there is no room")
	}
}

func TestPercent(t *testing.T) {
	const mib = 1 << 20
	for live, want := range map[uint64]int{0: 100, 10 * mib: 100, 96 * mib: 100, 192 * mib: 50, 768 * mib: 12,
		8192 * mib: 12} {
		if got := percent(live, 64<<30, false, false); got != want {
			t.Errorf("%d MiB live: %d %% of garbage, want %d %%", live/mib, got, want)
		}
		if got := percent(live, 64<<30, true, false); got != min(want, max(1, int(100*TightGarbage/max(live, 1)))) {
			t.Errorf("%d MiB live, tight: %d %% of garbage", live/mib, got)
		}
	}
	for live, want := range map[uint64]int{0: 100, 10 * mib: 100, 64 * mib: 25, 512 * mib: 6, 8192 * mib: 1} {
		if got := percent(live, 64<<30, true, true); got != want {
			t.Errorf("%d MiB live, bare: %d %% of garbage, want %d %%", live/mib, got, want)
		}
	}
}

// Another process takes the memory: garbage takes half of the rest, and no less than a process needs that has nothing
// but tensors.
func TestPercentWithLittleLeft(t *testing.T) {
	const mib = 1 << 20
	for left, want := range map[uint64]int{0: 1, 8 * mib: 1, 256 * mib: 12, 64 << 30: 12} {
		if got := percent(1024*mib, left, false, false); got != want {
			t.Errorf("%d MiB left: %d %% of garbage, want %d %%", left/mib, got, want)
		}
	}
}

func TestPaceIsSetBack(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC holds instead")
	}
	a, b, c, d := Pace(0), Pace(1<<30), Tight(), Bare()
	a()
	a()
	c()
	c()
	d()
	if pace.users != 1 || pace.tight != 0 || pace.bare != 0 {
		t.Errorf("%d users, %d of them tight and %d bare, want 1 and none", pace.users, pace.tight, pace.bare)
	}
	b()
	if pace.users != 0 {
		t.Errorf("%d users, want none", pace.users)
	}
}
