package spec

import (
	"cmp"
	"fmt"
)

// Parallel is how the model is cut into stages, each of which a worker of its own computes. Stages of 0: it is not.
type Parallel struct {
	Stages   int `job:"stages" in:"[2,64]"`    // parts of the layers, one after the other
	Replicas int `job:"replicas" in:"[1,512]"` // of all stages, on parts of the batch; default: 1
	// parts of the batch of a replica, which follow each other; default: stages
	Microbatches int `job:"microbatches" in:"[1,4096]"`
	// asynchronous: stages do not wait for each other between steps; default: synchronous
	Schedule string `job:"schedule" one:"synchronous asynchronous"`
	// steps by which the gradients of the first stage are late; default: as few as let it compute without a pause
	Delay int `job:"delay" in:"[1,8]"`
	// share of the stages that a microbatch leaves out on average; 0: every one passes all
	Skip float64 `job:"skip" in:"[0,1)"`
}

// Asynchronous is the schedule of stages that do not wait for each other between steps.
const Asynchronous = "asynchronous"

// synchronous is that of stages that end a step before they begin the next.
const synchronous = "synchronous"

// Late reports whether the gradients of stages are late.
func (p Parallel) Late() bool { return p.On() && p.Schedule == Asynchronous }

// On reports whether the model is cut.
func (p Parallel) On() bool { return p.Stages > 0 }

// deriveParallel sets what follows from the stages.
func (j *Spec) deriveParallel(given func(path string) bool) {
	p, s := &j.Parallel, &j.Strategy
	if !p.On() {
		return
	}
	p.Replicas, p.Microbatches = max(1, p.Replicas), cmp.Or(p.Microbatches, p.Stages)
	if p.Schedule == synchronous { // the same job as one that does not say so
		p.Schedule = ""
	}
	if p.Late() && p.Delay == 0 {
		p.Delay = min(8, (p.Stages-1+p.Microbatches-1)/p.Microbatches)
	}
	if !given("strategy.workers") {
		s.Workers.Target = p.Stages * p.Replicas
	}
	j.Training.GlobalBatchSize = cmp.Or(j.Training.GlobalBatchSize, 2*p.Microbatches*p.Replicas)
	s.Verification.Screen = cmp.Or(s.Verification.Screen, "off")
}

// Learners is how many batches are learnt from at the same time: of workers, or of replicas of several workers.
func (j Spec) Learners() int { return cmp.Or(j.Parallel.Replicas, j.Strategy.Workers.Target) }

// Words are the end of a sentence about stages, which says how late their gradients are, or how many stages
// microbatches leave out; "": neither.
func (p Parallel) Words() string {
	if p.Skip > 0 {
		return fmt.Sprintf(", each leaves out %.3g of the stages", p.Skip*float64(p.Stages))
	}
	if !p.Late() {
		return ""
	}
	return fmt.Sprintf(", asynchronous, late by up to %d steps", p.Delay)
}
