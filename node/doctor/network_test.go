package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/dialback"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
)

// says checks the level and the text of a finding, and that whatever is not ok has a fix.
func says(t *testing.T, name string, f Finding, level Level, text string) {
	t.Helper()
	if f.Level != level || !strings.Contains(f.Text, text) || (f.Fix == "") != (level == OK) {
		t.Errorf("%s: %+v, want %s that says %q", name, f, level, text)
	}
}

func TestChain(t *testing.T) {
	o := Options{Network: "http://validator"}
	good := ledger.Head{ChainID: "a", Height: 7, App: wire.Version}
	says(t, "good", chainAt(good, o), OK, "height 7")
	o.ChainID = "a"
	says(t, "right chain", chainAt(good, o), OK, "a at")
	o.ChainID = "b"
	says(t, "wrong chain", chainAt(good, o), Fail, "a at")
	says(t, "no block", chainAt(ledger.Head{ChainID: "b", App: wire.Version}, o), Fail, "height 0")
	says(t, "behind", chainAt(ledger.Head{ChainID: "b", Height: 3, CatchingUp: true, App: wire.Version}, o), Warn,
		"height 3")
	says(t, "other numerics", chainAt(ledger.Head{ChainID: "b", Height: 3, App: "numerics 0"}, o), Fail, "numerics 0")
	says(t, "nobody there", chain(t.Context(), Options{Network: "http://127.0.0.1:1"}), Fail, "127.0.0.1:1")
	says(t, "none named", chain(t.Context(), Options{}), OK, "not looked at")
}

func TestClockBesideBlocks(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	says(t, "together", clockBeside(now, now.Add(-time.Second)), OK, "1s after")
	says(t, "a little behind", clockBeside(now, now.Add(5*time.Second)), OK, "0s after")
	says(t, "an hour behind", clockBeside(now, now.Add(time.Hour)), Fail, "1h0m0s behind")
	says(t, "an hour ahead", clockBeside(now, now.Add(-time.Hour)), Warn, "1h0m0s old")
	says(t, "without a network", clock(t.Context(), Options{}), OK, "T")
}

func TestListen(t *testing.T) {
	says(t, "free", listen(t.Context(),
		Options{Listen: []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}}), OK, "bound")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	says(t, "taken", listen(t.Context(), Options{Listen: []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)}}), Fail,
		fmt.Sprint(port))
	says(t, "not ours", listen(t.Context(), Options{Listen: []string{"/ip4/192.0.2.1/tcp/4001"}}), Fail, "192.0.2.1")
	says(t, "none", listen(t.Context(), Options{}), OK, "not looked at")
}

func TestNAT(t *testing.T) {
	for text, want := range map[string]Level{
		"203.0.113.9": OK, "10.0.0.8": Warn, "192.168.1.2": Warn, "172.20.0.1": Warn, "100.64.1.1": Warn, "127.0.0.1": Warn,
		"169.254.3.3": Warn,
		"2001:db8::1": OK, "fd00::1": Warn, "fe80::1": Warn, "::1": Warn,
	} {
		says(t, text, natOf([]netip.Addr{netip.MustParseAddr(text)}), want, "")
	}
	says(t, "one is public", natOf([]netip.Addr{netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("203.0.113.9")}), OK,
		"public")
	says(t, "none", natOf(nil), Fail, "no address")
	says(t, "no multiaddr", nat(t.Context(), Options{Listen: []string{"10.0.0.8:4001"}}), Fail, "10.0.0.8")
	if addrs, err := expand([]string{"/ip4/0.0.0.0/tcp/4001"}); err != nil || len(addrs) == 0 {
		t.Errorf("every interface: %v, %v", addrs, err)
	}
}

// A participant dials back the port that a worker is to listen on; without one, the addresses have to say it.
func TestDialedBack(t *testing.T) {
	key, err := peer.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	participant, err := peer.New(peer.Config{Key: key, Store: blob.NewMemory(), Known: func() []string { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = participant.Close() })
	mute, err := host()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	listen := []string{"/ip4/127.0.0.1/tcp/0"}
	f, ok := reachOf(dialedBack(t.Context(), listen, []string{mute.Addrs()[0], participant.Addrs()[0]}))
	if says(t, "reached", f, OK, "/ip4/127.0.0.1/tcp/"); !ok {
		t.Error("nobody answered")
	}
	if _, ok := reachOf(dialedBack(t.Context(), listen, mute.Addrs())); ok {
		t.Error("who takes no part in a network dialled back")
	}
	f, ok = reachOf([]dialback.Result{{At: "/ip4/203.0.113.9/tcp/4001"}, {At: "/ip4/203.0.113.9/tcp/4001"}})
	if says(t, "not reached", f, Warn, "[/ip4/203.0.113.9/tcp/4001]"); !ok || !strings.Contains(f.Fix, "--behind-nat") ||
		!strings.Contains(f.Fix, "--relay") {
		t.Errorf("%+v", f)
	}
}

func TestKeysAndLock(t *testing.T) {
	o := Options{Home: filepath.Join(t.TempDir(), "home")}
	says(t, "no folder", keys(t.Context(), o), Warn, "no key")
	says(t, "no folder", lock(t.Context(), o), OK, "no process")
	if _, _, err := home.Open(o.Home); err != nil {
		t.Fatal(err)
	}
	says(t, "good key", keys(t.Context(), o), OK, "starling1")
	key := filepath.Join(o.Home, home.FileKey)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	says(t, "readable", keys(t.Context(), o), Warn, key)
	if err := os.WriteFile(key, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, "broken", keys(t.Context(), o), Fail, "5 bytes")
	unlock, err := folder.Lock(o.Home)
	if err != nil {
		t.Fatal(err)
	}
	says(t, "running", lock(t.Context(), o), Warn, "runs")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	says(t, "ended", lock(t.Context(), o), OK, "no process")
	says(t, "none named", keys(t.Context(), Options{}), OK, "not looked at")
}
