package circuit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
)

var small = proof.Shape{Rank: 2, In: 6, Out: 4}

// world is a small key, its prover, and an adapter.
type world struct {
	t *testing.T
	v *proof.Verifier
	p *Prover
	w proof.Weights
}

func open(t *testing.T) *world {
	t.Helper()
	key, pk, _, err := Setup(small)
	if err != nil {
		t.Fatal(err)
	}
	v, err := proof.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProver(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, v, p, proof.Weights{Shape: small, A: numbers(1, small.Rank*small.In),
		B: numbers(2, small.Rank*small.Out)}}
}

func numbers(seed uint64, n uint32) (f proof.Fixed) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range n {
		f.Values = append(f.Values, int16(rng.IntN(1<<16-1)-(1<<15-1)))
	}
	return f
}

// state is a statement about some tokens.
func (w *world) state(tokens ...uint32) proof.Statement {
	w.t.Helper()
	s := proof.Statement{Base: canon.Sum("base"), Adapter: canon.Sum("adapter"), Module: "h.0",
		Factor: math.Float64bits(2), Tokens: tokens}
	if err := s.Apply(w.w, numbers(uint64(tokens[0]), uint32(len(tokens))*small.In)); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) prove(s proof.Statement) proof.Proof {
	w.t.Helper()
	made, err := w.p.Prove(s, w.w, Secret{7})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// A proof holds after it travelled, and with no other statement, commitment, point or key.
func TestProofsHoldForOneStatement(t *testing.T) {
	w := open(t)
	good := w.prove(w.state(3, 9, 12))
	read, err := proof.Decode(good.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.v.Verify(read); err != nil {
		t.Fatal(err)
	}
	if n := len(good.Points) + len(good.Commitment); n > 1024 {
		t.Errorf("a proof of %d bytes", n)
	}
	other := w.prove(w.state(4))
	flip := func(b []byte, i int) []byte {
		b = slices.Clone(b)
		b[i] ^= 1
		return b
	}
	changes := map[string]func(*proof.Proof){
		"base":       func(p *proof.Proof) { p.Statement.Base = canon.Sum("another") },
		"adapter":    func(p *proof.Proof) { p.Statement.Adapter = canon.Sum("another") },
		"layer":      func(p *proof.Proof) { p.Statement.Module = "h.1" },
		"token":      func(p *proof.Proof) { p.Statement.Tokens = []uint32{3, 9, 13} },
		"exponent":   func(p *proof.Proof) { p.Statement.Exponents[0]++ },
		"factor":     func(p *proof.Proof) { p.Statement.Factor++ },
		"owner":      func(p *proof.Proof) { p.Statement.Owner = "another" },
		"commitment": func(p *proof.Proof) { p.Commitment = flip(p.Commitment, 31) },
		"points":     func(p *proof.Proof) { p.Points = other.Points },
		"shorter":    func(p *proof.Proof) { p.Points = p.Points[:100] },
		"longer":     func(p *proof.Proof) { p.Points = append(slices.Clone(p.Points), 0) },
		"zero":       func(p *proof.Proof) { p.Points = make([]byte, len(p.Points)) },
		"negative": func(p *proof.Proof) {
			p.Points = slices.Clone(p.Points)
			p.Points[0] ^= 0x40
		},
		"known": func(p *proof.Proof) {
			p.Points = slices.Concat(p.Points[:len(p.Points)-32], p.Points[:32])
		},
	}
	for i := range good.Statement.Inputs {
		if i%2 == 0 {
			changes[string(rune('a'+i))+" input"] = func(p *proof.Proof) { p.Statement.Inputs = flip(p.Statement.Inputs, i) }
		}
	}
	for i := range len(good.Statement.Outputs) / 8 {
		changes[string(rune('a'+i))+" output"] = func(p *proof.Proof) {
			p.Statement.Outputs = flip(p.Statement.Outputs, 8*i)
		}
	}
	for name, change := range changes {
		bad := good
		change(&bad)
		if err := w.v.Verify(bad); !errors.Is(err, proof.ErrInvalid) && !errors.Is(err, proof.ErrProof) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if err := open(t).v.Verify(good); !errors.Is(err, proof.ErrInvalid) {
		t.Errorf("another key: %v", err)
	}
}

// No proof is made of outputs that are not those of the weights, not even by their owner.
func TestFalseOutputsCannotBeProven(t *testing.T) {
	w := open(t)
	s := w.state(5, 6)
	binary.LittleEndian.PutUint64(s.Outputs, binary.LittleEndian.Uint64(s.Outputs)+1)
	if _, err := w.p.Prove(s, w.w, Secret{7}); err == nil {
		t.Error("a proof of a false output")
	}
}

// All proofs about an adapter have one commitment, which hides it: another secret or other weights have another.
func TestCommitmentsAreOfAdapters(t *testing.T) {
	w := open(t)
	first, second := w.prove(w.state(1)), w.prove(w.state(2, 8))
	if !bytes.Equal(first.Commitment, second.Commitment) {
		t.Error("two commitments to one adapter")
	}
	seen := [][]byte{first.Commitment}
	commit := func(secret Secret, module string) {
		t.Helper()
		c, err := w.p.Commit(w.w, module, secret)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(seen, func(x []byte) bool { return bytes.Equal(x, c) }) {
			t.Errorf("one commitment to two adapters")
		}
		seen = append(seen, c)
	}
	commit(Secret{8}, "h.0")
	commit(Secret{7}, "h.1")
	w.w.B.Values = slices.Clone(w.w.B.Values)
	w.w.B.Values[0]++
	commit(Secret{7}, "h.0")
}

// A key of a stranger has points that are on the curve and not zero, and as many as its shape needs.
func TestKeysAreChecked(t *testing.T) {
	key := open(t).v.Key()
	for name, change := range map[string]func(*proof.Key){
		"shape":  func(k *proof.Key) { k.Shape.In++ },
		"points": func(k *proof.Key) { k.Points = k.Points[64:] },
		"zero":   func(k *proof.Key) { copy(k.Points, make([]byte, 64)) },
		"curve":  func(k *proof.Key) { k.Points[63] ^= 1 },
	} {
		bad := key
		bad.Points = slices.Clone(key.Points)
		change(&bad)
		if _, err := proof.NewVerifier(bad.Encode()); !errors.Is(err, proof.ErrKey) {
			t.Errorf("another %s: %v", name, err)
		}
	}
}
