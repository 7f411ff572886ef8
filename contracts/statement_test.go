package contracts_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/payout"
)

// statements are claims of keys and of addresses in one tree, for a contract on a chain of keys.
func statements(t *testing.T, b payout.Bridge, epoch uint64) (s payout.Statement, raw []byte) {
	t.Helper()
	secret := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))
	key := payout.Key(secret.Public().(ed25519.PublicKey))
	var claims payout.Claims
	for i := range 21 {
		claims = append(claims, payout.Claim{Account: payout.Address{byte(i + 1)}, Token: payout.Address{9},
			Total: big.NewInt(int64(i) + 5)})
	}
	claims = append(claims, payout.Claim{Account: key.Address(), Token: payout.Address{9}, Total: big.NewInt(7_000_000)})
	claims.Sort()
	for i, c := range claims {
		if c.Account != key.Address() {
			continue
		}
		var err error
		if s, raw, err = payout.Claiming("starling-1", b, epoch, claims.Proof(claims.Tree(), i), secret); err != nil {
			t.Fatal(err)
		}
	}
	if s.Root != claims.Tree().Root() || len(s.Path) == 0 {
		t.Fatalf("%+v", s)
	}
	return s, raw
}

// A verifier that shares no code with this one accepts a statement in both formats, and refuses it with any of its
// fields, and any byte of its words, changed, or that the key signed for another chain, contract or epoch.
func TestStatementsAreCheckedElsewhere(t *testing.T) {
	npm(t)
	own := payout.Bridge{EVM: payout.FirstKeyed + 101, Contract: payout.Address{7, 7}}
	s, raw := statements(t, own, 12)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{"a byte more": fmt.Sprintf("%x00", raw), "a byte less": fmt.Sprintf("%x", raw[1:]),
		"no statement": "{}", "digits in upper case and a line": strings.ToUpper(fmt.Sprintf("%x", raw[:len(raw)-32]))}
	for i := 0; i < len(raw); i += 16 {
		raw[i] ^= 1
		bad[fmt.Sprint("byte ", i)] = fmt.Sprintf("%x", raw)
		raw[i] ^= 1
	}
	for name, of := range map[string]payout.Bridge{"another chain": {EVM: own.EVM + 1, Contract: own.Contract},
		"another contract": {EVM: own.EVM, Contract: payout.Address{7, 8}}} {
		_, elsewhere := statements(t, of, 12)
		bad[name] = fmt.Sprintf("%x", elsewhere)
	}
	_, before := statements(t, own, 11)
	bad["another epoch"] = fmt.Sprintf("%x", before)
	other := payout.Key(ed25519.NewKeyFromSeed([]byte(strings.Repeat("o", 32))).Public().(ed25519.PublicKey))
	for field, value := range map[string]any{"format": "starling-payout-claim/2", "network": payout.Digest{1},
		"chain": "4503599627370497", "contract": payout.Address{1}, "epoch": "13", "root": payout.Digest{2},
		"address": other.String(), "account": payout.Address{3}, "token": payout.Address{8}, "total": "7000001",
		"path": s.Path[1:], "signature": strings.Repeat("00", 64), "more": 1} {
		changed := map[string]any{}
		if err := json.Unmarshal(text, &changed); err != nil {
			t.Fatal(err)
		}
		changed[field] = value
		line, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		bad["the field "+field] = string(line)
		delete(changed, field)
		if line, err = json.Marshal(changed); err != nil {
			t.Fatal(err)
		}
		if field != "more" {
			bad["no field "+field] = string(line)
		}
	}
	all, err := json.Marshal(map[string]any{"root": s.Root, "network": payout.Network("starling-1"), "total": s.Total,
		"chain": s.Chain, "contract": s.Contract, "epoch": s.Epoch,
		"good": map[string]string{"json": string(text), "bytes": fmt.Sprintf("%x", raw)}, "bad": bad})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, lines := filepath.Join(dir, "statements.json"), filepath.Join(dir, "lines")
	for name, data := range map[string][]byte{file: all, lines: fmt.Appendf(nil, "%s\n%x\n", text, raw)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodejs(t, "statements.mjs", file)
	nodejs(t, "statement.mjs", lines, s.Root.String(), payout.Network("starling-1").String(), s.Chain,
		s.Contract.String(), s.Epoch)
}
