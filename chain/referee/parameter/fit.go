package parameter

import (
	"fmt"

	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/transform"
	"github.com/starling-network/starling/protocol/dispute"
)

// Fit reports, as an error that wraps evidence.ErrTooLarge, the first parameter of which a part needs too much.
func Fit(s *train.Spec, p *program.Program, looked *evidence.Budget) error {
	rounds := uint32(1)
	if s.Exchange.Replicas() { // which are the same in every group
		rounds = max(1, min(s.Exchange.Carry, s.Rounds))
	}
	names, shapes := train.Params(p), p.InputShapes()
	replicas := s.Exchange.Pairs + s.Exchange.Policies
	roots := (1+train.PairState*int(s.Exchange.Pairs)+int(s.Exchange.Policies)+4)*len(names) + len(parts.Given(p))
	if n := roots * evidence.DigestBytes; replicas > 0 && n > dispute.MaxLeaf-evidence.MaxValues {
		return fmt.Errorf("%w: the roots of %d replicas in the checkpoint need %d bytes, at most %d are taken",
			evidence.ErrTooLarge, replicas, n, dispute.MaxLeaf-evidence.MaxValues)
	}
	for round := range rounds {
		for i, name := range names {
			shape := shapes[train.Param+name]
			const each = 1 << 8 // cost of one parameter, as elements; the blocks of a transform come on top
			x, err := of(s, name, shape, round, uint32(i))
			if err != nil {
				return err
			}
			if x.Transform != transform.Plain && !looked.Spend(uint64(shape.Elements()/each)) || !looked.Spend(each) {
				return evidence.ErrBudget
			}
			if n, limit := x.needs(s.Exchange.CarriesResidual()); n > limit {
				return fmt.Errorf("%w: a part of the update of %q by codec %q needs %d bytes, at most %d are taken",
					evidence.ErrTooLarge, name, x.Codec, n, limit)
			}
		}
	}
	return nil
}

// needs is the number of bytes of values that a part of the payload, or of the carried state, is computed from, and the
// number that evidence may have.
func (x Sent) needs(carries bool) (n, limit int) {
	lo, hi := x.Elements(x.Parts() / 2)
	n = 2 * len(evidence.LeavesOf(x.Shape, lo, hi)) * tensor.LeafBytes
	if x.Transform != transform.Plain {
		return x.reaches(carries), evidence.MaxValues
	}
	if !carries {
		return n, evidence.MaxPart
	}
	// the evidence has the carried state too, and for a new carried state the payload
	if c, _ := codec.ByName(x.Codec); x.ResidualParts() == 1 {
		return 3*x.Shape.Bytes() + codec.Size(c, x.Shape), evidence.MaxValues
	}
	return n / 2 * 3, evidence.MaxValues
}

// reaches is how many bytes needs says of a parameter that is transformed: a part is made of whole rows of blocks.
func (x Sent) reaches(carries bool) (most int) {
	c, _ := codec.ByName(x.Codec)
	for part := range min(x.Parts(), (x.Shape.Elements()+codec.PartElements-1)/codec.PartElements) { // as in every pass
		lo, hi := x.Elements(part)
		from, to := transform.Reach(x.Transform, x.Shape, lo, hi)
		n := 2 * len(evidence.LeavesOf(x.Shape, from, to)) * tensor.LeafBytes
		if carries { // the carried state and the payload, in up to three runs of leaves
			n += len(evidence.LeavesOf(x.Shape, lo, hi))*tensor.LeafBytes + codec.Size(c, tensor.Make(tensor.Float32, hi-lo)) +
				6*tensor.LeafBytes
		}
		most = max(most, n)
	}
	return most
}
