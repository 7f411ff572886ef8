package provider

import (
	"context"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/fetch"
	"github.com/starling-network/starling/network/peer/wire"
	"github.com/starling-network/starling/node/member"
)

// TestPatienceWithABusyHolder asks a holder that is busy at first: it is asked again until it is not.
func TestPatienceWithABusyHolder(t *testing.T) {
	store, asked := blob.NewMemory(), 0
	id, err := store.Put(t.Context(), []byte("an update"))
	if err != nil {
		t.Fatal(err)
	}
	f := func(context.Context) ([]byte, error) {
		if asked++; asked < 3 {
			return nil, &fetch.Error{CID: id, Tried: []fetch.Attempt{{Peer: "worker", Err: wire.ErrBusy}}}
		}
		return store.Get(t.Context(), id)
	}
	if b, err := member.Insist(t.Context(), time.Minute, f); err != nil || string(b) != "an update" {
		t.Errorf("%q, %v after %d times", b, err, asked)
	}
}
