package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
)

// Fragment is one replica's side of a part of the model that is exchanged as one; without fragments, of all of it.
// Params and State are the same bits in every replica. They, and not a replica's own parameters, are what to evaluate,
// to publish, and to give to who joins.
type Fragment struct {
	Params []*tensor.Tensor   // as of the last exchange
	State  [][]*tensor.Tensor // of the optimizer: State[k][i] belongs to Params[i]
	sent   []*tensor.Tensor   // the replica's own parameters when they were sent; nil when nothing is under way
}

// NewFragment returns a fragment that starts from these parameters, which it keeps, with the optimizer's first state.
func NewFragment(o Optimizer, params []*tensor.Tensor) *Fragment {
	f := &Fragment{Params: params, State: make([][]*tensor.Tensor, o.State())}
	for k := range f.State {
		for _, p := range params {
			f.State[k] = append(f.State[k], tensor.New(p.Shape))
		}
	}
	return f
}

// Send returns the pseudo-gradient of the replica's own parameters: Params minus local.
func (f *Fragment) Send(local []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if f.sent != nil {
		return nil, fmt.Errorf("outer: a fragment is sent while it is under way")
	}
	if err := alike(f.Params, local); err != nil {
		return nil, err
	}
	delta := make([]*tensor.Tensor, len(local))
	for i, p := range f.Params {
		d := p.Clone()
		f.sent = append(f.sent, local[i].Clone())
		y := d.F32()
		for j, x := range local[i].F32() {
			y[j] -= x
		}
		delta[i] = d
	}
	return delta, nil
}

// Apply moves Params by the combined update, and then lets m set the replica's own parameters. Everybody applies what was
// decoded, whoever sent it, in place of what it knows of its own: so Params stay the same bits everywhere.
func (f *Fragment) Apply(o Optimizer, combined, local []*tensor.Tensor, m Merge) error {
	if f.sent == nil {
		return fmt.Errorf("outer: a fragment is applied that was not sent")
	}
	if err := alike(f.Params, combined); err != nil {
		return err
	}
	if err := alike(f.Params, local); err != nil {
		return err
	}
	for i, p := range f.Params {
		state := make([][]float32, len(f.State))
		for k := range state {
			state[k] = f.State[k][i].F32()
		}
		o.Step(p.F32(), combined[i].F32(), state)
		m(local[i].F32(), f.sent[i].F32(), p.F32())
	}
	f.sent = nil
	return nil
}

// Merge sets a replica's own parameters, in place, from what they were when they were sent and the outer parameters.
type Merge func(local, sent, next []float32)

// DeltaRule keeps what was learned while the update was under way: local = next + (local - sent). Without a delay local
// becomes next.
func DeltaRule(local, sent, next []float32) {
	sent, next = sent[:len(local)], next[:len(local)]
	for i := range local {
		local[i] = next[i] + (local[i] - sent[i])
	}
}

// Mix is the merge of Streaming DiLoCo: local = alpha*local + (1-alpha)*next, alpha 0.5 in the paper. Part of what was
// learned since the last exchange is undone by every one.
func Mix(alpha float32) Merge {
	rest := 1 - alpha
	return func(local, _, next []float32) {
		next = next[:len(local)]
		for i := range local {
			local[i] = float32(alpha*local[i]) + float32(rest*next[i])
		}
	}
}

func alike(x, y []*tensor.Tensor) error {
	if len(x) != len(y) {
		return fmt.Errorf("%w: %d tensors, want %d", ErrRound, len(y), len(x))
	}
	for i := range x {
		if !x[i].Shape.Equal(y[i].Shape) {
			return fmt.Errorf("%w: tensor %d is %s, want %s", ErrRound, i, y[i].Shape, x[i].Shape)
		}
	}
	return nil
}
