package patches_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/node/member/patches"
)

// Members of the run are asked for patches, and other holders of blobs are not.
func TestAsksMembersOnly(t *testing.T) {
	open := func(store blob.Store) *peer.Host {
		key, err := peer.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		h, err := peer.New(peer.Config{Key: key, Store: store, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	asked := make(chan string, 2)
	host := func(name string) *peer.Host {
		h := open(blob.NewMemory())
		h.Answer(weights.Protocol, func(context.Context, peer.ID, []byte) []byte { asked <- name; return nil })
		return h
	}
	member, stranger, store := host("member"), host("stranger"), blob.NewMemory()
	self := open(store)
	x := patches.Exchange{Exchange: weights.Receiver(self, store, self.FetchWithin), Log: slog.New(slog.DiscardHandler),
		Members: func(context.Context) ([]string, error) { return member.Addrs(), nil }}
	defer x.Close()
	from, to := patch.Name{Round: 1, Root: canon.Digest{1}}, patch.Name{Round: 2, Root: canon.Digest{2}}
	if _, err := x.Bring(t.Context(), from, to, 1000, stranger.Addrs(), nil); err == nil {
		t.Error("a patch that no peer has")
	}
	if len(asked) != 1 || <-asked != "member" {
		t.Error("a peer that is no member was asked, or the member was not")
	}
}
