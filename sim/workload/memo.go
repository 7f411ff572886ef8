package workload

import (
	"context"
	"maps"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/train"
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
	j.bytes += sizeOf(w)
	if !slices.Contains(j.bases, key.base) {
		j.bases = append(j.bases, key.base)
	}
	for len(j.bases) > remembered && j.bytes > maxRemembered {
		maps.DeleteFunc(j.known, func(k unitKey, w *engine.Work) bool {
			if k.base != j.bases[0] {
				return false
			}
			j.bytes -= sizeOf(w)
			return true
		})
		j.bases = j.bases[1:]
	}
}

// sizeOf is about how many bytes of memory a unit takes.
func sizeOf(w *engine.Work) int {
	n := 2*len(w.Update) + len(w.Log) // in pieces, too
	for _, t := range w.End {
		n += len(t.Bytes())
	}
	return n
}

// combined is what updates lead to.
type combined struct {
	key  canon.Digest
	next *train.Checkpoint
	odd  []uint32
}

// Advance implements party.Lineage. Updates are fetched in any case: a party that cannot get one does not advance.
func (m Memo) Advance(ctx context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (a engine.Advanced, err error) {
	c, err := m.combine(ctx, base, units, get)
	if err != nil {
		return a, err
	}
	a.Odd = c.odd
	if a.Next, err = m.Keep(ctx, c.next); err == nil {
		m.job.right[a.Next.Root] = true
	}
	return a, err
}

func (m Memo) combine(ctx context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (c combined, err error) {
	c.key = combinedKey(base, units)
	if at := slices.IndexFunc(m.job.combined, func(x combined) bool { return x.key == c.key }); at >= 0 {
		for i := range units {
			if _, err := get(i); err != nil {
				return c, err
			}
		}
		return m.job.combined[at], nil
	}
	if c.next, c.odd, err = m.Combine(ctx, base, units, get); err == nil {
		m.job.combined = append(m.job.combined, c)
		m.job.combined = m.job.combined[max(0, len(m.job.combined)-max(remembered, len(m.job.bases))):]
	}
	return c, err
}

// combinedKey names all that the checkpoint after one depends on.
func combinedKey(base terms.Checkpoint, units work.Units) canon.Digest {
	type sent struct {
		Unit   uint32       `cbor:"1,keyasint"`
		Update canon.Digest `cbor:"2,keyasint"`
		CID    string       `cbor:"3,keyasint"`
	}
	list := make([]sent, len(units))
	for i, u := range units {
		list[i] = sent{u.Index, u.Commit.Update, u.Commit.UpdateCID}
	}
	return canon.Sum("starling/sim/combined", base.Root[:], canon.MustMarshal(list))
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
