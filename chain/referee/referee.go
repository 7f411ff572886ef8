// Package referee answers the last question of a dispute. A party presents it as a Witness, which executes the disputed
// unit again; every validator answers it as a Referee, which recomputes one part of a tile of one operator's output
// with the portable kernels, from those leaves of the operands that it needs, proven under digests both parties agree
// on.
//
// How the parties get to that question is protocol/dispute; what follows from the answer is protocol/run and reward.
package referee

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/work"
)

// Errors of this package.
var (
	// not the specification or the program of the job
	ErrOpening  = errors.New("referee: this does not open the job")
	ErrPayload  = errors.New("referee: the payload does not answer the question")    // malformed, or not what is agreed
	ErrTooLarge = errors.New("referee: too large to be recomputed inside a dispute") // see Check
)

// MaxOpening is the largest size of an opening, in bytes.
const MaxOpening = 2 << 20

// limits of a program bound what a challenge costs the chain.
var limits = program.Limits{MaxOps: 1 << 15, MaxBytes: MaxOpening, MaxMemory: 1 << 50, MaxFlops: 1e19}

// opening is what an order shows of a job, so that the chain knows the shape of its units.
type opening struct {
	Spec     []byte `cbor:"1,keyasint"`
	Program  []byte `cbor:"2,keyasint"`
	Manifest []byte `cbor:"3,keyasint"` // of the corpus
}

// Opening returns the bytes that Open reads. There is one opening of each specification.
func Opening(s *train.Spec, p *program.Program, m data.Manifest) []byte {
	return canon.MustMarshal(opening{Spec: s.Encode(), Program: p.Encode(), Manifest: m.Encode()})
}

// Referee judges disputes about the units of one job.
type Referee struct {
	spec  *train.Spec
	step  *program.Program
	names []string // of the parameters
	outer int      // tensors of state for each, of the outer optimizer
	index map[string]int

	divisions []recompute.Division // of the operators
}

// Open reads an opening from anybody; spec is the digest in the terms of the run. The error wraps ErrOpening. There is
// no referee of work of which a question might not be answered: nobody can be convicted over it. What this costs has a
// limit, maxChecked.
func Open(spec canon.Digest, b []byte) (*Referee, error) {
	fail := func(err error) (*Referee, error) { return nil, fmt.Errorf("%w: %w", ErrOpening, err) }
	if len(b) > MaxOpening {
		return fail(fmt.Errorf("%w: %d bytes, at most %d are taken", ErrTooLarge, len(b), MaxOpening))
	}
	var o opening
	if err := canon.Unmarshal(b, &o); err != nil {
		return fail(err)
	}
	s, err := train.DecodeSpec(o.Spec)
	if err != nil {
		return fail(err)
	}
	if d := s.Digest(); d != spec {
		return fail(fmt.Errorf("the work specification is %s, that of the run is %s", d.Short(), spec.Short()))
	}
	if err := outer.Check(s.Exchange); err != nil {
		return fail(err)
	}
	p, err := admit.Decode(o.Program, limits)
	if err != nil {
		return fail(err)
	}
	if err := train.CheckProgram(s, p); err != nil {
		return fail(err)
	}
	r := newReferee(s, p)
	if err := corpusFits(s, o.Manifest); err != nil {
		return fail(err)
	}
	if r.divisions, err = decidable(s, p); err != nil {
		return fail(err)
	}
	return r, nil
}

// corpusFits checks the manifest of a corpus that anybody may have written.
func corpusFits(s *train.Spec, manifest []byte) error {
	m, err := data.DecodeManifest(manifest)
	if err != nil {
		return err
	}
	if d := m.Digest(); d != s.Data {
		return fmt.Errorf("the manifest of the corpus is %s, the specification names %s", d.Short(), s.Data.Short())
	}
	return tokensFit(s, m)
}

// tokensFit reports, as an error that wraps ErrTooLarge, that what shows a tile of tokens has no room in a payload.
func tokensFit(s *train.Spec, m data.Manifest) error {
	if n := tokensBytes(s, m); n > maxValues {
		return fmt.Errorf("%w: a tile of tokens needs %d bytes, at most %d are taken", ErrTooLarge, n, maxValues)
	}
	return nil
}

func newReferee(s *train.Spec, p *program.Program) *Referee {
	r := &Referee{spec: s, step: p, names: train.Params(p), index: map[string]int{}}
	if n, err := outer.State(s.Exchange); err == nil {
		r.outer = n
	}
	for i, n := range train.StateNames(p) {
		r.index[n] = i
	}
	return r
}

// Config is the dispute of a challenger about a unit of a job, in which a party has some blocks for a move.
func (r *Referee) Config(job string, d work.AuditTarget, challenger string, blocks int64) (dispute.Config, error) {
	c := dispute.Config{
		Job: job, Round: d.Round, Unit: d.Index, Attempt: d.Attempt, Asserter: d.Worker, Challenger: challenger,
		Base: d.Base.Root, Segments: d.Commit.Segments, Update: d.Commit.Update, From: d.Starts(d.Index).Root,
		Carried:   d.Commit.HandedState.Root,
		Operators: uint32(len(r.step.Ops)), Parameters: uint32(len(r.names)), MoveBlocks: blocks,
	}
	if n := uint32(len(train.HandedOn(r.spec.Exchange, r.step))); n != c.Parameters {
		c.HandsOn = n
	}
	for k := range r.spec.SegmentsOf(d.Index) {
		c.Steps = append(c.Steps, r.spec.SegmentSteps(k+1))
	}
	return c, nil
}

