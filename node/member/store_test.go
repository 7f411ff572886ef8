package member

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
)

func TestRoomIsPromisedOnce(t *testing.T) {
	r := NewDiskBudget(100, "50% of the free disk")
	if err := errors.Join(r.Reserve("a", 60), r.Reserve("a", 70), r.Reserve("b", 30)); err != nil {
		t.Fatal(err)
	}
	short := (*ShortageError)(nil)
	if err := r.Reserve("c", 1); !errors.As(err, &short) ||
		*short != (ShortageError{Of: onDisk, Need: 1, Free: 0, Quota: 100, Share: "50% of the free disk"}) ||
		!strings.Contains(err.Error(), "50% of the free disk") {
		t.Errorf("%v", err)
	}
	r.Release("a")
	if err := r.Reserve("c", 70); err != nil {
		t.Error(err)
	}
}

// A job that can use more gets half of the bytes that are free, and leaves those to spare.
func TestRoomIsExtended(t *testing.T) {
	r := NewDiskBudget(100, "what --disk says")
	if err := errors.Join(r.Reserve("a", 20), r.Reserve("b", 10)); err != nil {
		t.Fatal(err)
	}
	if got := r.Extend("a", 1000, 30); got != 20 {
		t.Errorf("%d bytes more of 70 that are free, 30 to spare", got)
	}
	if got := r.Extend("b", 5, 0); got != 5 {
		t.Errorf("%d bytes more, it can use 5", got)
	}
	if got := r.Extend("b", 5, 60); got != 0 {
		t.Errorf("%d bytes more of those to spare", got)
	}
	if err := r.Reserve("c", 46); !errors.As(err, new(*ShortageError)) {
		t.Errorf("what was promised is promised again: %v", err)
	}
	if err := r.Reserve("c", 45); err != nil {
		t.Error(err)
	}
}

// Data that is put aside takes no room that a job was promised: its blobs would find none later.
func TestAsideLeavesPromisedRoom(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(t.Context(), filepath.Join(dir, rundir.DirBlobs), disk.Share{Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	b := NewDiskBudget(s.Usage().Quota, "what --disk says")
	aside := AsideIn(dir, s, b)
	if err := b.Reserve("job", 150); err != nil {
		t.Fatal(err)
	}
	if _, err := aside.Reserve(51); !errors.As(err, new(*ShortageError)) {
		t.Errorf("51 bytes of 50 that no job was promised: %v", err)
	}
	giveBack, err := aside.Reserve(50)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), blobtest.Data(1, 150)); err != nil {
		t.Errorf("the blobs of the job: %v", err)
	}
	if err := b.Reserve("other", 1); !errors.As(err, new(*ShortageError)) {
		t.Errorf("a byte for another job: %v", err)
	}
	giveBack()
	if err := b.Reserve("other", 50); err != nil {
		t.Error(err)
	}
}

// Jobs use at most the memory that the owner gives, else three quarters of the free memory at their start.
func TestMemoryIsPromised(t *testing.T) {
	const mib = 1 << 20
	short := (*ShortageError)(nil)
	err := NewMemoryBudget(2).Reserve("a", 3*mib)
	if want := (ShortageError{Of: inMemory, Need: 3 * mib, Free: 2 * mib, Quota: 2 * mib,
		Share: "what --memory says"}); !errors.As(err, &short) ||
		*short != want || !UnacceptableError(err) {
		t.Errorf("%v", err)
	}
	r := NewMemoryBudget(0)
	if err := r.Reserve("a", math.MaxInt64); !errors.As(err, &short) {
		t.Errorf("a job that needs all memory that there can be: %v", err)
	}
	free := int64(100)
	r = &Budget{of: inMemory, quota: 150, now: func() (int64, bool) { return free, true }, promised: map[string]int64{}}
	if err := r.Reserve("a", 101); !errors.As(err, &short) || short.Free != 100 {
		t.Errorf("more than is free: %v", err)
	}
	if err := r.Reserve("a", 100); err != nil {
		t.Error(err)
	}
	free = 0 // what it was promised is in use
	if err := r.Reserve("a", 100); err != nil {
		t.Error(err)
	}
}

// Rounds that were rolled back are still audited: what they need is kept like that of open ones.
func TestRolledBackRoundsAreKept(t *testing.T) {
	cid := func(text string) string { return blob.Of([]byte(text)).String() }
	lap := func(round uint32, name string) work.RoundState {
		return work.RoundState{Round: round, Base: terms.Checkpoint{Round: round, CID: cid(name)},
			Units: work.Units{{Commit: work.Commitment{UpdateCID: cid(name + " update")}}}}
	}
	store, err := quota.New(t.Context(), blob.NewMemory(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	k := &replicator{job: &bundle.Job{}, store: store, shards: map[string][]blob.CID{}}
	s := run.State{
		Progress: progress.Progress{
			Window: work.Window{
				RoundState: lap(3, "current"),
				Open:       []work.RoundState{lap(2, "open")},
				RolledBack: []work.RoundState{lap(3, "void")},
			},
		},
	}
	kept := map[string]bool{}
	for _, c := range k.open(t.Context(), s) {
		kept[c.String()] = true
	}
	for _, name := range []string{"current", "open", "void", "current update", "open update", "void update"} {
		if !kept[cid(name)] {
			t.Errorf("%s is not kept", name)
		}
	}
}
