package workload

import (
	"context"
	"maps"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
)

// Memo returns an engine that keeps the units and checkpoints that it computes in the job. slices is how many slices an
// update has, 0: it is whole.
func (j *Job) Memo(e *engine.Engine, slices uint32) Memo { return Memo{e, j, slices} }

// Memo is an engine that looks a unit up before it computes it: a unit is a pure function.
type Memo struct {
	*engine.Engine
	job    *Job
	slices uint32
}

// Train implements party.Compute.
func (m Memo) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	return m.trainTo(ctx, name, unit, 0)
}

func (m Memo) trainTo(ctx context.Context, name terms.Checkpoint, unit, segment uint32) (*engine.Work, error) {
	var from work.HandedState
	if m.Needs(segment) {
		var err error
		if from, err = m.From(name, unit); err != nil {
			return nil, err
		}
	}
	key := unitKey{name.Root, unit, segment, m.slices, from.Root}
	if w, ok := m.job.known[key]; ok {
		return w, nil
	}
	w, err := m.TrainTo(ctx, name, unit, segment)
	if err == nil {
		m.job.remember(key, w)
	}
	return w, err
}

func (j *Job) remember(key unitKey, w *engine.Work) {
	j.known[key] = w
	if slices.Contains(j.bases, key.base) {
		return
	}
	if j.bases = append(j.bases, key.base); len(j.bases) > remembered {
		maps.DeleteFunc(j.known, func(k unitKey, _ *engine.Work) bool { return k.base == j.bases[0] })
		j.bases = j.bases[1:]
	}
}

// Advance implements party.Lineage.
func (m Memo) Advance(ctx context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (engine.Advanced, error) {
	a, err := m.Engine.Advance(ctx, base, units, get)
	if err == nil {
		m.job.right[a.Next.Root] = true
	}
	return a, err
}

// Check implements party.Compute.
func (m Memo) Check(ctx context.Context, name terms.Checkpoint, s audit.Subject,
	c work.Commitment) (engine.Comparison, error) {
	mine, err := m.trainTo(ctx, name, s.Unit, s.Segment)
	if err != nil {
		return engine.Comparison{}, err
	}
	return m.Compare(mine, s, c), nil
}

// Measure implements party.Compute.
func (m Memo) Measure(ctx context.Context, name terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (audit.Finding, error) {
	mine, err := m.Train(ctx, name, unit)
	if err != nil {
		return audit.Finding{}, err
	}
	return m.Find(mine, name, unit, c, update)
}

// Unseal implements party.Compute.
func (m Memo) Unseal(ctx context.Context, name terms.Checkpoint, s audit.Subject,
	question canon.Digest) (audit.Opening, error) {
	mine, err := m.trainTo(ctx, name, s.Unit, s.Segment)
	if err != nil {
		return audit.Opening{}, err
	}
	return m.Answer(mine, s, question)
}
