package order

import (
	"container/heap"
	"fmt"
	"slices"
)

// Shared is when each of several lists of tasks ends, of which one machine may compute some: on[i] is the machine of
// list i, and the Stage of a Place is the number of a list. A machine computes one task at a time: of those that it
// could begin, the one that it could begin first, and of equals that of the first list. takes and travels are as Timed
// has them. It is an error if lists wait for each other.
func Shared(lists [][]Task, waits []map[Task][]Place, on []int, takes func(Place) float64,
	travels func(from, to Place) float64) ([]float64, error) {
	s := &sharing{lists: lists, waits: waits, on: on, takes: takes, travels: travels, next: make([]int, len(lists)),
		ends: make([]float64, len(lists)), done: map[Place]float64{}, ready: map[int]*moments{}, busy: map[int]bool{},
		readers: map[Place][]int{}}
	for i := range lists {
		for _, from := range waits[i] {
			for _, p := range from {
				if !slices.Contains(s.readers[p], i) {
					s.readers[p] = append(s.readers[p], i)
				}
			}
		}
		s.ready[on[i]] = &moments{}
	}
	for i := range lists {
		s.look(i, 0)
	}
	for s.coming.Len() > 0 {
		now := heap.Pop(&s.coming).(moment)
		if now.ends {
			s.end(now)
		} else {
			heap.Push(s.ready[on[now.list]], now)
		}
		s.begin(on[now.list], now.at)
	}
	for i := range lists {
		if s.next[i] < len(lists[i]) {
			return s.ends, fmt.Errorf("%w: %v of list %d never begins", ErrDeadlock, lists[i][s.next[i]], i)
		}
	}
	return s.ends, nil
}

// sharing is lists of tasks at a moment.
type sharing struct {
	lists   [][]Task
	waits   []map[Task][]Place
	on      []int
	takes   func(Place) float64
	travels func(from, to Place) float64

	next    []int             // of each list, its next task
	ends    []float64         // of each list, when its last task ended
	done    map[Place]float64 // when a task ended
	readers map[Place][]int   // lists with tasks that wait for a task
	coming  moments
	ready   map[int]*moments // of each machine, tasks that it could begin
	busy    map[int]bool     // machines that compute
}

// look finds when the next task of a list could begin, if all that it waits for is done.
func (s *sharing) look(list int, now float64) {
	if s.next[list] == len(s.lists[list]) {
		return
	}
	at := Place{list, s.lists[list][s.next[list]]}
	begin := now
	for _, w := range s.waits[list][at.Task] {
		end, ok := s.done[w]
		if !ok {
			return
		}
		begin = max(begin, end+s.travels(w, at))
	}
	heap.Push(&s.coming, moment{at: begin, list: list})
}

// begin lets a machine that computes nothing begin the task that it could begin first.
func (s *sharing) begin(machine int, now float64) {
	if s.busy[machine] || s.ready[machine].Len() == 0 {
		return
	}
	list := heap.Pop(s.ready[machine]).(moment).list
	s.busy[machine] = true
	at := Place{list, s.lists[list][s.next[list]]}
	heap.Push(&s.coming, moment{at: now + s.takes(at), list: list, ends: true})
}

// end ends the task of a list, and looks at all that may have waited for it.
func (s *sharing) end(now moment) {
	at := Place{now.list, s.lists[now.list][s.next[now.list]]}
	s.done[at], s.ends[now.list], s.busy[s.on[now.list]] = now.at, now.at, false
	s.next[now.list]++
	s.look(now.list, now.at)
	for _, list := range s.readers[at] {
		if list != now.list && s.next[list] < len(s.lists[list]) && s.reads(list, at) {
			s.look(list, now.at)
		}
	}
}

// reads reports whether the next task of a list waits for a task.
func (s *sharing) reads(list int, at Place) bool {
	for _, w := range s.waits[list][s.lists[list][s.next[list]]] {
		if w == at {
			return true
		}
	}
	return false
}

// moment is when the next task of a list could begin, or ends.
type moment struct {
	at   float64
	list int
	ends bool
}

// moments are in order of time. It implements heap.Interface.
type moments []moment

func (m moments) Len() int { return len(m) }

func (m moments) Less(i, j int) bool {
	a, b := m[i], m[j]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.ends != b.ends { // what it ends may let another task begin at the same time
		return a.ends
	}
	return a.list < b.list
}

func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Push implements heap.Interface.
func (m *moments) Push(x any) { *m = append(*m, x.(moment)) }

// Pop implements heap.Interface.
func (m *moments) Pop() any {
	last := len(*m) - 1
	x := (*m)[last]
	*m = (*m)[:last]
	return x
}
