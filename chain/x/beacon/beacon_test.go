package beacon

import (
	"bytes"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/canon"
)

func private(name string) ed25519.PrivateKey {
	d := canon.Sum("test", []byte(name))
	return ed25519.NewKeyFromSeed(d[:])
}

func TestProofIsForOneKeyAndOneInput(t *testing.T) {
	a, b := private("a"), private("b")
	alpha := Alpha("chain", 7, canon.Sum("before"))
	proof := Prove(a, alpha)
	beta, ok := Verify(a[32:], alpha, proof)
	if !ok || len(beta) != 64 {
		t.Fatalf("a right proof is refused (%d bytes)", len(beta))
	}
	for name, other := range map[string][]byte{
		"chain":    Alpha("other", 7, canon.Sum("before")),
		"height":   Alpha("chain", 8, canon.Sum("before")),
		"previous": Alpha("chain", 7, canon.Sum("after")),
	} {
		if _, ok := Verify(a[32:], other, proof); ok {
			t.Errorf("the proof holds for another %s", name)
		}
	}
	if _, ok := Verify(b[32:], alpha, proof); ok {
		t.Error("the proof holds for another key")
	}
	for i := range proof {
		bad := bytes.Clone(proof)
		bad[i] ^= 1
		if _, ok := Verify(a[32:], alpha, bad); ok {
			t.Errorf("the proof holds with byte %d changed", i)
		}
	}
	for _, bad := range [][]byte{nil, proof[:79], append(bytes.Clone(proof), 0)} {
		if _, ok := Verify(a[32:], alpha, bad); ok {
			t.Errorf("a proof of %d bytes holds", len(bad))
		}
	}
	if _, ok := Verify(nil, alpha, proof); ok {
		t.Error("the proof holds without a key")
	}
}

// seen returns the result of Verify for valid and invalid proofs, at every call and with any number of entries.
func TestSeen(t *testing.T) {
	var s seen
	key := private("a")
	var alphas, proofs [][]byte
	for i := range 5 {
		alphas = append(alphas, Alpha("chain", int64(i), canon.Digest{}))
		proofs = append(proofs, Prove(key, alphas[i]))
	}
	check := func() {
		t.Helper()
		for i, alpha := range alphas {
			for j, proof := range append(proofs, nil, proofs[0][:79]) {
				want, right := Verify(key[32:], alpha, proof)
				for range 2 {
					if got, ok := s.verify(key[32:], alpha, proof); ok != right || ok != (i == j) || !bytes.Equal(got, want) {
						t.Fatalf("proof %d of input %d: %x %v, want %x %v", j, i, got, ok, want, right)
					}
				}
			}
		}
	}
	check()
	for range 3 { // generations
		for len(s.young) < most {
			s.young[canon.Sum("filling", number(int64(len(s.young))))] = nil
		}
		check()
	}
	if len(s.young) > most || len(s.old) > most {
		t.Errorf("%d and %d proofs are remembered", len(s.young), len(s.old))
	}
}

func TestCombine(t *testing.T) {
	x, y := Output{[]byte("x"), []byte("1")}, Output{[]byte("y"), []byte("2")}
	if !Combine("chain", 3, canon.Digest{}, nil).IsZero() {
		t.Error("a beacon of no outputs")
	}
	seen := map[canon.Digest]bool{}
	for _, outputs := range [][]Output{{x}, {y}, {x, y}, {y, x}} {
		seen[Combine("chain", 3, canon.Digest{}, outputs)] = true
	}
	seen[Combine("chain", 4, canon.Digest{}, []Output{x})] = true
	seen[Combine("other", 3, canon.Digest{}, []Output{x})] = true
	seen[Combine("chain", 3, canon.Sum("p"), []Output{x})] = true
	if len(seen) != 7 {
		t.Errorf("%d different beacons of 7 different blocks", len(seen))
	}
}

func TestNewKeyCountsTwoBlocksLater(t *testing.T) {
	first, second, third := []byte("1"), []byte("2"), []byte("3")
	k := Key{Next: first} // of the genesis
	if !bytes.Equal(k.At(1), first) {
		t.Error("a key of the genesis does not count in the first block")
	}
	k = k.Set(second, 10)
	if !bytes.Equal(k.At(11), first) || !bytes.Equal(k.At(12), second) {
		t.Errorf("the key set at 10 is %q at 11 and %q at 12", k.At(11), k.At(12))
	}
	k = k.Set(third, 11) // before the second key counts
	if !bytes.Equal(k.At(12), first) || !bytes.Equal(k.At(13), third) {
		t.Errorf("the key set at 11 is %q at 12 and %q at 13", k.At(12), k.At(13))
	}
	if got := (Key{}).Set(first, 5); got.At(6) != nil || !bytes.Equal(got.At(7), first) {
		t.Errorf("a first key is %q at 6 and %q at 7", got.At(6), got.At(7))
	}
}

func FuzzDecode(f *testing.F) {
	commit := abci.ExtendedCommitInfo{Round: 1, Votes: []abci.ExtendedVoteInfo{{
		Validator: abci.Validator{Address: make([]byte, 20), Power: 10}, VoteExtension: make([]byte, 80),
		ExtensionSignature: make([]byte, 64), BlockIdFlag: 2,
	}}}
	b, err := commit.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode([][]byte{b})
		if err != nil {
			return
		}
		if again, err := c.Marshal(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x is taken for %x (%v)", b, again, err)
		}
	})
}
