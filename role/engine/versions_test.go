package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
)

// linked is a party that fetches from others over a link, and counts the blobs of checkpoints that it was asked for.
type linked struct {
	alone
	host  *peer.Host
	blobs int
}

func (l *linked) Fetch(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	l.blobs++
	return l.host.Fetch(ctx, c, holders)
}

// told is an exchange whose last result is kept.
type told struct {
	*weights.Exchange
	got int64
	err error
}

func (x *told) Bring(ctx context.Context, from, to patch.Name, most int64, holders []string,
	apply func(h *patch.Head, get func(i int) ([]byte, error)) error) (int64, error) {
	x.got, x.err = x.Exchange.Bring(ctx, from, to, most, holders, apply)
	return x.got, x.err
}

// A member that has the checkpoint before gets the next one as a patch, and serves it like one that has combined the
// updates. If the patch is false it fetches the checkpoint whole.
func TestCheckpointsComeAsPatches(t *testing.T) {
	task, genesis := newTask(t)
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	open := func() (*engine.Engine, *linked, *told) {
		key, err := peer.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		store := blob.NewMemory()
		h, err := peer.New(peer.Config{Key: key, Store: store, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		if err != nil {
			t.Fatal(err)
		}
		l := &linked{alone: alone{store}, host: h}
		e, err := engine.New(terms.Terms{Job: "fox", Units: 2}, task, store, l)
		if err != nil {
			t.Fatal(err)
		}
		x := &told{Exchange: weights.New(h, store, h.FetchWithin)}
		stop := e.Exchange(x, store, "fox")
		t.Cleanup(func() { stop(); x.Close(); _ = h.Close() })
		e.Hold(base, genesis)
		return e, l, x
	}
	maker, from, _ := open()
	next := advanced(t, maker, base)
	taker, l, x := open()
	if err := taker.Load(t.Context(), next, from.host.Addrs()); err != nil {
		t.Fatal(err)
	}
	c, err := taker.Base(next)
	if err != nil || c.Root() != next.Root {
		t.Fatalf("another checkpoint: %v", err)
	}
	if x.err != nil || x.got == 0 || l.blobs != 0 {
		t.Errorf("%d bytes, %v, and %d blobs of the checkpoint", x.got, x.err, l.blobs)
	}
	if err := maker.Load(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	again, _, _ := open()
	if err := again.Load(t.Context(), next, l.host.Addrs()); err != nil { // from the taker alone
		t.Fatal(err)
	}

	liar, forger, _ := open()
	changed := *genesis
	changed.Round = 1
	liar.Hold(next, &changed) // and says that it is the next
	victim, l, x := open()
	if err := victim.Load(t.Context(), next, append(forger.host.Addrs(), l.host.Addrs()...)); err == nil {
		t.Fatal("a checkpoint that nobody has")
	}
	refused := (*weights.RefusedError)(nil)
	if !errors.As(x.err, &refused) || refused.Peer != forger.host.ID() {
		t.Errorf("the liar is not named: %v", x.err)
	}
	if err := victim.Load(t.Context(), next, append(forger.host.Addrs(), from.host.Addrs()...)); err != nil {
		t.Fatal(err)
	}
	if c, err := victim.Base(next); err != nil || c.Root() != next.Root {
		t.Fatalf("another checkpoint: %v", err)
	}
}

// advanced has an engine make the next checkpoint.
func advanced(t *testing.T, maker *engine.Engine, base terms.Checkpoint) terms.Checkpoint {
	t.Helper()
	var units work.Units
	var updates [][]byte
	for unit := range uint32(2) {
		w, err := maker.Train(t.Context(), base, unit)
		if err != nil {
			t.Fatal(err)
		}
		units, updates = append(units, &work.Unit{Index: unit, Commit: w.Commit}), append(updates, w.Update)
	}
	a, err := maker.Advance(t.Context(), base, units, func(i int) ([]byte, error) { return updates[i], nil })
	if err != nil {
		t.Fatal(err)
	}
	return a.Next
}
