package order

import "slices"

// Early is the order of stages that some microbatches leave out. Forwards follow each other in the order of their
// numbers, and so do backwards. Which of both is next is found by playing the step, with values that take no time: the
// task that can begin first, of equals a backward, then the one of the lower number, then that of the earlier stage.
// takes is the time of a forward of a stage; a backward takes twice as long. A stage has at most most[stage]
// microbatches of which it has computed the forward and not the backward.
//
// All numbers are whole, so the order is the same on every machine. Where waits let no stage end, it is an order that
// Check refuses.
func Early(tasks [][]Task, waits []map[Task][]Place, takes []int64, most []int) [][]Task {
	e := early{waits: waits, takes: takes, most: most, done: map[Place]int64{}, clock: make([]int64, len(tasks)),
		flight: make([]int, len(tasks)), all: make([][]Task, len(tasks))}
	for s, list := range tasks {
		sent := of(list, Weights)
		for _, t := range sent {
			e.done[Place{s, t}] = 0
		}
		e.all[s] = sent
		e.forward, e.backward = append(e.forward, of(list, Forward)), append(e.backward, of(list, Backward))
		slices.SortFunc(e.forward[s], Task.Compare)
		slices.SortFunc(e.backward[s], Task.Compare)
	}
	for e.next() {
	}
	for s, list := range tasks {
		e.all[s] = slices.Concat(e.all[s], e.forward[s], e.backward[s], of(list, Update))
	}
	return e.all
}

// early is a step while its order is made.
type early struct {
	waits             []map[Task][]Place
	takes             []int64
	most              []int
	forward, backward [][]Task // by stage, that have no place yet
	all               [][]Task // by stage, that have one
	done              map[Place]int64
	clock             []int64 // when a stage ends its last task
	flight            []int   // microbatches of a stage
}

// next gives a place to one more task; false: none can begin.
func (e *early) next() bool {
	var best Place
	var begin int64
	found := false
	for s := range e.all {
		for _, list := range [][]Task{e.forward[s], e.backward[s]} {
			if len(list) == 0 || list[0].Phase == Forward && e.flight[s] >= e.most[s] {
				continue
			}
			at := Place{s, list[0]}
			if t, ok := e.begins(at); ok && (!found || t < begin || t == begin && before(at, best)) {
				best, begin, found = at, t, true
			}
		}
	}
	if !found {
		return false
	}
	s, takes := best.Stage, e.takes[best.Stage]
	if best.Task.Phase == Forward {
		e.forward[s], e.flight[s] = e.forward[s][1:], e.flight[s]+1
	} else {
		e.backward[s], e.flight[s], takes = e.backward[s][1:], e.flight[s]-1, 2*takes
	}
	e.clock[s] = begin + takes
	e.done[best] = e.clock[s]
	e.all[s] = append(e.all[s], best.Task)
	return true
}

// begins is when a task can begin; false: it waits for one that has no place yet.
func (e *early) begins(at Place) (begin int64, ok bool) {
	begin = e.clock[at.Stage]
	if left := e.forward[at.Stage]; at.Task.Phase == Backward && len(left) > 0 && left[0].Number <= at.Task.Number {
		return 0, false // its forward, at the latest, has no place
	}
	for _, w := range e.waits[at.Stage][at.Task] {
		end, ok := e.done[w]
		if !ok {
			return 0, false
		}
		begin = max(begin, end)
	}
	return begin, true
}

// before reports which of two tasks that can begin at the same time comes first.
func before(a, b Place) bool {
	if a.Task.Phase != b.Task.Phase {
		return a.Task.Phase == Backward
	}
	if a.Task.Number != b.Task.Number {
		return a.Task.Number < b.Task.Number
	}
	return a.Stage < b.Stage
}
