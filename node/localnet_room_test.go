package node

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/localnet"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/storage"
	"github.com/starling-network/starling/node/rundir"
)

// TestRoom divides a disk: all that is put aside has its part, and with the blobs that all have, and those that one
// alone has, it does not exceed the disk. A disk that is too small is refused by the figure of the plan.
func TestRoom(t *testing.T) {
	dir := t.TempDir()
	all, known := storage.Room(dir)
	if !known {
		t.Skip("free space is not known here")
	}
	const mb = 1e6
	need := storage.Disk{Member: 12 * mb, Blobs: 9 * mb, Model: mb, Moved: 7 * mb, Aside: 2 * mb}
	r, err := localnet.Divide(dir, "job", need, disk.Share{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	free, err := r.Aside(dir, nil, nil).Reserve(need.Moved)
	if err != nil {
		t.Fatal(err)
	}
	free()
	if more := r.Member - need.Member; more <= 0 || need.Blobs+need.Model+3*more+need.Moved > all {
		t.Errorf("%d bytes of blobs of each party, on a disk of %d", r.Member, all)
	}
	short := (*member.ShortageError)(nil)
	large := storage.Disk{Member: 1, Blobs: math.MaxInt64 / 4, Aside: 5, Moved: 9}
	if _, err := localnet.Divide(dir, "job", large, disk.Share{}, 3); !errors.As(err, &short) ||
		short.Need != large.All() {
		t.Errorf("a disk that is too small: %v", err)
	}
	if _, err := localnet.Divide(dir, "job", need, disk.Share{Bytes: need.Member - 1}, 3); !errors.As(err, &short) ||
		short.Need != need.Member {
		t.Errorf("a share that is too small: %v", err)
	}
}

// TestPartiesHaveEqualBlobsOnce: the consumer and the members of a network have each checkpoint in one file.
func TestPartiesHaveEqualBlobsOnce(t *testing.T) {
	j, err := job.Load(jobtest.Small(t).Path, "model.config.n_embd=256", "training.max_steps=2", "training.warmup_steps=0",
		"strategy.sync_steps=1",
		"strategy.workers=2")
	if err != nil {
		t.Fatal(err)
	}
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	order, err := b.LocalOrder()
	if err != nil {
		t.Fatal(err)
	}
	out, err := rundir.OpenOutDir(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	opt := consumer.Options{Job: b.Job, Dir: out.Path}
	if err := consumer.Prepare(out, b, opt); err != nil {
		t.Fatal(err)
	}
	n, err := localnet.Start(t.Context(), out, b, opt, instrument.New("", "consumer"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := n.RunJob(t.Context(), order)
	if err = errors.Join(err, n.Stop(), out.Close()); err != nil || s.Rounds != 2 {
		t.Fatal(s, err)
	}
	files := map[string][]os.FileInfo{} // by name
	for _, at := range []string{rundir.DirBlobs, filepath.Join(rundir.DirNetwork, "*", rundir.DirBlobs)} {
		list, err := filepath.Glob(filepath.Join(out.Path, at, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > blob.LeafBytes && !strings.Contains(info.Name(), ".") {
				files[info.Name()] = append(files[info.Name()], info)
			}
		}
	}
	shared := 0
	for name, all := range files {
		for _, f := range all[1:] {
			if shared++; !os.SameFile(all[0], f) {
				t.Errorf("%s, of %d bytes, is on the disk twice", name, f.Size())
			}
		}
	}
	if shared < 3*2 { // the last two checkpoints in four folders
		t.Errorf("%d names of files that others have", shared)
	}
}
