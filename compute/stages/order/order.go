// Package order is in which order the stages of a step compute their tasks, as data: one forward, one backward, and
// whatever list a caller makes. It finds lists that never end before they are run, and computes how long a step takes.
//
// It knows neither programs nor machines.
package order

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Phase is a kind of task. The numbers are signed by stages: they are only ever appended to.
type Phase uint8

// The phases of a step, in the order in which a stage can compute them.
const (
	Weights  Phase = 1 // sends weights that another stage reads, too
	Forward  Phase = 2 // of one microbatch
	Backward Phase = 3 // of one microbatch
	Update   Phase = 4 // its Number is the number of exchanges between stages before it
)

// Task is a part of the step of one stage.
type Task struct {
	Phase  Phase
	Number int // of the microbatch, from 0
}

// String is such as F3.
func (t Task) String() string { return fmt.Sprintf("%c%d", " WFBU"[min(t.Phase, 4)], t.Number) }

// Compare orders tasks by phase and number.
func (t Task) Compare(u Task) int {
	if t.Phase != u.Phase {
		return int(t.Phase) - int(u.Phase)
	}
	return t.Number - u.Number
}

// Place is a task of a stage.
type Place struct {
	Stage int
	Task  Task
}

// Errors of orders, to be tested with errors.Is.
var (
	ErrOrder    = errors.New("order: these are not the tasks of the step, each once")
	ErrDeadlock = errors.New("order: stages wait for each other")
)

// of lists the tasks of a phase.
func of(list []Task, p Phase) (some []Task) {
	for _, t := range list {
		if t.Phase == p {
			some = append(some, t)
		}
	}
	return some
}

// Ordered is the order 1F1B (Narayanan et al. 2019, "PipeDream"): a stage computes a number of forwards, ahead, then
// one forward and one backward in turn, then the backwards that are left, and then updates. Microbatches follow each
// other in order. Where stages wait for each other, ahead is the number of stages after it.
func Ordered(tasks [][]Task, micro int, ahead []int) [][]Task {
	all := make([][]Task, len(tasks))
	for s, list := range tasks {
		forward, backward := of(list, Forward), of(list, Backward)
		ahead := min(micro, ahead[s], len(forward))
		own := slices.Concat(of(list, Weights), forward[:ahead])
		for i := ahead; i < len(forward); i++ {
			own = append(own, forward[i])
			if k := i - ahead; k < len(backward) {
				own = append(own, backward[k])
			}
		}
		own = append(own, backward[min(len(backward), len(forward)-ahead):]...)
		all[s] = append(own, of(list, Update)...)
	}
	return all
}

// Check reports why stages that compute their tasks in an order do not reach the end of a step: a task is missing,
// strange or double, or stages wait for each other. waits are the tasks of other stages that a task of a stage needs.
func Check(tasks, order [][]Task, waits []map[Task][]Place) error {
	if len(order) != len(tasks) || len(waits) != len(tasks) {
		return fmt.Errorf("%w: %d lists for %d stages", ErrOrder, len(order), len(tasks))
	}
	for s := range tasks {
		want, got := slices.Clone(tasks[s]), slices.Clone(order[s])
		slices.SortFunc(want, Task.Compare)
		slices.SortFunc(got, Task.Compare)
		if !slices.Equal(want, got) {
			return fmt.Errorf("%w: stage %d has %v, wanted %v", ErrOrder, s, order[s], tasks[s])
		}
	}
	_, err := Timed(order, waits, func(Place) float64 { return 0 }, func(_, _ Place) float64 { return 0 })
	return err
}

// Timed is when each stage ends its step, if each task takes a time, and values take a time from one task to the task
// that reads them. It is an error if stages wait for each other.
func Timed(order [][]Task, waits []map[Task][]Place, takes func(Place) float64,
	travels func(from, to Place) float64) ([]float64, error) {
	next, clock := make([]int, len(order)), make([]float64, len(order))
	done := map[Place]float64{}
	ready := func(at Place) (float64, bool) {
		begin := clock[at.Stage]
		for _, w := range waits[at.Stage][at.Task] {
			end, ok := done[w]
			if !ok {
				return 0, false
			}
			begin = max(begin, end+travels(w, at))
		}
		return begin, true
	}
	for moved := true; moved; {
		moved = false
		for s := range order {
			for next[s] < len(order[s]) {
				at := Place{s, order[s][next[s]]}
				begin, ok := ready(at)
				if !ok {
					break
				}
				clock[s] = begin + takes(at)
				done[at] = clock[s]
				next[s]++
				moved = true
			}
		}
	}
	var stuck []string
	for s := range order {
		if next[s] == len(order[s]) {
			continue
		}
		at := Place{s, order[s][next[s]]}
		for _, w := range waits[s][at.Task] {
			if _, ok := done[w]; !ok {
				stuck = append(stuck, fmt.Sprintf("%v of stage %d for %v of stage %d", at.Task, s, w.Task, w.Stage))
			}
		}
	}
	if len(stuck) > 0 {
		return clock, fmt.Errorf("%w: %s", ErrDeadlock, strings.Join(stuck, ", "))
	}
	return clock, nil
}

// InFlight is the largest number of microbatches of which a stage has computed the forward and not yet the backward.
func InFlight(order []Task) (most int) {
	n := 0
	for _, t := range order {
		switch t.Phase {
		case Forward:
			n++
		case Backward:
			n--
		}
		most = max(most, n)
	}
	return most
}
