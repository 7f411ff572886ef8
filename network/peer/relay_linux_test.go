package peer

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

// inNamespace runs the calling test again in a network namespace whose loopback has addresses that look public:
// connections are not upgraded between others. It reports whether this is the run inside.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const inside = "STARLING_TEST_NAMESPACE"
	if os.Getenv(inside) != "" {
		for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", "11.0.0.1/32", "dev", "lo"},
			{"addr", "add", "12.0.0.1/32", "dev", "lo"}, {"addr", "add", "13.0.0.1/32", "dev", "lo"}} {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Fatalf("ip %v: %v: %s", args, err, out)
			}
		}
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	for _, tool := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs ", tool)
		}
	}
	if err := exec.Command("unshare", "-n", "true").Run(); err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v",
		"-test.timeout", "90s")
	cmd.Env = append(os.Environ(), inside+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return false
}

func both(ip string) []string {
	return []string{"/ip4/" + ip + "/tcp/0", "/ip4/" + ip + "/udp/0/quic-v1"}
}

// directAgain is the age at which package relay closes a relayed connection and makes it again.
const directAgain = 10 * time.Second

// circuit waits for an address of the host that goes through a relay.
func circuit(t *testing.T, h *Host) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found := errors.New("found")
	var addr string
	err := h.Watch(ctx, func(addrs []string) error {
		for _, a := range addrs {
			if strings.Contains(a, "/p2p-circuit") {
				addr = a
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Fatalf("no reservation at a relay: %v; addresses %v", err, h.Addrs())
	}
	return addr
}

// TestRelay reaches a host that is dialled through a relay only. Bulk goes over a direct connection that the two ends
// make, and a stranger gets no reservation.
func TestRelay(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	worker, stranger := KeyFromSeed([32]byte{1}), KeyFromSeed([32]byte{2})
	relay := start(t, Config{Listen: both("11.0.0.1"), Relay: func(id ID) bool { return id.MatchesPrivateKey(worker) }})
	data := blobtest.Data(50, 8*blob.LeafBytes)
	hidden := start(t, Config{Key: worker, Listen: both("12.0.0.1"), Relays: relay.Addrs})
	put(t, hidden, data)
	addr := circuit(t, hidden)

	sink := start(t, Config{Listen: both("13.0.0.1"), Relay: func(ID) bool { return false }})
	changes, err := sink.host.EventBus().Subscribe(new(event.EvtPeerConnectednessChanged))
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	wantFetch(t, sink, data, []string{addr})
	fetches := uint64(1)
	for upgraded := false; !upgraded; {
		select {
		case e := <-changes.Out():
			change := e.(event.EvtPeerConnectednessChanged)
			upgraded = change.Peer == hidden.ID() && change.Connectedness == network.Connected
		case <-time.After(directAgain): // the hidden host was not ready: the next fetch tries again
			if fetches++; fetches > 4 {
				t.Fatalf("the connection is not upgraded: %+v", sink.Peers())
			}
			more := blobtest.Data(50+fetches, blob.LeafBytes)
			put(t, hidden, more)
			wantFetch(t, sink, more, []string{addr})
		}
	}
	if links := sink.Peers(); len(links) != 1 || links[0].Received < uint64(len(data)) {
		t.Errorf("links: %+v", links)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	refused := start(t, Config{Key: stranger, Listen: both("12.0.0.1"), Relays: relay.Addrs})
	err = refused.Watch(ctx, func(addrs []string) error {
		if strings.Contains(strings.Join(addrs, " "), "/p2p-circuit") {
			return errors.New("a stranger has a reservation")
		}
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
