package terms

import (
	"math/bits"
	"slices"
)

// Pipeline is how the model of a job is cut, whose units are stages of replicas: unit r*N+s is stage s of N of replica
// r. The units of a replica are computed at the same time, by workers that send each other values.
type Pipeline struct {
	Flops []uint64 `cbor:"1,keyasint,omitempty"` // floating-point operations of a unit, by stage; nil: units are no stages
	Links []Link   `cbor:"2,keyasint,omitempty"` // in ascending order
}

// Link is a direction in which a stage sends values to another.
type Link struct {
	From uint32 `cbor:"1,keyasint"`
	To   uint32 `cbor:"2,keyasint"`
}

// MaxStages is the most stages of a model.
const MaxStages = 64

// Stages is the number of stages of a replica: 1 where units are no stages.
func (p Pipeline) Stages() uint32 { return max(1, uint32(len(p.Flops))) }

// LinksOf lists the links of a stage.
func (p Pipeline) LinksOf(stage uint32) (list []Link) {
	for _, l := range p.Links {
		if l.From == stage || l.To == stage {
			list = append(list, l)
		}
	}
	return list
}

// staged reports whether the terms have stages as they must be, of which the most expensive is what UnitFlops says.
func (t Terms) staged() bool {
	p, n := t.Pipeline, uint32(len(t.Pipeline.Flops))
	compare := func(a, b Link) int { return int(a.From*MaxStages+a.To) - int(b.From*MaxStages+b.To) }
	bad := func(l Link) bool { return l.From >= n || l.To >= n || l.From == l.To }
	return n >= 2 && n <= MaxStages && t.Units%n == 0 && slices.Max(p.Flops) == t.UnitFlops && slices.Min(p.Flops) > 0 &&
		len(p.Links) > 0 && slices.IsSortedFunc(p.Links, compare) && !slices.ContainsFunc(p.Links, bad) &&
		len(slices.Compact(slices.Clone(p.Links))) == len(p.Links) &&
		t.Carry == 0 && t.Sizes == nil && t.Rollout.Units == 0 && t.Tolerance.DistancePPM == 0 &&
		t.Screen == ScreenOff && !t.Overlap && !t.Sliced()
}

// roundFlops is RoundFlops of units that are stages.
func (p Pipeline) roundFlops(units uint32) uint64 {
	var replica uint64
	for _, f := range p.Flops {
		sum, over := bits.Add64(replica, f, 0)
		if over > 0 {
			return saturatingMul(1<<63, 2)
		}
		replica = sum
	}
	return saturatingMul(replica, uint64(units/p.Stages()))
}
