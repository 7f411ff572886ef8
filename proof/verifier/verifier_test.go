package verifier

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/inference"
)

// A file of a stranger is a proof or a key of the kind that its first line says, or is refused.
func FuzzFiles(f *testing.F) {
	shape := inference.Shape{Widths: []uint32{2, 2}}
	f.Add(inference.Proof{Statement: inference.Statement{Model: canon.Sum("m"), Shape: shape, Exponents: []int16{1},
		Pixels: make([]byte, 2), Outputs: make([]byte, 16)}, Commitment: make([]byte, 32)}.Encode())
	f.Add(aggregation.Proof{Statement: aggregation.Statement{Model: canon.Sum("m"), Part: "all",
		Shape: aggregation.Shape{Updates: 2, Length: 2}, Sums: make([]byte, 16)}}.Encode())
	for _, line := range []string{proof.Magic, proof.KeyMagic, inference.KeyMagic, aggregation.KeyMagic, ""} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := ReadKey(data)
		if err == nil && (k.Kind == "" || k.Digest.IsZero() || k.Subject == "") {
			t.Errorf("%+v", k)
		}
		if err != nil && !errors.Is(err, equation.ErrKey) && !errors.Is(err, equation.ErrShape) {
			t.Errorf("a key: %v", err)
		}
		p, err := Decode(data)
		if err != nil {
			return
		}
		if c := p.Claim(); c.Kind == "" || c.Digest.IsZero() || p.Parts() < 0 {
			t.Errorf("%+v", c)
		}
		if err := (Key{}).Verify(p); !errors.Is(err, equation.ErrInvalid) {
			t.Errorf("without a key: %v", err)
		}
	})
}
