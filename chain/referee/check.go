package referee

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// corpusFits checks the manifest of a corpus that anybody may have written.
func corpusFits(s *train.Spec, manifest []byte) error {
	m, err := data.DecodeManifest(manifest)
	if err != nil {
		return err
	}
	if d := m.Digest(); d != s.Data {
		return fmt.Errorf("the manifest of the corpus is %s, the specification names %s", d.Short(), s.Data.Short())
	}
	return tokensFit(s, m)
}

// tokensFit reports, as an error that wraps evidence.ErrTooLarge, that what shows a tile of tokens has no room in a
// payload.
func tokensFit(s *train.Spec, m data.Manifest) error {
	if n := tokensBytes(s, m); n > evidence.MaxValues {
		return fmt.Errorf("%w: a tile of tokens needs %d bytes, at most %d are taken", evidence.ErrTooLarge, n,
			evidence.MaxValues)
	}
	return nil
}

// Check reports, as an error that wraps evidence.ErrTooLarge, why a dispute about a job might end in a question that
// cannot be answered: a program beyond the limits of an opening, or a tile, a parameter or the manifest of a corpus
// beyond dispute.MaxLeaf, or that an order of the job costs a chain too much. A worker that lies there could not be
// convicted. The size of the corpus does not matter.
func Check(s *train.Spec, p *program.Program, m data.Manifest) error {
	if err := tokensFit(s, m); err != nil {
		return err
	}
	n := len(Opening(s, p, m))
	if n > MaxOpening {
		return fmt.Errorf("%w: a program and a manifest of %d bytes, at most %d are taken", evidence.ErrTooLarge, n,
			MaxOpening)
	}
	if err := admit.Verify(p, limits); err != nil {
		return fmt.Errorf("%w: %w", evidence.ErrTooLarge, err)
	}
	r := &Referee{spec: s, step: p, bytes: n}
	_, err := r.Decidable(evidence.MaxCheck)
	return err
}

// Decidable implements works.Case. The error wraps evidence.ErrTooLarge, and names the first operator or parameter of
// which not even the smallest part can be recomputed.
func (r *Referee) Decidable(most uint64) (cost uint64, err error) {
	n := evidence.Limit(min(most, uint64(evidence.MaxCheck-evidence.ByteCost*r.bytes)))
	if err := division.Check(r.step, n); err != nil {
		return n.Spent(), err
	}
	if err = parameter.Fit(r.spec, r.step, n); err == nil && r.spec.Pipeline != nil {
		err = linksFit(r)
	}
	return n.Spent(), err
}

// linksFit reports a stage of which the roots of all states, from which the heads of its links follow, have no room in
// a payload.
func linksFit(r *Referee) error {
	if len(r.stages) == 0 {
		divide(r)
	}
	for i, of := range r.stages {
		if n := int(r.spec.Steps) * len(of.index) * evidence.DigestBytes; n > evidence.MaxValues {
			return fmt.Errorf("%w: the roots of the states of stage %d need %d bytes, at most %d are taken",
				evidence.ErrTooLarge, i, n, evidence.MaxValues)
		}
	}
	return nil
}

// tokensBytes bounds what shows a tile of the tokens of a step: every window in leaves of its own.
func tokensBytes(s *train.Spec, m data.Manifest) int64 {
	const path = 5 * (canon.Fanout - 1) * 34 // bytes of the cover of one leaf, as they are encoded, at most
	width := int64(s.Length) + 1
	windows := min(int64(s.Batch), tensor.LeafBytes/4/width+2)
	leaves := min(width, tensor.LeafBytes/4)*int64(m.Width)/data.LeafBytes + 2
	return windows*(leaves*data.LeafBytes+2*path) + int64(len(m.Encode()))
}
