package address

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/test"
)

// TestOthers reads a list with the asker itself, a peer with two addresses, and addresses that cannot be read.
func TestOthers(t *testing.T) {
	self, other := test.RandPeerIDFatal(t), test.RandPeerIDFatal(t)
	list := Others(self, []string{"nonsense", "/ip4/127.0.0.1/tcp/1", "/ip4/127.0.0.1/tcp/1/p2p/" + other.String(),
		"/ip4/127.0.0.1/tcp/2/p2p/" + self.String(), "/ip4/127.0.0.1/tcp/3/p2p/" + other.String()})
	if len(list) != 1 || list[0].ID != other || len(list[0].Addrs) != 2 {
		t.Errorf("others: %v", list)
	}
}
