package federated

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/node/rundir"
)

// The file of rounds is only added to. Rounds that no checkpoint has are cut off, and so is half a line. A file that
// lacks rounds is refused, because the epsilon of the report counts them.
func TestTheFileOfRounds(t *testing.T) {
	dir := t.TempDir()
	for i := range uint32(4) {
		if err := appendRound(dir, Record{Round: i, Cohort: 5 - int(i), Sent: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, FileRounds)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-3], 0o644); err != nil {
		t.Fatal(err)
	}
	var all tally
	if err := readRounds(dir, 4, all.add); !errors.Is(err, rundir.ErrDamaged) {
		t.Errorf("half of the last round: %v", err)
	}
	all = tally{}
	if err := readRounds(dir, 3, all.add); err != nil || all.sums != 3 || all.cohort != 3 || all.most() != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := appendRound(dir, Record{Round: 3, Void: "no sum"}); err != nil {
		t.Fatal(err)
	}
	all = tally{}
	if err := readRounds(dir, 4, all.add); err != nil || all.sums != 3 || all.void != 1 {
		t.Errorf("after half a line was cut off: %+v, %v", all, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := readRounds(dir, 4, all.add); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
