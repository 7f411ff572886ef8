package engine_test

import (
	"context"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
)

// A peer that names itself for ever does not keep a member from a checkpoint that another holder has whole.
func TestLoadPassesLiars(t *testing.T) {
	task, genesis := newTask(t)
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	open := func() (*engine.Engine, *peer.Host) {
		key, err := peer.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		store := blob.NewMemory()
		h, err := peer.New(peer.Config{Key: key, Store: store, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(terms.Terms{Job: "fox", Units: 2}, task, store, &linked{alone: alone{store}, host: h})
		if err != nil {
			t.Fatal(err)
		}
		x := weights.New(h, store, h.FetchWithin)
		stop := e.Exchange(x, store, "fox")
		t.Cleanup(func() { stop(); x.Close(); _ = h.Close() })
		e.Hold(base, genesis)
		return e, h
	}
	maker, whole := open()
	next := advanced(t, maker, base)
	whole.Answer(weights.Protocol, func(context.Context, peer.ID, []byte) []byte { return nil }) // no patches
	_, evil := open()
	questions := 0
	evil.Answer(weights.Protocol, func(context.Context, peer.ID, []byte) []byte {
		questions++
		id := []byte(evil.ID())
		return canon.MustMarshal(map[int]any{1: true, 2: false, 3: canon.Digest{1}, 4: uint64(1), 5: [][]byte{id, id}})
	})
	taker, _ := open()
	if err := taker.Load(t.Context(), next, append(evil.Addrs(), whole.Addrs()...)); err != nil {
		t.Fatal(err)
	}
	if questions != 1 {
		t.Errorf("%d questions", questions)
	}
}
