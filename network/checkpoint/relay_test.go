package checkpoint_test

import (
	"context"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/network/peer"
)

// gated is a store that gives one blob away only when it is let.
type gated struct {
	blob.Store
	last    *blob.CID
	reached chan struct{} // closed when a request arrives
	let     chan struct{}
}

func (g gated) Open(ctx context.Context, c blob.CID) (blob.Reader, error) {
	if c.Equals(*g.last) {
		select {
		case <-g.reached:
		default:
			close(g.reached)
		}
		<-g.let
	}
	return g.Store.Open(ctx, c)
}

// A relay serves the shards that it has while it waits for the next, and a third host has the whole checkpoint from it
// when the source is gone.
func TestRelayServesWhileItFetches(t *testing.T) {
	ctx := t.Context()
	names := []string{"large", "small"} // the second does not fit into the shard of the first
	tensors := map[string]*tensor.Tensor{
		"large": tensor.New(tensor.Make(tensor.Float32, checkpoint.ShardBytes/4)),
		"small": tensor.New(tensor.Make(tensor.Float32, 3)),
	}
	open := func(store blob.Store) (*peer.Host, func(from *peer.Host) func(context.Context, blob.CID) ([]byte, error)) {
		key, err := peer.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		h, err := peer.New(peer.Config{Key: key, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h, func(from *peer.Host) func(context.Context, blob.CID) ([]byte, error) {
			return func(ctx context.Context, c blob.CID) ([]byte, error) { return h.Fetch(ctx, c, from.Addrs()) }
		}
	}
	store := gated{blob.NewMemory(), new(blob.CID), make(chan struct{}), make(chan struct{})}
	id, err := checkpoint.Save(ctx, store, checkpoint.Manifest{Job: "job", Round: 3}, names, tensors)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := checkpoint.Blobs(ctx, store.Get, id)
	if err != nil || len(blobs) != 4 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	*store.last = blobs[3]

	source, _ := open(store)
	relay, relayed := open(blob.NewMemory())
	_, third := open(blob.NewMemory())
	ended := make(chan error, 1)
	go func() {
		_, _, err := checkpoint.Load(ctx, relayed(source), checkpoint.InTurn, id)
		ended <- err
	}()
	<-store.reached
	for _, c := range blobs[:3] {
		if _, err := third(relay)(ctx, c); err != nil {
			t.Fatalf("from a relay that waits for the last shard: %v", err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("the relay did not wait: %v", err)
	default:
	}
	close(store.let)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	m, got, err := checkpoint.Load(ctx, third(relay), checkpoint.InTurn, id)
	if err != nil || m.Round != 3 {
		t.Fatal(m.Round, err)
	}
	for _, n := range names {
		if got[n].Root() != tensors[n].Root() {
			t.Errorf("%s has another root", n)
		}
	}
}
