package aggregation

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
)

// Updates of several lengths, none, and more than a proof is about have no sum.
func TestSumsAreOfOneShape(t *testing.T) {
	for name, updates := range map[string][][]int32{"none": nil, "one": {{1, 2}}, "empty": {{}, {}}, "short": {{1}, {2}},
		"two lengths": {{1, 2}, {1, 2, 3}}, "many": make([][]int32, MaxUpdates+1),
		"long": {make([]int32, MaxElements/2+1), make([]int32, MaxElements/2+1)}} {
		var s Statement
		if err := s.Apply(updates); !errors.Is(err, equation.ErrStatement) && !errors.Is(err, equation.ErrShape) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bytes of strangers that are no proof or no key are refused, and the others have one encoding.
func FuzzDecode(f *testing.F) {
	s := Statement{Model: canon.Sum("model"), Part: "all", Shape: Shape{2, 2}, Sums: make([]byte, 16)}
	f.Add(Proof{s, [][]byte{make([]byte, 32), make([]byte, 32)}, make([]byte, 160)}.Encode())
	f.Add(Key{Shape: s.Shape, Points: make([]byte, equation.KeyBytes(publicInputs, 2))}.Encode())
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := Decode(data); err == nil {
			if string(p.Encode()) != string(data) {
				t.Error("another encoding of the same proof")
			}
			if _, err := Public(canon.Digest{}, p.Statement, p.Commitments); err != nil {
				t.Error(err)
			}
		}
		if v, err := NewVerifier(data); err == nil && string(v.Key().Encode()) != string(data) {
			t.Error("another encoding of the same key")
		}
	})
}
