package bundle

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train"
)

// exchanged are how many bytes stages send on a link in a step at most, and how many one of them sends and receives in
// a unit at most; 0: units are no stages.
func exchanged(s *train.Spec, step *program.Program) (link, unit int64) {
	if s.Pipeline == nil {
		return 0, 0
	}
	plan, err := stages.Cut(step, s.Pipeline.Cuts())
	if err != nil {
		return 0, 0 // CheckProgram says so
	}
	for a := range plan.Stages {
		var own int64
		for b := range plan.Stages {
			out, in := plan.Bytes(a, b), plan.Bytes(b, a)
			link, own = max(link, out), own+out+in
		}
		unit = max(unit, own*int64(s.Steps))
	}
	return link, unit
}
