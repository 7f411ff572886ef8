package member

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
)

// flock is a run whose members keep its blobs, without anybody who trains.
type flock struct {
	t       *testing.T
	random  *rand.Rand
	members []*replicator
	state   run.State
	lineage map[uint32]terms.Checkpoint
	height  int64
}

// Lineage implements ledger.
func (f *flock) Lineage(_ context.Context, round uint32) (progress.Entry, error) {
	return progress.Entry{Attestation: progress.Attestation{Checkpoint: f.lineage[round]}}, nil
}

// Holders implements ledger.
func (f *flock) Holders(context.Context) (addrs []string, err error) {
	for _, k := range f.members {
		addrs = append(addrs, k.host.Addrs()...)
	}
	return addrs, nil
}

// join adds a member with a disk of most bytes.
func (f *flock) join(most int64, last, factor int) *replicator {
	f.t.Helper()
	store, err := quota.New(f.t.Context(), blob.NewMemory(), most)
	if err != nil {
		f.t.Fatal(err)
	}
	n := len(f.state.Members)
	h, err := peer.New(peer.Config{Key: peer.KeyFromSeed([32]byte{byte(n)}), Store: store})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = h.Close() })
	k := &replicator{
		most: 1 << 30,
		id:   fmt.Sprintf("member-%d", n), jobID: "job", job: &bundle.Job{}, chain: f, host: h, store: store,
		last: last, factor: factor, log: slog.New(slog.DiscardHandler),
		shards: map[string][]blob.CID{}, parts: map[string][]blob.CID{},
	}
	f.members = append(f.members, k)
	f.state.Members = append(f.state.Members, crew.Member{ID: k.id, Role: crew.Worker, Active: true})
	return k
}

// die takes a member away at once; the chain has noticed.
func (f *flock) die(k *replicator) {
	f.t.Helper()
	if err := k.host.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.members = slices.DeleteFunc(f.members, func(o *replicator) bool { return o == k })
	i := slices.IndexFunc(f.state.Members, func(m crew.Member) bool { return m.ID == k.id })
	f.state.Members[i].Active = false
}

// attest is the next round: some members have computed its checkpoint, as a real run makes it.
func (f *flock) attest() {
	f.t.Helper()
	round := f.state.Base.Round + 1
	if len(f.lineage) == 0 {
		round = 0
	}
	weights := tensor.New(tensor.Make(tensor.Float32, 5000))
	for i := range weights.F32() {
		weights.F32()[i] = f.random.Float32()
	}
	for range 2 {
		k := f.members[f.random.IntN(len(f.members))]
		c, err := checkpoint.Save(f.t.Context(), k.store, checkpoint.Manifest{Job: "job", Round: round}, []string{"w"},
			map[string]*tensor.Tensor{"w": weights})
		if err != nil {
			f.t.Fatal(err)
		}
		f.state.Base = terms.Checkpoint{Round: round, CID: c.String()}
	}
	f.lineage[round] = f.state.Base
	if round == 0 {
		f.state.Terms.Genesis = f.state.Base
	}
}

// look lets every member see a block, in which it does its duties.
func (f *flock) look() {
	f.t.Helper()
	f.height += retryDuties
	for _, k := range f.members {
		if err := k.reconcile(f.t.Context(), role.Block{Height: f.height, Run: f.state}); err != nil {
			f.t.Fatalf("%s at height %d: %v", k.id, f.height, err)
		}
	}
}

// blobs are those of the checkpoint of a round.
func (f *flock) blobs(name string, round uint32) []blob.CID {
	f.t.Helper()
	id, err := blob.Parse(f.lineage[round].CID)
	if err != nil {
		f.t.Fatal(err)
	}
	list, err := checkpoint.Blobs(f.t.Context(), func(ctx context.Context, c blob.CID) ([]byte, error) {
		for _, k := range f.members {
			if b, err := k.store.Get(ctx, c); err == nil {
				return b, nil
			}
		}
		return nil, blob.ErrNotFound
	}, id)
	if err != nil {
		f.t.Fatalf("%s: checkpoint %d is lost: %v", name, round, err)
	}
	return list
}

// holders are how many members have a blob.
func (f *flock) holders(c blob.CID) (n int) {
	for _, k := range f.members {
		if has, err := k.store.Has(f.t.Context(), c); err == nil && has {
			n++
		}
	}
	return n
}

// held checks that every blob of the given checkpoints, and the shipped ones, have so many holders at least.
func (f *flock) held(name string, factor int, shipped []blob.CID, rounds ...uint32) {
	f.t.Helper()
	want := slices.Clone(shipped)
	for _, r := range rounds {
		want = append(want, f.blobs(name, r)...)
	}
	for _, c := range want {
		if n := f.holders(c); n < factor {
			f.t.Errorf("%s: %s has %d holders, not %d", name, c, n, factor)
		}
	}
}

// TestKeepersHeal runs the loop in which members keep the blobs that must outlive them. Disks are too small for all
// blobs of the run: blobs that are assigned to no member are removed. Holders end one after the other, the consumer
// first: the blobs of the last checkpoints, the first one and the job have their number of holders again after the
// survivors have run once.
func TestKeepersHeal(t *testing.T) {
	const last, factor, size = 3, 3, 21_000 // bytes of a checkpoint, about
	f := &flock{t: t, random: rand.New(rand.NewPCG(5, 6)), lineage: map[uint32]terms.Checkpoint{}}
	consumer := f.join(100*size, last, factor)
	shipped := make([]blob.CID, 2)
	for i := range shipped {
		var err error
		if shipped[i], err = consumer.store.Put(t.Context(), blobtest.Data(uint64(i), size/2)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 {
		wants := factor
		if i == 0 {
			wants = factor + 2 // more than the others want
		}
		f.join((last+3)*size, last, wants)
	}
	for _, k := range f.members {
		k.shipped = shipped
	}
	kept := func() []uint32 {
		rounds := []uint32{0}
		for r := f.state.Base.Round; r > 0 && f.state.Base.Round-r < last; r-- {
			rounds = append(rounds, r)
		}
		return rounds
	}
	f.attest()
	f.look()
	f.held("at the start", factor, shipped, 0)
	f.die(consumer)
	f.attest()
	old := f.blobs("as it is made", 1)
	for len(f.members) > 4 {
		for range last + 1 {
			f.attest()
			f.look()
			f.held(fmt.Sprint("after round ", f.state.Base.Round), factor, shipped, kept()...)
		}
		f.die(f.members[f.random.IntN(len(f.members))])
		f.look()
		f.held(fmt.Sprintf("with %d members left", len(f.members)), factor, shipped, kept()...)
	}
	for _, k := range f.members {
		if got := k.Replicas(); got.Missing > 0 || got.Held != len(k.Keeps()) || got.Held == 0 {
			t.Errorf("%s: %+v, %d announced", k.id, got, len(k.Keeps()))
		}
		if u := k.store.Usage(); u.Held > u.Quota {
			t.Errorf("%s: %+v", k.id, u)
		}
	}
	if n := f.holders(old[len(old)-1]); n >= factor {
		t.Errorf("%d members still have the shard of the first round: the disks were not too small", n)
	}
}
