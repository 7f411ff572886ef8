package payout

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/payout"
)

// The owner of a key names it, withdraws to a chain of keys, and states the claim under the signed root.
func TestKeysState(t *testing.T) {
	p := newPlaceTo(t, payout.FirstKeyed)
	secret := ed25519.NewKeyFromSeed([]byte(strings.Repeat("s", 32)))
	key := payout.Key(secret.Public().(ed25519.PublicKey))
	list, err := json.Marshal(widened(secret))
	if err != nil {
		t.Fatal(err)
	}
	file, other := p.file("id.json", string(list)), p.file("other", strings.Repeat("ab", 32))
	p.until("a set", func(s shown) bool { return s.Set == 1 })
	var n named
	p.must(&n, p.own("set", key.String())...)
	if n.Confirmed || n.Address != key.String() || !strings.Contains(n.Text, key.String()) {
		t.Errorf("%+v", n)
	}
	for _, bad := range [][]string{p.own("set", key.String()+"1"), p.own("set", key.String(), "--key", other),
		p.own("set", key.String(), "--key", p.file("none", "[1, 2]")), {"statement", "--network", p.network}} {
		if err := p.run(nil, bad...); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	p.must(&n, p.own("set", key.String(), "--signature", hex.EncodeToString(ed25519.Sign(secret, []byte(n.Text))))...)
	p.must(&n, p.own("set", key.String(), "--key", file)...)
	p.must(nil, p.own("withdraw", "25")...)
	s := p.until("a root", func(s shown) bool { return s.Bridges[0].Tokens[0].Claimable == "25.00" })
	if s.Address != key.String() {
		t.Errorf("%+v", s)
	}
	var claim payout.Statement
	p.must(&claim, "statement", "--key", file, "--network", p.network)
	if claim.Address != key.String() || claim.Total != "25000000" || claim.Account != key.Address() {
		t.Errorf("%+v", claim)
	}
	p.must(nil, "statement", "--key", file, "--network", p.network, "--format", "bytes")
}

// widened are the bytes of a key as a wallet of Solana writes them.
func widened(secret ed25519.PrivateKey) (list []uint16) {
	for _, b := range secret {
		list = append(list, uint16(b))
	}
	return list
}
