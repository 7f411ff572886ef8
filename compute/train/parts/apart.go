package parts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Rounds are the rounds of a job of reinforcement learning whose answers are drawn apart. Each has Units units that
// learn, in Steps steps, and after them a unit for each of these steps, which draws the answers that it reads. The zero
// value has no unit that draws.
type Rounds struct {
	Units, Steps, Rounds uint32
	Staleness            uint32 // by how many rounds the policy of the answers is older than the round, at most

	// A unit that learns reads the answers to the prompts of all units, in place of those to its own.
	Shared bool
}

// Limits of Rounds: of the staleness, and of the units of a round.
const (
	MaxStaleness = 4
	maxUnits     = 1 << 10
)

// Check reports why answers cannot be drawn apart in such rounds. alike says that units have one size and carry no
// state.
func (r Rounds) Check(alike bool) error {
	switch n := uint64(r.Units) * (1 + uint64(r.Steps)); {
	case r.Staleness > MaxStaleness:
		return fmt.Errorf("answers of a policy that is %d rounds older, at most %d", r.Staleness, MaxStaleness)
	case n > maxUnits:
		return fmt.Errorf("a round of %d units that learn and draw, at most %d", n, maxUnits)
	case !alike:
		return errors.New("answers are drawn apart for units of one size that carry no state")
	}
	return nil
}

// Policy is the round in which the answers were drawn that a round learns from.
func (r Rounds) Policy(round uint32) uint32 { return round - min(round, r.Staleness) }

// Draw reports whether answers are drawn in a round: those that no round learns from are not.
func (r Rounds) Draw(round uint32) bool {
	return r.Units > 0 && (round == 0 || round+r.Staleness < r.Rounds)
}

// Drawing is the number of units of a round that draw.
func (r Rounds) Drawing() uint32 { return r.Units * r.Steps }

// Drawn is the unit that draws the answers of a step of a unit that learns.
func (r Rounds) Drawn(unit, step uint32) uint32 { return r.Units + unit*r.Steps + step }

// Reads lists the units that draw the answers which a step of a unit that learns reads: that of its own prompts, and,
// where answers are shared, those of the units after it, and then of the units before it.
func (r Rounds) Reads(unit, step uint32) []uint32 {
	list := []uint32{r.Drawn(unit, step)}
	for k := uint32(1); r.Shared && k < r.Units; k++ {
		list = append(list, r.Drawn((unit+k)%r.Units, step))
	}
	return list
}

// ReadsAll lists the units that draw the answers which a unit that learns reads, in order of its steps.
func (r Rounds) ReadsAll(unit uint32) (list []uint32) {
	for step := range r.Steps {
		list = append(list, r.Reads(unit, step)...)
	}
	return list
}

// Learns is the unit, and its step, that learns from the answers of a unit that draws.
func (r Rounds) Learns(drawing uint32) (unit, step uint32) {
	return (drawing - r.Units) / r.Steps, (drawing - r.Units) % r.Steps
}

// Prefixes of names in the program of a job whose answers are drawn apart.
const (
	given    = "q/" // inputs "q/<number>/<name>" of a step that learns, which passes them on
	handed   = "d/" // outputs of units that draw, which learning units read
	executed = "e/" // and those that they do not read: only an execution tells them
)

// IsDrawn reports whether an output, or a tensor of a state, is one that a unit draws.
func IsDrawn(name string) bool {
	return strings.HasPrefix(name, handed) || strings.HasPrefix(name, executed)
}

// Apart reports whether a program draws and learns in different units.
func Apart(p *program.Program) bool {
	return slices.ContainsFunc(p.Outputs, func(o program.Output) bool { return IsDrawn(o.Name) })
}

// Learning is the part of a program that learning units execute: all of it, unless answers are drawn apart.
func Learning(p *program.Program) *program.Program {
	if !Apart(p) {
		return p
	}
	var names []string
	for _, o := range p.Outputs {
		if !IsDrawn(o.Name) {
			names = append(names, o.Name)
		}
	}
	return p.Only(names...)
}

