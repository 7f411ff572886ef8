package node

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/role/bundle"
)

// longJob is smallJob with a larger model and more rounds: its output is several times the size of its working set.
func longJob(t *testing.T) *job.Job {
	t.Helper()
	j, err := job.Load(jobtest.Small(t).Path, "training.max_steps=64", "strategy.sync_steps=2", "model.config.n_embd=32")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A party's disk stops growing: it keeps within what its run needs at a time, and the run ends well all the same.
func TestDiskStopsGrowing(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	j := longJob(t)
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	order, err := b.Order()
	if err != nil {
		t.Fatal(err)
	}
	quota := bundle.Footprint(b.Spec, b.Step, b.Manifest, order.Terms, member.DefaultKeep)
	dir := filepath.Join(t.TempDir(), "out")
	largest := map[string]int64{}
	watch := func(consumer.Progress) {
		stores, err := filepath.Glob(filepath.Join(dir, rundir.DirNetwork, "*", rundir.DirBlobs))
		if err != nil {
			t.Error(err)
		}
		for _, s := range stores {
			largest[s] = max(largest[s], size(s))
		}
	}
	s := mustTrain(t, consumer.Options{Job: j, Dir: dir, Progress: watch, Disk: disk.Share{Bytes: quota}})
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

	p, err := plan.Of(b)
	if err == nil {
		err = p.PlaceHere(b)
	}
	together := bundle.Together(b.Spec, b.Step, b.Manifest, order.Terms, member.DefaultKeep)
	together += int64(b.Model.Parameters()) * prepare.BytesOfWeight // and the model
	if err != nil || p.Disk != together {
		t.Errorf("the plan says %d bytes of disk, all parties need %d: %v", p.Disk, together, err)
	}
	_, err = Train(t.Context(), consumer.Options{Job: j, Dir: filepath.Join(t.TempDir(), "small"),
		Disk: disk.Share{Bytes: quota - 1}})
	if short := (*member.ShortageError)(nil); !errors.As(err, &short) || short.Need != quota {
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
