package referee

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/transform"
	"github.com/starling-network/starling/protocol/dispute"
)

// updatePayload shows what a part of the payload of a parameter is made from.
type updatePayload struct {
	Before     progress       `cbor:"1,keyasint"`
	Checkpoint []canon.Digest `cbor:"2,keyasint"` // roots of the tensors of the checkpoint
	State      []canon.Digest `cbor:"3,keyasint"` // and of the last state
	Base       excerpt        `cbor:"4,keyasint"` // of the parameter in the checkpoint
	End        excerpt        `cbor:"5,keyasint"` // and in the last state
	origin
}

// origin shows what was handed on to a unit, for a part of a parameter. It is empty if that is nothing.
type origin struct {
	From []canon.Digest `cbor:"6,keyasint,omitempty"` // roots of its tensors
	Left excerpt        `cbor:"7,keyasint,omitzero"`  // of what was left out of the parameter
}

// leavesOf lists the leaves of a tensor that hold elements lo up to hi.
func leavesOf(s tensor.Shape, lo, hi int) (out []int) {
	each := tensor.LeafBytes / s.DType.Size()
	for l := lo / each; l*each < hi; l++ {
		out = append(out, l)
	}
	return out
}

// paramShape is the shape of a parameter that is trained.
func paramShape(p *program.Program, name string) tensor.Shape {
	for _, in := range p.Inputs() {
		if in.Name == train.Param+name {
			return in.Shape
		}
	}
	return tensor.Shape{}
}

// sent is what is sent of a parameter in a round: how its payload is made.
type sent struct {
	codec.PartialEncoder
	codec     string
	transform string // of the elements, before
	shape     tensor.Shape
}

func sentOf(s *train.Spec, p *program.Program, round, index uint32) (x sent, err error) {
	names := train.Params(p)
	if uint64(index) >= uint64(len(names)) {
		return x, wrong("there is no parameter %d", index)
	}
	return sentAs(s, names[index], paramShape(p, names[index]), round, index)
}

