package staged

import (
	"context"
	"fmt"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// values are those that a stage has exchanged with others in a unit, by step and number in the program that was cut.
type values struct {
	mu    sync.Mutex
	steps map[uint32]map[int32]*tensor.Tensor
	root  canon.Digest // work.LinksRoot of the commitment whose heads they are under; zero: they are not compared
}

func newValues() *values { return &values{steps: map[uint32]map[int32]*tensor.Tensor{}} }

// put keeps a value.
func (v *values) put(step uint32, value int32, x *tensor.Tensor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.steps[step] == nil {
		v.steps[step] = map[int32]*tensor.Tensor{}
	}
	v.steps[step][value] = x
}

// frame keeps copies of the values of a frame.
func (v *values) frame(p *stages.Plan, from, to int, f pass.Frame) {
	for i, t := range p.Frame(from, to, f.Task) {
		v.put(f.Step, t.Value, f.Values[i].Clone())
	}
}

// inputs are the inputs of a step of a stage that others have sent.
func (v *values) inputs(p *stages.Plan, stage int, step uint32) (map[string]*tensor.Tensor, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	in := map[string]*tensor.Tensor{}
	for _, t := range p.Transfers {
		if t.To != stage {
			continue
		}
		x := v.steps[step][t.Value]
		if x == nil {
			return nil, fmt.Errorf("staged: no value %d of stage %d in step %d", t.Value, t.From, step)
		}
		in[fmt.Sprintf("%s%d", parts.Received, t.Value)] = x
	}
	return in, nil
}

// head is the head of a link over these values.
func (v *values) head(p *stages.Plan, l terms.Link, steps uint32) (canon.Digest, error) {
	h, err := link.Head(p, l, steps, func(step uint32, t stages.Transfer) (canon.Digest, error) {
		v.mu.Lock()
		x := v.steps[step][t.Value]
		v.mu.Unlock()
		if x == nil {
			return canon.Digest{}, fmt.Errorf("staged: no value %d of stage %d in step %d", t.Value, t.From, step)
		}
		return x.Root(), nil
	})
	return h.Chain, err
}

// bytes are those of the values of a link in a step, as they are kept for verifiers: both sides keep the same.
func (v *values) bytes(p *stages.Plan, l terms.Link, step uint32) (b []byte, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range link.On(p, l) {
		x := v.steps[step][t.Value]
		if x == nil {
			return nil, fmt.Errorf("staged: no value %d of stage %d in step %d", t.Value, t.From, step)
		}
		b = append(b, x.Bytes()...)
	}
	return b, nil
}

// read takes the values of a link in a step from bytes of anybody: of as many as the plan says.
func (v *values) read(p *stages.Plan, l terms.Link, step uint32, b []byte) error {
	for _, t := range link.On(p, l) {
		x := tensor.New(t.Shape)
		if len(b) < len(x.Bytes()) {
			return fmt.Errorf("staged: the values of a step on the link from stage %d to stage %d end early", l.From, l.To)
		}
		b = b[copy(x.Bytes(), b):]
		x.Canonicalize()
		v.put(step, t.Value, x)
	}
	if len(b) > 0 {
		return fmt.Errorf("staged: %d bytes too many on the link from stage %d to stage %d", len(b), l.From, l.To)
	}
	return nil
}

// under reports, as an error, that the values of a link are not under the head of it in a commitment.
func (v *values) under(p *stages.Plan, l terms.Link, steps uint32, committed work.Exchanged) error {
	h, err := v.head(p, l, steps)
	if err == nil && h != committed.Chain {
		err = fmt.Errorf("staged: the values of the link from stage %d to stage %d are not those that were exchanged",
			l.From, l.To)
	}
	return err
}

// agrees reports whether what is received on the links of a stage is under the heads of a commitment.
func (v *values) agrees(p *stages.Plan, stage int, steps uint32, c work.Commitment) (bool, error) {
	for i, l := range link.OfStage(p, stage) {
		if int(l.To) != stage {
			continue
		}
		h, err := v.head(p, l, steps)
		if err != nil || i >= len(c.Links) || c.Links[i].Chain != h {
			return false, err
		}
	}
	return true, nil
}

// Record names the values that a stage has exchanged: a blob for each of its links and steps.
type Record struct {
	Links [][][]byte `cbor:"1,keyasint"` // CIDs, by link in the order of link.OfStage, and step
}

// maxRecord is the most bytes of a record that are read.
const maxRecord = 1 << 20

// decodeRecord reads a record from anybody.
func decodeRecord(b []byte) (r Record, err error) {
	if len(b) > maxRecord {
		return r, fmt.Errorf("staged: a record of %d bytes, at most %d are read", len(b), maxRecord)
	}
	if err := canon.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("staged: a record: %w", err)
	}
	return r, nil
}

// Blobs are those that a record with a CID names, and its own.
func Blobs(ctx context.Context, get func(context.Context, blob.CID) ([]byte, error), id blob.CID) ([]blob.CID, error) {
	b, err := get(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(b)
	if err != nil {
		return nil, err
	}
	list := []blob.CID{id}
	for _, cids := range r.Links {
		for _, cid := range cids {
			c, err := blob.FromBytes(cid)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		}
	}
	return list, nil
}
