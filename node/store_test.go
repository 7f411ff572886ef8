package node

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/engine"
)

// longJob is smallJob with a larger model and more rounds: what it makes is several times what it needs at a time.
func longJob(t *testing.T) *job.Job {
	t.Helper()
	j, err := job.Load(smallJob(t).Path, "training.max_steps=64", "strategy.sync_steps=2", "model.config.n_embd=32")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A party's disk stops growing: it keeps within what its run needs at a time, and the run ends well all the same.
func TestDiskStopsGrowing(t *testing.T) {
	j := longJob(t)
	b, err := NewBlueprint(j)
	if err != nil {
		t.Fatal(err)
	}
	order, err := b.order()
	if err != nil {
		t.Fatal(err)
	}
	quota := engine.Footprint(b.Spec, b.Step, b.Manifest, order.Terms, DefaultKeep)
	dir := filepath.Join(t.TempDir(), "out")
	largest := map[string]int64{}
	watch := func(Progress) {
		stores, err := filepath.Glob(filepath.Join(dir, dirNetwork, "*", dirBlobs))
		if err != nil {
			t.Error(err)
		}
		for _, s := range stores {
			largest[s] = max(largest[s], size(s))
		}
	}
	s := mustTrain(t, TrainOptions{Job: j, Dir: dir, Progress: watch, disk: disk.Share{Bytes: quota}})
	if s.Rounds != 32 || s.SlashedUzen != 0 {
		t.Errorf("%+v", s)
	}
	made := int64(0) // by all rounds
	for _, p := range b.Genesis.Params {
		made += int64(s.Rounds) * int64(len(p.Bytes())) * int64(2+b.Spec.Units)
	}
	if len(largest) != 4 || made < 2*quota {
		t.Errorf("%d parties, %d bytes made, a quota of %d", len(largest), made, quota)
	}
	for s, bytes := range largest {
		if bytes > quota+quota/50 { // a blob is on the disk before it counts, and a manifest does not count
			t.Errorf("%s had %d bytes, its quota is %d", s, bytes, quota)
		}
	}

	_, err = Train(t.Context(), TrainOptions{Job: j, Dir: filepath.Join(t.TempDir(), "small"), disk: disk.Share{Bytes: quota - 1}})
	if short := (*RoomError)(nil); !errors.As(err, &short) || short.Need != quota {
		t.Errorf("a disk that is too small: %v", err)
	}
}

// size is how many bytes the files in a folder have.
func size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

func TestRoomIsPromisedOnce(t *testing.T) {
	r := newRoom(100)
	if err := errors.Join(r.promise("a", 60), r.promise("a", 70), r.promise("b", 30)); err != nil {
		t.Fatal(err)
	}
	short := (*RoomError)(nil)
	if err := r.promise("c", 1); !errors.As(err, &short) || *short != (RoomError{Of: onDisk, Need: 1, Free: 0, Quota: 100}) {
		t.Errorf("%v", err)
	}
	r.giveBack("a")
	if err := r.promise("c", 70); err != nil {
		t.Error(err)
	}
}

// Jobs keep within the memory that the owner gives, and else within three quarters of what is free when they begin.
func TestMemoryIsPromised(t *testing.T) {
	const mib = 1 << 20
	short := (*RoomError)(nil)
	err := newMemory(2).promise("a", 3*mib)
	if want := (RoomError{Of: inMemory, Need: 3 * mib, Free: 2 * mib, Quota: 2 * mib}); !errors.As(err, &short) || *short != want || !unfit(err) {
		t.Errorf("%v", err)
	}
	r := newMemory(0)
	if err := r.promise("a", math.MaxInt64); !errors.As(err, &short) {
		t.Errorf("a job that needs all memory that there can be: %v", err)
	}
	free := int64(100)
	r = &room{of: inMemory, quota: 150, now: func() (int64, bool) { return free, true }, promised: map[string]int64{}}
	if err := r.promise("a", 101); !errors.As(err, &short) || short.Free != 100 {
		t.Errorf("more than is free: %v", err)
	}
	if err := r.promise("a", 100); err != nil {
		t.Error(err)
	}
	free = 0 // what it was promised is in use
	if err := r.promise("a", 100); err != nil {
		t.Error(err)
	}
}

// What is kept of a run that is over stays for a day, also when the process is started again, and then makes room.
func TestRetained(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1e9, 0)
	data := blobtest.Data(1, 100)
	open := func(now time.Time) (*blob.Bounded, *retained) {
		s, err := openStore(t.Context(), filepath.Join(dir, dirBlobs), disk.Share{Bytes: 150})
		if err != nil {
			t.Fatal(err)
		}
		r, err := openRetained(dir, s, now)
		if err != nil {
			t.Fatal(err)
		}
		return s, r
	}
	s, r := open(now)
	c, err := s.Put(t.Context(), data)
	if err := errors.Join(err, r.keep("a", []blob.CID{c}, now), r.keep("b", nil, now)); err != nil {
		t.Fatal(err)
	}
	s, r = open(now.Add(retention - time.Second))
	if _, err := s.Put(t.Context(), blobtest.Data(2, 100)); !errors.Is(err, blob.ErrFull) {
		t.Errorf("room was made of what is retained: %v", err)
	}
	if err := r.expire(now.Add(retention + time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), blobtest.Data(2, 100)); err != nil {
		t.Errorf("a day later: %v", err)
	}
	if _, r := open(now); len(r.jobs) != 0 {
		t.Errorf("kept for ever: %v", r.jobs)
	}
	if err := os.WriteFile(r.path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openRetained(dir, s, now); err == nil {
		t.Error("a damaged file is taken for an empty one")
	}
}

// Rounds that were rolled back are still audited: what they need is kept like that of open ones.
func TestRolledBackRoundsAreKept(t *testing.T) {
	cid := func(text string) string { return blob.Of([]byte(text)).String() }
	lap := func(round uint32, name string) run.Lap {
		return run.Lap{Round: round, Base: run.Checkpoint{Round: round, CID: cid(name)}, Units: run.Units{{Commit: run.Commitment{UpdateCID: cid(name + " update")}}}}
	}
	store, err := blob.NewBounded(t.Context(), blob.NewMemory(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{job: &engine.Job{}, store: store, shards: map[string][]blob.CID{}}
	s := run.State{Lap: lap(3, "current"), Open: []run.Lap{lap(2, "open")}, Void: []run.Lap{lap(3, "void")}}
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