// Drawing is the part of a program that drawing units execute. Its state is the parameters, which it leaves as they
// are, and what it draws, which is zero before.
func Drawing(p *program.Program) *program.Program {
	whole := &program.Program{Numerics: p.Numerics, Ops: p.Ops}
	var names []string
	trained := Params(p)
	for _, in := range p.Inputs() {
		if n, is := strings.CutPrefix(in.Name, Param); is && slices.Contains(trained, n) {
			whole.Outputs = append(whole.Outputs, program.Output{Name: in.Name, Value: in.Value})
			names = append(names, in.Name)
		}
	}
	for _, prefix := range []string{executed, handed} {
		for _, o := range p.Outputs {
			if strings.HasPrefix(o.Name, prefix) {
				whole.Outputs, names = append(whole.Outputs, o), append(names, o.Name)
			}
		}
	}
	part := whole.Only(names...)
	for _, o := range part.Outputs[len(trained):] {
		part.Ops = append(part.Ops, program.Operator{Kind: program.Input, Out: part.Ops[o.Value].Out, Name: o.Name})
	}
	return part
}

// Flops are those of a step that learns.
func Flops(p *program.Program) uint64 { return Learning(p).Flops() }

// DrawFlops are those of a unit that draws; 0: none does.
func DrawFlops(p *program.Program) uint64 {
	if !Apart(p) {
		return 0
	}
	return Drawing(p).Flops()
}

// HandedOn returns the names of the tensors that a drawing unit passes on.
func HandedOn(p *program.Program) (names []string) {
	for _, o := range p.Outputs {
		if strings.HasPrefix(o.Name, handed) {
			names = append(names, o.Name)
		}
	}
	return names
}

// Given returns the names of the answers in the state of a learning unit, in order.
func Given(p *program.Program) (names []string) {
	for _, n := range Moments(p) {
		if strings.HasPrefix(n, given) {
			names = append(names, n)
		}
	}
	return names
}

// IsGiven reports whether a tensor of a state is one that another unit has drawn.
func IsGiven(name string) bool { return strings.HasPrefix(name, given) }

// NoAnswers are zeros in place of the answers that a unit learns from, for measurements; nil where it draws them.
func NoAnswers(p *program.Program) (from []*tensor.Tensor) {
	shapes := p.InputShapes()
	for _, n := range Given(p) {
		from = append(from, tensor.New(shapes[n]))
	}
	return from
}

// Check reports why a program does not draw apart as wanted, or why its two parts do not fit to each other and to units
// that read the answers of a number of others.
func Check(p *program.Program, apart, cut bool, reads int) error {
	for _, in := range p.Inputs() {
		if strings.HasPrefix(in.Name, Received) || strings.HasPrefix(in.Name, Exchanged) {
			return fmt.Errorf("the program reads %q, as a stage of a model does, which no job is", in.Name)
		}
	}
	if err := checkEarlier(p, cut); err != nil {
		return err
	}
	if Apart(p) != apart {
		return fmt.Errorf("answers are drawn apart in the program: %t, in the specification: %t", Apart(p), apart)
	}
	if !apart {
		return nil
	}
	if Anchored(p) {
		return errors.New("answers are drawn apart, and the step has a proximal term")
	}
	learn, draw := Learning(p), Drawing(p)
	if !slices.Equal(Params(learn), Params(p)) || !slices.Equal(Params(draw), Params(p)) {
		return errors.New("the parts that learn and draw have other parameters than the program")
	}
	names, drawn, shapes := Given(learn), HandedOn(p), learn.InputShapes()
	if len(names) != len(drawn)*reads || !slices.Equal(names, Given(p)) {
		return fmt.Errorf("%d tensors are read of %d units, each of which draws %d", len(names), reads, len(drawn))
	}
	inputs := draw.InputShapes()
	for i, d := range drawn {
		for k := range reads {
			n := fmt.Sprintf("%s%d/%s", given, k, strings.TrimPrefix(d, handed))
			if names[k*len(drawn)+i] != n || !shapes[n].Equal(inputs[d]) {
				return fmt.Errorf("of the answers %d, %q is not read in the shape %v", k, n, inputs[d])
			}
		}
	}
	for n := range inputs {
		if n != "tokens" && n != "dice" && !strings.HasPrefix(n, Param) && !IsDrawn(n) {
			return fmt.Errorf("the part that draws reads %q", n)
		}
	}
	return nil
}

// GivenRoot binds the answers that a unit learns from, given the roots of the states that their units passed on, in
// the order of Rounds.ReadsAll.
func GivenRoot(drawn []canon.Digest) canon.Digest { return canon.NewTree(drawn).Root() }

// GivenRootOf is GivenRoot for the roots of all tensors, of which each drawing unit passes on a number.
func GivenRootOf(tensors []canon.Digest, each int) canon.Digest {
	var drawn []canon.Digest
	for all := range slices.Chunk(tensors, each) {
		drawn = append(drawn, canon.NewTree(all).Root())
	}
	return GivenRoot(drawn)
}
