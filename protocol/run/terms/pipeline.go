package terms

import (
	"math/bits"
	"slices"
)

// Pipeline is how the model of a job is cut, whose units are stages of replicas: unit r*N+s is stage s of N of replica
// r. The units of a replica are computed at the same time, by workers that send each other values.
type Pipeline struct {
	// floating-point operations of a unit, by stage; nil: units are no stages
	Flops  []uint64 `cbor:"1,keyasint,omitempty"`
	Links  []Link   `cbor:"2,keyasint,omitempty"` // in ascending order
	Frames []uint64 `cbor:"3,keyasint,omitempty"` // that are sent in a unit, by link
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

// Linked reports whether one of two stages sends values to the other.
func (p Pipeline) Linked(a, b uint32) bool {
	return slices.Contains(p.Links, Link{From: a, To: b}) || slices.Contains(p.Links, Link{From: b, To: a})
}

// FramesOf is how many frames are sent on each of LinksOf a stage.
func (p Pipeline) FramesOf(stage uint32) (list []uint64) {
	for i, l := range p.Links {
		if l.From == stage || l.To == stage {
			list = append(list, p.Frames[i])
		}
	}
	return list
}

// staged reports whether the terms have stages as they must be, of which the most expensive is what UnitFlops says.
func (t Terms) staged() bool {
	p, n := t.Pipeline, uint32(len(t.Pipeline.Flops))
	return n >= 2 && n <= MaxStages && t.Units%n == 0 && slices.Max(p.Flops) == t.UnitFlops && slices.Min(p.Flops) > 0 &&
		p.linked(n) && t.Carry == 0 && t.Sizes == nil && t.Rollout.Units == 0 && t.Tolerance.DistancePPM == 0 &&
		t.Screen == ScreenOff && !t.Overlap && !t.Sliced()
}

// linked reports whether links are between different ones of n stages, each once, in order, and with frames.
func (p Pipeline) linked(n uint32) bool {
	if len(p.Links) == 0 || len(p.Frames) != len(p.Links) || slices.Min(p.Frames) == 0 {
		return false
	}
	last := -1
	for _, l := range p.Links {
		at := int(l.From)*MaxStages + int(l.To)
		if l.From >= n || l.To >= n || l.From == l.To || at <= last {
			return false
		}
		last = at
	}
	return true
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
