package node

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/localnet"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/role/bundle"
)

// largeCorpus is a small model on 24 shards, of which a unit reads no more than 4.
func largeCorpus(t *testing.T, set ...string) *prepare.CompiledJob {
	t.Helper()
	j := jobtest.Small(t)
	text := make([]byte, 24*bundle.ShardTokens)
	for i := 0; i < len(text); i += 8 {
		binary.LittleEndian.PutUint64(text[i:], uint64(i)*0x9e3779b97f4a7c15&0x3f3f3f3f3f3f3f3f|0x4040404040404040)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(j.Path), "text.txt"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(j.Path, append(set, "val_set_size=0.01", "training.max_steps=6", "strategy.sync_steps=2")...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// TestCorpusLargerThanTheDisk: parties whose disks hold a third of the corpus train on it, fetch the shards that their
// units read and few others, and reach the checkpoints that follow from the whole of it.
func TestCorpusLargerThanTheDisk(t *testing.T) {
	for name, c := range map[string]struct {
		job    *prepare.CompiledJob
		shards int64 // at most, that the four parties fetch for units
	}{
		// a step reads 6 windows of 3 workers, and so at most as many shards, and most units are audited
		"mixed": {largeCorpus(t), 2 * 6 * 6},
		// all windows of the run are in one block, or in the shard after it
		"in blocks": {largeCorpus(t, "shuffle_shards=1"), 4 * 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trainOnSmallDisks(t, c.job, c.shards)
		})
	}
}

// trainOnSmallDisks trains a job, of which so many shards may be fetched for units.
func trainOnSmallDisks(t *testing.T, b *prepare.CompiledJob, most int64) {
	order, err := b.LocalOrder()
	if err != nil {
		t.Fatal(err)
	}
	need := bundle.Footprint(b.Spec, b.Step, b.Manifest, order.Terms, member.DefaultKeep)
	quota := need + 2*b.Manifest.ShardBytes(0)
	if quota > b.Manifest.Bytes()/3 {
		t.Fatalf("a disk of %d bytes, and a corpus of %d", quota, b.Manifest.Bytes())
	}
	out, err := rundir.OpenOutDir(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	opt := consumer.Options{Job: b.Job, Dir: out.Path, Disk: disk.Share{Bytes: quota}}
	if err := consumer.Prepare(out, b, opt); err != nil {
		t.Fatal(err)
	}
	w := instrument.New("", "consumer")
	n, err := localnet.Start(t.Context(), out, b, opt, w)
	if err != nil {
		t.Fatal(err)
	}
	s, err := n.RunJob(t.Context(), order)
	all := b.Manifest.Bytes()
	for _, p := range n.Parties {
		_, received := p.Host.Traffic()
		u := p.Store.Usage()
		t.Logf("%s received %d bytes, %d %% of the corpus, and holds %d of %d", p.ID, received,
			100*int64(received)/all, u.Held, u.Quota)
		if u.Held > quota {
			t.Errorf("%s holds %d bytes, its disk has %d", p.ID, u.Held, quota)
		}
	}
	if err = errors.Join(err, n.Stop(), out.Close()); err != nil {
		log, _ := os.ReadFile(out.File(rundir.FileLog))
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-8000):])
	}
	if s.Rounds != 3 || s.SlashedUzen != 0 {
		t.Errorf("%+v", s)
	}
	if got := w.Shards.Load(); got == 0 || got > most*b.Manifest.ShardBytes(0) {
		t.Errorf("shards of %d bytes were fetched, the units read at most %d shards", got, most)
	}
	r, err := verify.Run(t.Context(), out.Path, verify.Options{Shipped: true})
	if err != nil || !r.Complete {
		t.Errorf("verified: %+v, %v", r, err)
	}
}
