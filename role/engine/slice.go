package engine

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
)

// MostSlices is into how many slices the rounds of a job can be reduced at most. A job whose rule looks at whole
// updates is an error that wraps slice.ErrRule.
func MostSlices(x train.Exchange, step *program.Program) (int, error) {
	if err := slice.Check(x); err != nil {
		return 0, err
	}
	return slice.Most(x.Codec, bundle.Parameters(step))
}

func planOf(s *train.Spec, step *program.Program, n int) (*slice.Plan, error) {
	if err := slice.Check(s.Exchange); err != nil {
		return nil, err
	}
	return slice.NewPlan(s.Exchange.Codec, bundle.Parameters(step), n)
}

// index is the blob that the commitment of a job with slices names: the CIDs of the pieces of the update.
type index struct {
	Pieces [][]byte `cbor:"1,keyasint"`
}

// Pack returns the blob that a commitment to an update names, and the pieces that it consists of in a job with slices.
func Pack(s *train.Spec, step *program.Program, slices uint32,
	u *update.Update) (update []byte, pieces [][]byte, err error) {
	if slices == 0 {
		return pack(nil, u)
	}
	p, err := planOf(s, step, int(slices))
	if err != nil {
		return nil, nil, err
	}
	return pack(p, u)
}

func pack(p *slice.Plan, u *update.Update) (update []byte, pieces [][]byte, err error) {
	if p == nil {
		return u.Encode(), nil, nil
	}
	if pieces, err = p.Cut(u); err != nil {
		return nil, nil, err
	}
	var x index
	for _, b := range pieces {
		x.Pieces = append(x.Pieces, blob.Of(b).Bytes())
	}
	return canon.MustMarshal(x), pieces, nil
}

// Pieces returns the CIDs of the pieces that an index names; none in a job without slices. get returns the index.
func (e *Engine) Pieces(get func() ([]byte, error)) ([]blob.CID, error) {
	if e.plan == nil {
		return nil, nil
	}
	b, err := get()
	if err != nil {
		return nil, err
	}
	var x index
	if err := canon.Unmarshal(b, &x); err != nil {
		return nil, err
	}
	if len(x.Pieces) != e.plan.Len() {
		return nil, fmt.Errorf("engine: an index of %d pieces, the job has %d", len(x.Pieces), e.plan.Len())
	}
	pieces := make([]blob.CID, len(x.Pieces))
	for i, p := range x.Pieces {
		if pieces[i], err = blob.FromBytes(p); err != nil {
			return nil, err
		}
	}
	return pieces, nil
}

// Piece fetches a slice of the committed update of a unit of the round after base, and verifies it. get returns the
// bytes of a CID; what its worker did not commit to is a *BadUpdate.
func (e *Engine) Piece(base terms.Checkpoint, u work.Unit, k int,
	get func(cid string) ([]byte, error)) ([]*tensor.Tensor, error) {
	if e.plan == nil || k >= e.plan.Len() {
		return nil, fmt.Errorf("engine: the job has no slice %d", k)
	}
	pieces, err := e.Pieces(func() ([]byte, error) { return get(u.Commit.UpdateCID) })
	if err != nil {
		return nil, &BadUpdate{base.Round, u.Index, err}
	}
	b, err := get(pieces[k].String())
	if err != nil {
		return nil, &BadUpdate{base.Round, u.Index, err}
	}
	delta, err := e.plan.Open(b, slice.Expect{Round: base.Round, Unit: u.Index, Slice: k, Root: u.Commit.Update})
	if err != nil {
		return nil, &BadUpdate{base.Round, u.Index, err}
	}
	return delta, nil
}

// Reduce combines one slice of the committed updates of a round, stores that slice of the next checkpoint and returns
// its CID. get returns the bytes of a CID that the worker of a unit has.
func (e *Engine) Reduce(ctx context.Context, name terms.Checkpoint, units work.Units, k int,
	get func(u work.Unit, cid string) ([]byte, error)) (string, error) {
	base, err := e.Base(name)
	if err != nil {
		return "", err
	}
	deltas := make([][]*tensor.Tensor, len(units))
	for i, u := range units {
		if deltas[i], err = e.Piece(name, *u, k, func(cid string) ([]byte, error) { return get(*u, cid) }); err != nil {
			return "", err
		}
	}
	next, err := outer.Consume(e.task.Spec, e.plan.Base(base, k), deltas, nil)
	if err != nil {
		return "", err
	}
	id, err := e.store.Put(ctx, e.plan.EncodePart(next, k))
	return id.String(), err
}

// BadSlice says that a slice of the next checkpoint cannot be had, or is none.
type BadSlice struct {
	Slice int
	Err   error
}

func (b *BadSlice) Error() string { return fmt.Sprintf("engine: slice %d: %v", b.Slice, b.Err) }

// Unwrap returns why.
func (b *BadSlice) Unwrap() error { return b.Err }

// Join puts the slices of the next checkpoint together. get returns the bytes of a slice; one that is none is a
// *BadSlice.
func (e *Engine) Join(ctx context.Context, name terms.Checkpoint,
	get func(slice int) ([]byte, error)) (Advanced, error) {
	base, err := e.Base(name)
	if err != nil {
		return Advanced{}, err
	}
	if e.plan == nil {
		return Advanced{}, fmt.Errorf("engine: the job is not reduced in slices")
	}
	join := e.plan.Join(base)
	for k := range e.plan.Len() {
		b, err := get(k)
		if err == nil {
			err = join.Add(k, b)
		}
		if err != nil {
			return Advanced{}, &BadSlice{k, err}
		}
	}
	next, err := e.Keep(ctx, join.Checkpoint)
	return Advanced{Next: next}, err
}