// Parts implements dispute.Referee.
func (r *Referee) Parts(c dispute.Claim) uint64 {
	return partsOf(r.spec, r.step, c, r.division)
}

// division is that of an operator.
func (r *Referee) division(i int) (recompute.Division, error) {
	if r.divisions == nil {
		return division(r.step, i)
	}
	return r.divisions[i], nil
}

func partsOf(s *train.Spec, p *program.Program, c dispute.Claim,
	division func(i int) (recompute.Division, error)) uint64 {
	if c.Kind == dispute.Tile {
		if begins(s, p, c) {
			return uint64(p.Ops[c.Index].Out.Leaves())
		}
		return parts(p, c.Index, division)
	}
	if isMoment(s, p, c) {
		return 1
	}
	x, err := sentOf(s, p, c.Round, c.Index)
	if err != nil {
		return 1
	}
	if c.Kind == dispute.Carry {
		return x.handsOnParts()
	}
	return uint64(x.Parts())
}

// Check reports, as an error that wraps ErrTooLarge, why a dispute about a job might end in a question that cannot be
// answered: a program beyond the limits of an opening, or a tile, a parameter or the manifest of a corpus beyond
// dispute.MaxLeaf. Whoever lies there could not be convicted. The size of the corpus does not matter.
func Check(s *train.Spec, p *program.Program, m data.Manifest) error {
	if err := tokensFit(s, m); err != nil {
		return err
	}
	if n := len(Opening(s, p, m)); n > MaxOpening {
		return fmt.Errorf("%w: a program and a manifest of %d bytes, at most %d are taken", ErrTooLarge, n, MaxOpening)
	}
	if err := admit.Verify(p, limits); err != nil {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	_, err := decidable(s, p)
	return err
}

// maxChecked is how many elements are looked at for whether the questions of a job can be answered. It is about a
// second.
const maxChecked = 1 << 29

// checked counts what is looked at.
type checked uint64

// spend reports whether so many elements more may be looked at.
func (n *checked) spend(elements uint64) bool {
	*n = checked(min(uint64(*n)+min(elements, maxChecked), maxChecked+1))
	return *n <= maxChecked
}

// errChecked is returned for work of which too much had to be looked at.
var errChecked = fmt.Errorf("%w: more than %d elements of its operators and parameters are looked at", ErrTooLarge,
	maxChecked)

// decidable reports, as an error that wraps ErrTooLarge, the first operator or parameter of which not even the smallest
// part can be recomputed, and returns the divisions of all operators.
func decidable(s *train.Spec, p *program.Program) ([]recompute.Division, error) {
	n := new(checked)
	divisions, err := divisible(p, n)
	if err != nil {
		return nil, err
	}
	return divisions, updatesFit(s, p, n)
}

// divisible returns the divisions of all operators.
func divisible(p *program.Program, n *checked) ([]recompute.Division, error) {
	all, seen := make([]recompute.Division, len(p.Ops)), map[string]recompute.Division{}
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Kind == program.Input {
			continue
		}
		key := fmt.Sprint(op.Kind, op.Ints, op.Out, operandShapes(p, op))
		d, known := seen[key]
		if !known {
			var looked uint64
			var err error
			if d, looked, err = divide(p, i); err != nil {
				return nil, err
			}
			if seen[key] = d; !n.spend(looked) {
				return nil, errChecked
			}
		}
		all[i] = d
	}
	return all, nil
}

// tokensBytes bounds what shows a tile of the tokens of a step: every window in leaves of its own.
func tokensBytes(s *train.Spec, m data.Manifest) int64 {
	const path = 5 * (canon.Fanout - 1) * 34 // bytes of the cover of one leaf, as they are encoded, at most
	width := int64(s.Length) + 1
	windows := min(int64(s.Batch), tensor.LeafBytes/4/width+2)
	leaves := min(width, tensor.LeafBytes/4)*int64(m.Width)/data.LeafBytes + 2
	return windows*(leaves*data.LeafBytes+2*path) + int64(len(m.Encode()))
}

// maxValues is the room for values in a payload, beside proofs and digests.
const maxValues = dispute.MaxLeaf - 256<<10

// zeroRoot is the root of a tensor of zeros. On every level of its tree all nodes are the same, but for the last.
func zeroRoot(s tensor.Shape) canon.Digest {
	n := s.Bytes()
	leaves := s.Leaves()
	node := canon.Leaf(make([]byte, tensor.LeafBytes))
	last := canon.Leaf(make([]byte, n-(leaves-1)*tensor.LeafBytes))
	for level := 1; level <= canon.Height(leaves); level++ {
		children := make([]canon.Digest, canon.Fanout)
		for i := range children {
			children[i] = node
		}
		few := canon.Width(leaves, level-1) - canon.Fanout*(canon.Width(leaves, level)-1) // of the last node
		end := append(slices.Clone(children[:few-1]), last)
		node, last = canon.Inner(level, children), canon.Inner(level, end)
	}
	return tensor.RootOf(s, canon.RootOf(leaves, last))
}
