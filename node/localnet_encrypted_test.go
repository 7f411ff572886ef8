package node

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/localnet"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/release"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/protocol/run/readers"
	"github.com/starling-network/starling/protocol/run/work"
)

// encryptedJob is a small model on data of 24 small shards, encrypted or not.
func encryptedJob(t *testing.T, set ...string) *prepare.CompiledJob {
	t.Helper()
	j := jobtest.Small(t)
	text := make([]byte, 24<<14)
	for i := 0; i < len(text); i += 8 {
		binary.LittleEndian.PutUint64(text[i:], uint64(i)*0x9e3779b97f4a7c15&0x3f3f3f3f3f3f3f3f|0x4040404040404040)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(j.Path), "text.txt"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(j.Path, append(set, "val_set_size=0.01", "training.max_steps=4", "strategy.sync_steps=2",
		"training.global_batch_size=6")...)
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

// trained trains a job on an embedded network, of which some workers lie, and returns its folder.
func trained(t *testing.T, dir string, b *prepare.CompiledJob, dishonest int) (*rundir.OutDir, *rundir.Summary) {
	t.Helper()
	out, err := rundir.OpenOutDir(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	opt := consumer.Options{Job: b.Job, Dir: out.Path, Dishonest: dishonest}
	if err := consumer.Prepare(out, b, opt); err != nil {
		t.Fatal(err)
	}
	order, err := b.LocalOrder()
	if err != nil {
		t.Fatal(err)
	}
	n, err := localnet.Start(t.Context(), out, b, opt, instrument.New("", "consumer"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := n.RunJob(t.Context(), order)
	if err = errors.Join(err, n.Stop(), out.Close()); err != nil {
		log, _ := os.ReadFile(out.File(rundir.FileLog))
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-8000):])
	}
	return out, s
}

// TestEncryptedShards: a network whose shards are encrypted, with a liar, reaches the checkpoints of one whose shards
// are not. Each member gets the keys of the shards that its units read, and of no other; no file of the network has
// 16 bytes of the data in the clear; and the consumer verifies the run from the blobs that it has shipped.
func TestEncryptedShards(t *testing.T) {
	b, clear := encryptedJob(t, "encrypt_data=true"), encryptedJob(t)
	one, two := t.TempDir(), t.TempDir()
	var out, plain *rundir.OutDir
	var s, honest *rundir.Summary
	t.Run("networks", func(t *testing.T) {
		for name, run := range map[string]func(t *testing.T){
			"encrypted": func(t *testing.T) { out, s = trained(t, one, b, 1) },
			"clear":     func(t *testing.T) { plain, honest = trained(t, two, clear, 0) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t)
			})
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	if s.Rounds != 2 || s.SlashedUzen == 0 {
		t.Errorf("%d rounds, and %d were taken from the liar", s.Rounds, s.SlashedUzen)
	}
	if honest.StateRoot != s.StateRoot {
		t.Errorf("%s with encrypted shards in %s, %s without in %s", s.StateRoot, out.Path, honest.StateRoot, plain.Path)
	}
	lines, err := rundir.ReadLines[release.Release](out.File(rundir.FileReleases))
	if err != nil || len(lines) == 0 {
		t.Fatalf("%d releases are recorded: %v", len(lines), err)
	}
	disputed := false
	for _, r := range lines {
		list, err := release.Shards(b.Manifest, b.Spec,
			readers.Reading{UnitID: work.UnitID{Round: r.Round - 1, Unit: r.Unit}})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == len(b.Manifest.Shards) {
			t.Fatal("a unit reads all shards")
		}
		for _, i := range r.Shards {
			if !slices.Contains(list, i) {
				t.Errorf("%s got the key of shard %d, which unit %d of round %d does not read", r.Member, i, r.Unit, r.Round)
			}
		}
		disputed = disputed || r.For == readers.Audits || r.For == readers.Answers
	}
	if !disputed {
		t.Error("no verifier got a key")
	}
	if found := windows(t, b, out.Path); found > 0 {
		t.Errorf("%d windows of the data are in the files of the network", found)
	}
	if found := windows(t, b, plain.Path); found == 0 {
		t.Error("a search that finds nothing in shards in the clear says nothing about encrypted ones")
	}
	r, err := verify.Run(t.Context(), out.Path, verify.Options{Shipped: true})
	if err != nil || !r.Complete {
		t.Errorf("verified: %+v, %v", r, err)
	}
	if err := os.Remove(out.File(rundir.FileDataKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Run(t.Context(), out.Path, verify.Options{Shipped: true}); !errors.As(err,
		new(*verify.IncompleteError)) {
		t.Errorf("verified without the secret: %v", err)
	}
}

// windows counts the windows of 16 bytes of the tokens of a job, every 64 bytes, that are in files below a folder.
func windows(t *testing.T, b *prepare.CompiledJob, dir string) (found int) {
	t.Helper()
	of := map[string]bool{}
	for _, s := range b.Corpus.Shards(1 << 20) {
		for at := 0; at+16 <= len(s); at += 64 {
			of[string(s[at:at+16])] = true
		}
	}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for at := range max(0, len(raw)-15) {
			if of[string(raw[at:at+16])] {
				found++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
