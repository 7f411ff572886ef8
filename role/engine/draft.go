package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/hold"
)

// Drafts keeps the progress of the unit that an engine computes, for the process that continues it when this one was
// stopped in the middle. There is one draft at a time. A lost or damaged draft costs time and nothing else, so no error
// leaves Drafts.
type Drafts interface {
	// Save is offered every step. It lets write write, if enough has changed since the last time, or if it is the last
	// time before the unit is set aside.
	Save(last bool, write func(io.Writer) error)
	// Load lets read read what was written last, if anything was.
	Load(read func(io.Reader) error)
	// Drop forgets it.
	Drop()
}

// KeepDrafts makes the engine keep drafts of the units that it computes, and continue from the one that is there.
func (e *Engine) KeepDrafts(d Drafts) { e.drafts = d }

// draft is what a draft begins with: its length in four bytes, then its canonical bytes. The bytes of the state follow,
// in the order in which train.StateRoot takes it.
type draft struct {
	Spec     canon.Digest   `cbor:"1,keyasint"` // of the job
	Round    uint32         `cbor:"2,keyasint"`
	Unit     uint32         `cbor:"3,keyasint"`
	Step     uint32         `cbor:"4,keyasint"`
	Segments []canon.Digest `cbor:"5,keyasint,omitempty"` // the first says which checkpoint the unit starts from
	Losses   []byte         `cbor:"6,keyasint,omitempty"` // float32, little-endian
	Norms    []byte         `cbor:"8,keyasint,omitempty"` // the same
	Sum      canon.Digest   `cbor:"7,keyasint"`           // of this with a zero in place of Sum, and of the state
}

// maxDraft is the most bytes of a draft before the state.
const maxDraft = 64 << 20

// sum binds a draft to its state.
func (d draft) sum(state canon.Digest) canon.Digest {
	d.Sum = canon.Digest{}
	return canon.Sum("starling/draft/1", canon.MustMarshal(d), state[:])
}

// write writes the progress of a unit.
func (d draft) write(w io.Writer, p train.Progress) error {
	if p.Fetch != nil {
		if err := p.Fetch(); err != nil {
			return err
		}
	}
	d.Step, d.Segments, d.Losses, d.Norms = p.Step, p.Segments, tensor.FromF32(p.Losses, len(p.Losses)).Bytes(),
		tensor.FromF32(p.Norms, len(p.Norms)).Bytes()
	d.Sum = d.sum(train.StateRoot(p.Step, train.Roots(p.State)))
	head := canon.MustMarshal(d)
	b := bufio.NewWriterSize(w, 1<<20)
	if _, err := b.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), head...)); err != nil {
		return err
	}
	for _, t := range p.State {
		if _, err := b.Write(t.Bytes()); err != nil {
			return err
		}
	}
	return b.Flush()
}

// read reads the progress of the unit d of a job whose parameters have these shapes, and verifies it.
func (d draft) read(r io.Reader, params []*tensor.Tensor) (*train.Progress, error) {
	b := bufio.NewReaderSize(r, 1<<20)
	var size [4]byte
	if _, err := io.ReadFull(b, size[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > maxDraft {
		return nil, fmt.Errorf("engine: a draft with a head of %d bytes, at most %d", n, maxDraft)
	}
	head, err := io.ReadAll(io.LimitReader(b, int64(n)))
	if err != nil {
		return nil, err
	}
	var got draft
	if err := canon.Unmarshal(head, &got); err != nil {
		return nil, err
	}
	if got.Spec != d.Spec || got.Round != d.Round || got.Unit != d.Unit || len(got.Losses) != 4*int(got.Step) ||
		len(got.Norms) != len(got.Losses) {
		return nil, fmt.Errorf("engine: a draft of another unit")
	}
	p := &train.Progress{Step: got.Step, Segments: got.Segments, Losses: floats(got.Losses), Norms: floats(got.Norms)}
	for range 3 { // parameters and two moments
		for _, like := range params {
			t := tensor.New(like.Shape)
			if _, err := io.ReadFull(b, t.Bytes()); err != nil {
				return nil, err
			}
			p.State = append(p.State, t)
		}
	}
	if got.Sum != got.sum(train.StateRoot(p.Step, train.Roots(p.State))) {
		return nil, fmt.Errorf("engine: a damaged draft")
	}
	return p, nil
}

// floats are those of little-endian bytes.
func floats(b []byte) []float32 {
	t := tensor.New(tensor.Make(tensor.Float32, len(b)/4))
	copy(t.Bytes(), b)
	return t.F32()
}

// execute computes a unit of the round after a checkpoint, from its draft if there is one.
func execute(ctx context.Context, e *Engine, name terms.Checkpoint, base *train.Checkpoint,
	unit uint32) (*train.Result, error) {
	d := draft{Spec: e.task.Spec.Digest(), Round: base.Round, Unit: unit}
	var done *train.Progress
	e.drafts.Load(func(r io.Reader) (err error) {
		done, err = d.read(r, base.Params)
		return err
	})
	var latest train.Progress
	paused := func() bool { return errors.Is(context.Cause(ctx), role.ErrPaused) }
	save := func() { e.drafts.Save(paused(), func(w io.Writer) error { return d.write(w, latest) }) }
	observe := func(p train.Progress) error {
		err := ctx.Err()
		latest = p
		switch whole := p.Step == e.task.Spec.Of(unit).StepsOf(unit); {
		case !whole:
			save()
		case paused(): // only its commitment is to be made
			return nil
		}
		return err
	}
	defer stopWith(ctx, e.task)()
	resume := func() (*train.Result, error) {
		from, own, err := e.without(hold.Added(e.task.Spec, len(base.Params)), name, unit)
		if err != nil {
			return nil, err
		}
		return e.task.Resume(base, unit, from, own, done, observe)
	}
	r, err := resume()
	if errors.Is(err, train.ErrProgress) { // of the same unit on another checkpoint
		done = nil
		r, err = resume()
	}
	switch {
	case err == nil:
		e.drafts.Drop()
	case errors.Is(err, cpu.ErrStopped): // within a step: the state is that before it
		if latest.Step > 0 {
			save()
		}
		err = errors.Join(ctx.Err(), err)
	}
	return r, err
}

// noDrafts keeps nothing.
type noDrafts struct{}

func (noDrafts) Save(bool, func(io.Writer) error) {}
func (noDrafts) Load(func(io.Reader) error)       {}
func (noDrafts) Drop()                            {}

// stopWith lets the end of a context stop the steps of the task's Exec until the returned function is called. The unit
// of a device ends between two steps: of its own, the Exec computes one again, which must not look like a failure.
func stopWith(ctx context.Context, task *train.Task) (done func()) {
	if task.Device != nil {
		return func() {}
	}
	task.Exec.StopWhen(func() bool { return ctx.Err() != nil })
	return func() { task.Exec.StopWhen(nil) }
}
