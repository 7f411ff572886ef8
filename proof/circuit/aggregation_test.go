package circuit

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/equation"
)

// adds is a small key of sums, its prover, and updates with the secrets of their owners.
type adds struct {
	t       *testing.T
	v       *aggregation.Verifier
	a       *Aggregator
	updates []Committed
}

func openSum(t *testing.T) *adds {
	t.Helper()
	key, pk, _, err := SetupAggregation(aggregation.Shape{Updates: 3, Length: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := &adds{t: t}
	if s.v, err = aggregation.NewVerifier(key); err != nil {
		t.Fatal(err)
	}
	if s.a, err = NewAggregator(s.v, pk); err != nil {
		t.Fatal(err)
	}
	s.updates = []Committed{{[]int32{1, -2, math.MaxInt32, 5}, Secret{1}}, {[]int32{0, 0, 0, 0}, Secret{2}},
		{[]int32{7, math.MinInt32, math.MaxInt32, -9}, Secret{3}}}
	return s
}

func (s *adds) state() (out aggregation.Statement) {
	s.t.Helper()
	out = aggregation.Statement{Model: canon.Sum("model"), Part: "round 3", Owner: "owner"}
	var all [][]int32
	for _, u := range s.updates {
		all = append(all, u.Update)
	}
	if err := out.Apply(all); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// A proof has the commitments that the owners made by themselves, and holds for one statement: for no other sum, order,
// commitment, model, part, account or key.
func TestSumsHoldForOneStatement(t *testing.T) {
	s := openSum(t)
	good, err := s.a.Prove(s.state(), s.updates)
	if err != nil {
		t.Fatal(err)
	}
	read, err := aggregation.Decode(good.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.v.Verify(read); err != nil {
		t.Fatal(err)
	}
	if x := read.Statement.Sum(2); x != 2*math.MaxInt32 {
		t.Errorf("a sum of %d", x)
	}
	seen := map[string]bool{}
	for i, u := range s.updates {
		own, err := s.a.Commit(i, u)
		if err != nil || !slices.Equal(own, good.Commitments[i]) || seen[string(own)] {
			t.Errorf("the commitment of owner %d: %v", i, err)
		}
		seen[string(own)] = true
	}
	for _, u := range []Committed{{s.updates[1].Update, Secret{9}}, {s.updates[0].Update, Secret{2}}} {
		if other, err := s.a.Commit(1, u); err != nil || seen[string(other)] {
			t.Errorf("one commitment to two updates, or under two secrets: %v", err)
		}
	}
	swap := func(p *aggregation.Proof, i int, with []byte) {
		p.Commitments = slices.Clone(p.Commitments)
		p.Commitments[i] = with
	}
	changes := map[string]func(*aggregation.Proof){
		"model":  func(p *aggregation.Proof) { p.Statement.Model = canon.Sum("another") },
		"part":   func(p *aggregation.Proof) { p.Statement.Part = "round 4" },
		"owner":  func(p *aggregation.Proof) { p.Statement.Owner = "" },
		"shape":  func(p *aggregation.Proof) { p.Statement.Shape.Updates = 2 },
		"order":  func(p *aggregation.Proof) { slices.Reverse(p.Commitments[:2:2]) },
		"number": func(p *aggregation.Proof) { p.Commitments = p.Commitments[:2] },
		"more":   func(p *aggregation.Proof) { p.Commitments = append(p.Commitments[:3:3], p.Commitments[0]) },
		"known":  func(p *aggregation.Proof) { p.Points = slices.Concat(p.Points[:128], p.Points[:32]) },
		"zero":   func(p *aggregation.Proof) { p.Points = make([]byte, len(p.Points)) },
	}
	for i := range 3 {
		changes["commitment "+string(rune('0'+i))] = func(p *aggregation.Proof) { swap(p, i, p.Points[:32]) }
	}
	for i := range good.Statement.Sums {
		changes["sum byte "+string(rune('a'+i))] = func(p *aggregation.Proof) {
			p.Statement.Sums = slices.Clone(p.Statement.Sums)
			p.Statement.Sums[i] ^= 1
		}
	}
	for name, change := range changes {
		bad, err := aggregation.Decode(good.Encode())
		if err != nil {
			t.Fatal(err)
		}
		change(&bad)
		if err := s.v.Verify(bad); !errors.Is(err, equation.ErrInvalid) && !errors.Is(err, equation.ErrForm) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if err := openSum(t).v.Verify(good); !errors.Is(err, equation.ErrInvalid) {
		t.Errorf("another key: %v", err)
	}
}

// No proof is made of sums that are not those of the updates.
func TestFalseSumsCannotBeProven(t *testing.T) {
	s := openSum(t)
	state := s.state()
	for i := range s.updates {
		for j := range s.updates[i].Update {
			bad := slices.Clone(s.updates)
			bad[i].Update = slices.Clone(bad[i].Update)
			bad[i].Update[j] ^= 1
			if _, err := s.a.Prove(state, bad); err == nil {
				t.Errorf("a proof with another element %d of update %d", j, i)
			}
		}
		if _, err := s.a.Prove(state, slices.Delete(slices.Clone(s.updates), i, i+1)); !errors.Is(err,
			equation.ErrStatement) {
			t.Errorf("a proof without update %d: %v", i, err)
		}
	}
	for place := range 5 {
		if _, err := s.a.Commit(place-1, Committed{Update: make([]int32, 4)}); (err == nil) != (place-1 >= 0 && place-1 < 3) {
			t.Errorf("a commitment at place %d: %v", place-1, err)
		}
	}
}
