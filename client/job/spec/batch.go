package spec

// Rounds is the number of rounds of the run; 0 as long as the length of the run is given in epochs.
func (j Spec) Rounds() int { return j.Training.MaxSteps / max(1, j.Strategy.SyncSteps) }

// WorkerBatch is the number of sequences of one inner step of one worker, or of one replica of several.
func (j Spec) WorkerBatch() int { return j.Training.GlobalBatchSize / j.Learners() }

// MicroBatch is how many sequences of its batch a worker computes at a time; 0: all of them.
func (j Spec) MicroBatch() int {
	m, each := int(j.Training.MicroBatchSize), j.WorkerBatch()
	g := int(j.Training.GradientAccumulation)
	if j.Parallel.On() {
		g = j.Parallel.Microbatches
	}
	if m == 0 && g > 0 {
		m = each / g
	}
	if m == each {
		return 0
	}
	return m
}
