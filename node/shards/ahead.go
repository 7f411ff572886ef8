package shards

import (
	"context"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// Ahead begins to fetch the data of a unit as soon as the role wants it computed: while another unit is computed, and
// before the engine is taken for it.
type Ahead struct {
	party.Compute
	Corpus *Corpus
	Spec   *train.Spec
}

// Train implements party.Compute.
func (a Ahead) Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error) {
	done, err := a.begin(ctx, base.Round, unit, 0)
	if err != nil {
		return nil, err
	}
	defer done()
	return a.Compute.Train(ctx, base, unit)
}

// Check implements party.Compute.
func (a Ahead) Check(ctx context.Context, base terms.Checkpoint, s audit.Subject, c work.Commitment) (engine.Comparison,
	error) {
	done, err := a.begin(ctx, base.Round, s.Unit, s.Segment)
	if err != nil {
		return engine.Comparison{}, err
	}
	defer done()
	return a.Compute.Check(ctx, base, s, c)
}

// Measure implements party.Compute.
func (a Ahead) Measure(ctx context.Context, base terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (audit.Finding, error) {
	done, err := a.begin(ctx, base.Round, unit, 0)
	if err != nil {
		return audit.Finding{}, err
	}
	defer done()
	return a.Compute.Measure(ctx, base, unit, c, update)
}

// begin begins to fetch what a unit reads to the end of a segment, or (0) all of it.
func (a Ahead) begin(ctx context.Context, round, unit, segment uint32) (done func(), err error) {
	s := a.Spec.Of(unit)
	steps := s.StepsOf(unit)
	if segment > 0 {
		steps = s.StepsTo(unit, segment)
	}
	return a.Corpus.Begin(ctx, s.Address(round, unit, 0), steps, int(s.Length))
}
