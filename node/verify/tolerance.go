package verify

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/screen"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/prepare/demand"
)

// tolerated reads the update of a unit that was attested in a tolerant run, and holds it against the exact one.
func (v *verification) tolerated(ctx context.Context, base *train.Checkpoint, unit uint32,
	own sent) ([]*tensor.Tensor, error) {
	exact, err := v.unpack(base, own)
	if err != nil {
		return nil, err
	}
	line := v.lines[base.Round]
	if int(unit) >= len(line.Updates) {
		return nil, mismatch(line.Round, "it has %d updates, the job %d units", len(line.Updates), v.b.Spec.Units)
	}
	id, err := blob.Parse(line.Updates[unit])
	if err != nil {
		return nil, mismatch(line.Round, "the update of unit %d: %v", unit, err)
	}
	encoded, err := v.store.Get(ctx, id)
	if err != nil {
		return nil, mismatch(line.Round, "the update of unit %d: %v", unit, err)
	}
	delta, err := outer.Unpack(v.b.Spec, base, base.Round, unit, canon.Digest{}, encoded)
	if err != nil {
		return nil, mismatch(line.Round, "the update of unit %d: %v", unit, err)
	}
	like := screen.Compare(delta, exact)
	if t := demand.Tolerance(v.b.Job); !t.Holds(like.PPM()) {
		return nil, mismatch(line.Round, "the update of unit %d is at distance %.4f and cosine %.4f of the exact one, the "+
			"job tolerates %.4f and %.4f",
			unit, like.Distance, like.Cosine, float64(t.DistancePPM)/1e6, float64(t.CosinePPM)/1e6)
	}
	v.seen.Lock()
	defer v.seen.Unlock()
	v.distance = max(v.distance, like.Distance)
	return delta, nil
}