// sentAs is sentOf for a parameter with a name and a shape.
func sentAs(s *train.Spec, name string, shape tensor.Shape, round, index uint32) (x sent, err error) {
	turn, err := outer.TurnOf(s, name, int(index), round)
	if err != nil {
		return x, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	x.codec, x.transform, x.shape = turn.Codec, s.Exchange.Transform, shape
	if x.PartialEncoder, err = codec.MakingOf(x.codec, x.shape); err != nil {
		return x, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return x, nil
}

// updatesFit reports, as an error that wraps ErrTooLarge, the first parameter of which a part needs too much.
func updatesFit(s *train.Spec, p *program.Program, looked *checked) error {
	rounds := uint32(1)
	if s.Exchange.Replicas() { // which are the same in every group
		rounds = max(1, min(s.Exchange.Carry, s.Rounds))
	}
	names, shapes := train.Params(p), p.InputShapes()
	if n := (1 + train.PairState*int(s.Exchange.Pairs) + 4) * len(names) * encodedDigest; s.Exchange.Pairs > 0 &&
		n > dispute.MaxLeaf-maxValues {
		return fmt.Errorf("%w: the roots of %d replicas in the checkpoint need %d bytes, at most %d are taken", ErrTooLarge,
			s.Exchange.Pairs, n, dispute.MaxLeaf-maxValues)
	}
	for round := range rounds {
		for i, name := range names {
			shape := shapes[train.Param+name]
			const each = 1 << 8 // what one parameter costs, as elements; of a transform, its blocks beside
			x, err := sentAs(s, name, shape, round, uint32(i))
			if err != nil {
				return err
			}
			if x.transform != transform.Plain && !looked.spend(uint64(shape.Elements()/each)) || !looked.spend(each) {
				return errChecked
			}
			if n, limit := x.needs(s.Exchange.Leaves()); n > limit {
				return fmt.Errorf("%w: a part of the update of %q by codec %q needs %d bytes, at most %d are taken", ErrTooLarge,
					name, x.codec, n, limit)
			}
		}
	}
	return nil
}

// needs is how many bytes of values a part of the payload is made from, or of what the parameter hands on, and how many
// may be brought.
func (x sent) needs(carries bool) (n, limit int) {
	lo, hi := x.Elements(x.Parts() / 2)
	n = 2 * len(leavesOf(x.shape, lo, hi)) * tensor.LeafBytes
	if x.transform != transform.Plain {
		return x.reaches(carries), maxValues
	}
	if !carries {
		return n, maxPart
	}
	// what was handed on lies beside it, and for what is handed on what is sent
	if c, _ := codec.ByName(x.codec); x.handsOnParts() == 1 {
		return 3*x.shape.Bytes() + codec.Size(c, x.shape), maxValues
	}
	return n / 2 * 3, maxValues
}

// reaches is how many bytes needs says of a parameter that is transformed: a part is made of whole rows of blocks.
func (x sent) reaches(carries bool) (most int) {
	c, _ := codec.ByName(x.codec)
	for part := range min(x.Parts(), (x.shape.Elements()+codec.PartElements-1)/codec.PartElements) { // as in every pass
		lo, hi := x.Elements(part)
		from, to := transform.Reach(x.transform, x.shape, lo, hi)
		n := 2 * len(leavesOf(x.shape, from, to)) * tensor.LeafBytes
		if carries { // what was handed on, and what is sent, in up to three runs of leaves
			n += len(leavesOf(x.shape, lo, hi))*tensor.LeafBytes + codec.Size(c, tensor.Make(tensor.Float32, hi-lo)) +
				6*tensor.LeafBytes
		}
		most = max(most, n)
	}
	return most
}

// update makes a part of the payload of one parameter again.
func (r *Referee) update(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	m, err := sentOf(r.spec, r.step, c.Round, c.Index)
	if err != nil {
		return dispute.Ruling{}, err
	}
	if c.Part >= uint64(m.Parts()) {
		return dispute.Ruling{}, wrong("the payload of parameter %d has no part %d", c.Index, c.Part)
	}
	var p updatePayload
	if err := decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := errors.Join(r.isCheckpoint(c, p.Checkpoint), r.isPrior(c, p.State)); err != nil {
		return dispute.Ruling{}, err
	}
	part := int(c.Part)
	lo, hi := m.Elements(part)
	delta, err := r.toSend(c, m, p, lo, hi)
	if err != nil {
		return dispute.Ruling{}, err
	}
	if c.Output.IsZero() {
		return finite(delta), nil
	}
	done, err := opened(c.Part, c.Before, p.Before, m.Leaves(part))
	if err != nil {
		return dispute.Ruling{}, err
	}
	leaves, state, err := m.Make(part, p.Before.State, delta)
	switch {
	case errors.Is(err, codec.ErrState):
		return dispute.Ruling{}, fmt.Errorf("%w: %w", ErrPayload, err)
	case err != nil:
		return nothing, nil
	}
	return rule(grown(done, leaves, state, part+1 == m.Parts()), c.Output), nil
}

// toSend returns what elements lo up to hi of the update of a parameter are before they are compressed.
func (r *Referee) toSend(c dispute.Claim, x sent, p updatePayload, lo, hi int) ([]float32, error) {
	shape := x.shape
	from, to := transform.Reach(x.transform, shape, lo, hi)
	base, err := elements(shape, p.Base, from, to, p.Checkpoint[c.Index])
	if err != nil {
		return nil, err
	}
	end, err := elements(shape, p.End, from, to, p.State[c.Index])
	if err != nil {
		return nil, err
	}
	if c.From.IsZero() || !adds(r.spec, c.Round, r.names[c.Index]) {
		return x.toSend(r.spec, base, end, nil, lo, hi), nil
	}
	if err := r.isFrom(c, p.From); err != nil {
		return nil, err
	}
	left, err := elements(shape, p.Left, lo, hi, p.From[c.Index])
	if err != nil {
		return nil, err
	}
	return x.toSend(r.spec, base, end, left, lo, hi), nil
}

// adds reports whether the update of a parameter is made from what was handed on to the unit, beside the checkpoint and
// the last state. Of most replicas it is not: they began with it.
func adds(s *train.Spec, round uint32, name string) bool {
	return s.Exchange.Feedback > 0 || s.UnderWay(round, name)
}

// toSend is elements lo up to hi of what is sent of a parameter, before it is compressed, from the elements of the
// checkpoint and of the last state within their transform.Reach. What was left out is added, if it is not nil; where
// rounds overlap, what was handed on is sent already.
func (x sent) toSend(s *train.Spec, base, end, left []float32, lo, hi int) []float32 {
	if left != nil && s.Exchange.Overlap > 0 {
		return minus(minus(base, left), end)
	}
	from, _ := transform.Reach(x.transform, x.shape, lo, hi)
	delta := transform.Piece(x.transform, x.shape, minus(base, end))[lo-from : hi-from]
	if left != nil {
		feedback(s).Accumulate(delta, left)
	}
	return delta
}

func (r *Referee) isFrom(c dispute.Claim, roots []canon.Digest) error {
	if len(roots) != len(train.HandedOn(r.spec.Exchange, r.step)) || train.CarriedRoot(roots) != c.From {
		return wrong("these are not the tensors of the state %s that was handed on", c.From.Short())
	}
	return nil
}

// finite answers whether a part of an update cannot be made because an element of it is not finite, as the worker
// claims.
func finite(delta []float32) dispute.Ruling {
	return dispute.Ruling{Right: slices.ContainsFunc(delta, func(x float32) bool { return x-x != 0 })}
}

// elements reads elements lo up to hi of a tensor with a root from an excerpt.
func elements(shape tensor.Shape, x excerpt, lo, hi int, root canon.Digest) ([]float32, error) {
	if lo == hi {
		return nil, nil
	}
	part, has, err := x.read(shape, leavesOf(shape, lo, hi))
	if err != nil {
		return nil, err
	}
	if has != root {
		return nil, wrong("these are not leaves of the tensor with root %s", root.Short())
	}
	t := tensor.New(tensor.Make(tensor.Float32, hi-lo))
	part.Read(t.Bytes(), lo) // the leaves are those of these elements
	return t.F32(), nil
}

func minus(a, b []float32) []float32 {
	out := make([]float32, len(a))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

// grown is the digest of what there is of a payload after a part: its root after the last.
func grown(done *canon.Frontier, leaves [][]byte, state []byte, last bool) canon.Digest {
	for _, d := range canon.Leaves(leaves) {
		done.Push(d)
	}
	if last {
		return done.Root()
	}
	return progress{done.Nodes(), state}.digest()
}

// payloadAfter makes the payload of a parameter and returns what there is of it after each of the given numbers of
// parts, ascending, and what there is in the open after the last of them, if that is not the whole. From a part on that
// cannot be made there is nothing.
func (w *Witness) payloadAfter(c dispute.Claim, after []uint64) ([]canon.Digest, progress, error) {
	m, err := sentOf(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, progress{}, err
	}
	delta, err := w.toSend(c)
	if err != nil {
		return nil, progress{}, err
	}
	var out []canon.Digest
	var p progress
	done := new(canon.Frontier)
	for part := range m.Parts() + 1 {
		for len(out) < len(after) && after[len(out)] == uint64(part) {
			d := p.digest()
			if part == m.Parts() {
				d = done.Root()
			}
			out = append(out, d)
		}
		if len(out) == len(after) {
			break
		}
		lo, hi := m.Elements(part)
		leaves, state, err := m.Make(part, p.State, delta[lo:hi])
		if errors.Is(err, codec.ErrPayload) { // not finite
			return append(out, make([]canon.Digest, len(after)-len(out))...), progress{}, nil
		}
		if err != nil {
			return nil, progress{}, err
		}
		for _, d := range canon.Leaves(leaves) {
			done.Push(d)
		}
		p = progress{done.Nodes(), state}
	}
	return out, p, nil
}

// update brings what a part of the payload of a parameter is made from.
func (w *Witness) update(c dispute.Claim) (p updatePayload, err error) {
	m, err := sentOf(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return p, err
	}
	if _, p.Before, err = w.payloadAfter(c, []uint64{c.Part}); err != nil {
		return p, err
	}
	lo, hi := m.Elements(int(c.Part))
	return p, w.sources(c, m, &p, lo, hi)
}

// sources brings what elements lo up to hi of the update of a parameter are made from.
func (w *Witness) sources(c dispute.Claim, x sent, p *updatePayload, lo, hi int) (err error) {
	end := w.session.Tensors()
	p.Checkpoint, p.State = w.checkpoint(), train.Roots(end)
	shape := x.shape
	left := w.left(c)
	if left != nil {
		p.From = train.Roots(w.from)
	}
	if lo == hi {
		return nil
	}
	at := leavesOf(shape, lo, hi)
	if left != nil {
		if p.Left, _, err = excerptOf(left[c.Index], at); err != nil {
			return err
		}
	}
	from, to := transform.Reach(x.transform, shape, lo, hi)
	at = leavesOf(shape, from, to)
	if p.Base, _, err = excerptOf(w.base.Params[c.Index], at); err != nil {
		return err
	}
	p.End, _, err = excerptOf(end[c.Index], at)
	return err
}

// toSend returns the update of a parameter before it is compressed.
func (w *Witness) toSend(c dispute.Claim) ([]float32, error) {
	if err := w.at(c.Step); err != nil {
		return nil, err
	}
	x, err := sentOf(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, err
	}
	base, end := w.base.Params[c.Index].F32(), w.session.Tensors()[c.Index].F32()
	if left := w.left(c); left != nil {
		return x.toSend(w.task.Spec, base, end, left[c.Index].F32(), 0, len(base)), nil
	}
	return x.toSend(w.task.Spec, base, end, nil, 0, len(base)), nil
}

// left is what was handed on to the unit if the update of the parameter of a claim is made from that.
func (w *Witness) left(c dispute.Claim) []*tensor.Tensor {
	if !adds(w.task.Spec, c.Round, w.base.Names[c.Index]) {
		return nil
	}
	left, _ := train.Split(w.task.Spec.Exchange, len(w.base.Params), w.from)
	return left
}
