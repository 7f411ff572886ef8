package order

// InStep is a task of a step.
type InStep struct {
	Step uint32
	Task
}

// Repeated are the tasks of a number of steps, one step after the other.
func Repeated(tasks []Task, steps uint32) (list []InStep) {
	for step := range steps {
		for _, t := range tasks {
			list = append(list, InStep{step, t})
		}
	}
	return list
}

// Continuous is the order 1F1B without a pause between steps (Narayanan et al. 2019): a stage computes ahead forwards,
// then one forward and one backward in turn, whichever steps they are of, and then the backwards that are left. Weights
// are sent before the first forward of a step, and an update follows the last backward of its step. tasks are those of
// one step.
func Continuous(tasks []Task, ahead int, steps uint32) (list []InStep) {
	weights, forward, backward, update := of(tasks, Weights), of(tasks, Forward), of(tasks, Backward), of(tasks, Update)
	next := 0
	sends := func() {
		step, k := uint32(next/len(forward)), next%len(forward)
		for _, t := range weights {
			if k == 0 {
				list = append(list, InStep{step, t})
			}
		}
		list = append(list, InStep{step, forward[k]})
		next++
	}
	total := int(steps) * len(forward)
	for next < min(ahead, total) {
		sends()
	}
	for done := range int(steps) * len(backward) {
		if next < total {
			sends()
		}
		step, k := uint32(done/len(backward)), done%len(backward)
		list = append(list, InStep{step, backward[k]})
		for _, t := range update {
			if k == len(backward)-1 {
				list = append(list, InStep{step, t})
			}
		}
	}
	return list
}

// Unrolled makes tasks of several steps tasks of one long step, for Timed: it adds a multiple of unroll to each number.
func Unrolled(list []InStep) (tasks []Task) {
	for _, t := range list {
		tasks = append(tasks, t.unrolled())
	}
	return tasks
}

// unroll is the distance between the numbers of a task in two steps, larger than the number of any task of a step.
const unroll = 1 << 16

func (t InStep) unrolled() Task { return Task{t.Phase, t.Number + int(t.Step)*unroll} }

// OfStep is the task of a step that an unrolled one is.
func OfStep(t Task) Task { return Task{t.Phase, t.Number % unroll} }

// UnrolledWaits are the tasks of other stages that the tasks of a number of steps need.
func UnrolledWaits(waits []map[Task][]Place, steps uint32) []map[Task][]Place {
	all := make([]map[Task][]Place, len(waits))
	for s := range waits {
		all[s] = map[Task][]Place{}
		for t, list := range waits[s] {
			for step := range steps {
				var of []Place
				for _, at := range list {
					of = append(of, Place{at.Stage, InStep{step, at.Task}.unrolled()})
				}
				all[s][InStep{step, t}.unrolled()] = of
			}
		}
	}
	return all
}
