package tracking

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBoard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tb")
	b := OpenBoard(dir, 7, func(err error, dropped int) { t.Errorf("%v, %d left out", err, dropped) })
	b.Add(metrics())
	b.Restart(2)
	b.Close()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	raw, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := readEvents(t, raw); len(got) != 7 || got[1].step != 7 || !got[6].restarts || got[6].step != 2 {
		t.Errorf("%+v", got)
	}
	var none *TensorBoardWriter
	none.Add(nil)
	none.Restart(1)
	none.Close()
}

// TestBoardNeverBlocks writes where no folder can be, more than the queue holds.
func TestBoardNeverBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	lost := 0
	b := OpenBoard(file, 0, func(err error, dropped int) {
		if err == nil {
			t.Error("a file is a folder")
		}
		lost = dropped
	})
	for range 3 * boardQueue {
		b.Add(metrics())
	}
	b.Close()
	if want := 3 * boardQueue * len(metrics()); lost != want {
		t.Errorf("%d are left out, of %d", lost, want)
	}
}
