// Package replica says which units compute which part of a model that is cut into stages, in a job whose units are the
// stages of replicas: unit r*N+s is stage s of N of replica r. It holds no weights and no program.
package replica

import (
	"errors"
	"fmt"
	"slices"
)

// Pipeline is how the step of a job is cut. The nil value is that of a job whose step is not.
type Pipeline struct {
	Before []uint32 `cbor:"1,keyasint"` // groups of layers before which it is cut, as stages.Cut takes them
	Stage  []uint32 `cbor:"2,keyasint"` // of each parameter, in the order of the inputs of the step
}

// MaxStages is the most stages of a model.
const MaxStages = 64

// MaxLate is the most updates by which the gradients of a stage are late.
const MaxLate = 8

// Stages is the number of stages: 1 of a step that is not cut.
func (p *Pipeline) Stages() uint32 {
	if p == nil {
		return 1
	}
	return uint32(len(p.Before)) + 1
}

// Of is the replica and the stage that a unit is.
func (p *Pipeline) Of(unit uint32) (replica, stage uint32) {
	return unit / p.Stages(), unit % p.Stages()
}

// Cuts are the groups before which the step is cut.
func (p *Pipeline) Cuts() (before []int) {
	for _, g := range p.Before {
		before = append(before, int(g))
	}
	return before
}

// Part is the elements of a list of one for each parameter that belong to a stage.
func Part[T any](p *Pipeline, stage uint32, all []T) (part []T) {
	for i, x := range all {
		if i < len(p.Stage) && p.Stage[i] == stage {
			part = append(part, x)
		}
	}
	return part
}

// OfUnits is the elements of a list of one for each unit that are of units with a parameter: of those of its stage.
func OfUnits[T any](p *Pipeline, parameter int, all []T) (some []T) {
	for i, x := range all {
		if _, stage := p.Of(uint32(i)); stage == p.Stage[parameter] {
			some = append(some, x)
		}
	}
	return some
}

// Place is the place of a parameter among those of its stage, and the number of these.
func (p *Pipeline) Place(parameter int) (at, n int) {
	for i, stage := range p.Stage {
		if stage != p.Stage[parameter] {
			continue
		}
		if n++; i < parameter {
			at++
		}
	}
	return at, n
}

// Check reports why units cannot be stages of replicas, in rounds of a number of units of a number of inner steps, of
// which a segment has some. whole says that units send all of their parameters as they are and pass on no state.
func (p *Pipeline) Check(units, steps, segment uint32, whole bool) error {
	if p == nil {
		return nil
	}
	switch n := p.Stages(); {
	case n < 2 || n > MaxStages || units%n != 0:
		return fmt.Errorf("%d units of replicas of %d stages, wanted as many for each stage, and 2 to %d", units, n,
			MaxStages)
	case !slices.IsSorted(p.Before) || len(p.Stage) == 0 || slices.Max(p.Stage) >= n:
		return fmt.Errorf("a step that is cut before groups %v, with parameters in stages %v", p.Before, p.Stage)
	case segment != 1:
		return fmt.Errorf("stages with segments of %d of %d steps: the root after every step binds what they exchange",
			segment, steps)
	case !whole:
		return errors.New("stages whose units differ in size, pass on a state, or send other than the difference of each " +
			"parameter: they exchange their parameters as they are, and combine each by itself")
	}
	return nil
}
