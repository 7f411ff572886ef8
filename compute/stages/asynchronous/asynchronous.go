// Package asynchronous makes the step of a model whose stages do not wait for each other between steps: each reads
// weights before a fixed number of updates, as compute/stages has it (Ajanthan et al. 2025, arXiv 2505.01099). It
// computes nothing.
package asynchronous

import (
	"errors"
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/compute/train/replica"
)

// ErrLate is wrapped by errors about a number of steps that no stage can be late by.
var ErrLate = errors.New("asynchronous: not a number of steps by which a stage can be late")

// Step is the step of a task that is cut before some groups of layers, in stages of which the first is late by a number
// of steps. atOnce is the step of the same task whose stages wait for each other.
func Step(t model.Task, o optimizer.Optimizer, atOnce *program.Program, before []int, late int) (*program.Program,
	error) {
	if late < 1 || late > replica.MaxLate {
		return nil, fmt.Errorf("%w: %d, wanted 1 to %d", ErrLate, late, replica.MaxLate)
	}
	plan, err := stages.Cut(atOnce, before)
	if err != nil {
		return nil, err
	}
	of := map[string]model.Late{}
	for s, st := range plan.Stages {
		by := model.Late{Steps: stages.LateOf(late, plan.Micro, len(plan.Stages), s), Stage: s}
		for _, n := range st.State {
			if w, ok := strings.CutPrefix(n, parts.Param); ok {
				of[w] = by
			}
		}
	}
	return t.LateStep(o, of)
}
