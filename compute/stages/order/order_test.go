package order_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/stages/order"
)

// chain is the tasks of n stages on k microbatches, each of which waits for its neighbours.
func chain(n, k int) (tasks [][]order.Task, waits []map[order.Task][]order.Place) {
	for s := range n {
		var own []order.Task
		w := map[order.Task][]order.Place{}
		for _, p := range []order.Phase{order.Forward, order.Backward} {
			for m := range k {
				t := order.Task{Phase: p, Number: m}
				own = append(own, t)
				if before := s - 1; p == order.Forward && before >= 0 {
					w[t] = []order.Place{{Stage: before, Task: t}}
				}
				if after := s + 1; p == order.Backward && after < n {
					w[t] = []order.Place{{Stage: after, Task: t}}
				}
			}
		}
		tasks, waits = append(tasks, own), append(waits, w)
	}
	return tasks, waits
}

func equal(order.Place) float64 { return 1 }

func none(_, _ order.Place) float64 { return 0 }

// With equal times a step takes as long as a stage is busy, and the time in which the first microbatch reaches the last
// stage and comes back (Narayanan et al. 2019): K + N-1 forwards and as many backwards.
func TestOrdered(t *testing.T) {
	for _, c := range []struct{ n, k int }{{2, 1}, {2, 4}, {4, 4}, {4, 16}, {8, 3}, {8, 32}} {
		tasks, waits := chain(c.n, c.k)
		list := order.Ordered(tasks, c.k, after(len(tasks)))
		if err := order.Check(tasks, list, waits); err != nil {
			t.Fatal(err)
		}
		ends, err := order.Timed(list, waits, equal, none)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := slices.Max(ends), float64(2*(c.k+c.n-1)); got != want {
			t.Errorf("%d stages, %d microbatches take %v, wanted %v", c.n, c.k, got, want)
		}
		for s := range list {
			if got, want := order.InFlight(list[s]), min(c.k, c.n-s); got != want {
				t.Errorf("stage %d of %d has %d microbatches at a time, wanted %d", s, c.n, got, want)
			}
		}
	}
}

func TestOrdersThatDoNotEnd(t *testing.T) {
	tasks, waits := chain(3, 4)
	list := order.Ordered(tasks, 4, after(len(tasks)))
	swapped := slices.Clone(list)
	swapped[0] = slices.Clone(list[0])
	i, j := slices.Index(swapped[0], order.Task{Phase: order.Forward, Number: 1}),
		slices.Index(swapped[0], order.Task{Phase: order.Backward})
	swapped[0][i], swapped[0][j] = swapped[0][j], swapped[0][i] // it has one forward in flight, and the next stage two
	swapped[1] = slices.Clone(list[1])
	slices.Reverse(swapped[1])
	if err := order.Check(tasks, swapped, waits); !errors.Is(err, order.ErrDeadlock) {
		t.Errorf("%v", err)
	}
	for name, spoil := range map[string]func([][]order.Task) [][]order.Task{
		"missing": func(l [][]order.Task) [][]order.Task { l[1] = l[1][1:]; return l },
		"twice":   func(l [][]order.Task) [][]order.Task { l[1] = append(l[1], l[1][0]); return l },
		"strange": func(l [][]order.Task) [][]order.Task { l[1][0].Number = 9; return l },
		"a stage": func(l [][]order.Task) [][]order.Task { return l[1:] },
	} {
		spoilt := make([][]order.Task, len(list))
		for s := range list {
			spoilt[s] = slices.Clone(list[s])
		}
		if err := order.Check(tasks, spoil(spoilt), waits); !errors.Is(err, order.ErrOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// after is how many stages come after each of n.
func after(n int) (list []int) {
	for s := range n {
		list = append(list, n-1-s)
	}
	return list
}

// Lists with machines of their own end as Timed has it, and those of one machine after each other: a machine whose
// tasks wait for those of others computes other tasks.
func TestShared(t *testing.T) {
	tasks, waits := chain(3, 4)
	list := order.Ordered(tasks, 4, after(3))
	slow := func(at order.Place) float64 { return float64(1 + at.Stage%3) }
	far := func(_, _ order.Place) float64 { return 0.5 }
	want, err := order.Timed(list, waits, slow, far)
	if err != nil {
		t.Fatal(err)
	}
	got, err := order.Shared(list, waits, []int{0, 1, 2}, slow, far)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, wanted %v, %v", got, want, err)
	}
	if got, err := order.Shared(list, waits, []int{0, 0, 0}, equal, none); err != nil || slices.Max(got) != 24 {
		t.Errorf("24 tasks of one machine end at %v, %v", got, err)
	}
	var two [][]order.Task // replicas, of which each machine has a stage of each
	var both []map[order.Task][]order.Place
	for r := range 2 {
		two = append(two, list...)
		for _, w := range waits {
			own := map[order.Task][]order.Place{}
			for t, from := range w {
				for _, p := range from {
					own[t] = append(own[t], order.Place{Stage: p.Stage + 3*r, Task: p.Task})
				}
			}
			both = append(both, own)
		}
	}
	one, err := order.Shared(list, waits, []int{0, 1, 2}, equal, none)
	if err != nil {
		t.Fatal(err)
	}
	all, err := order.Shared(two, both, []int{0, 1, 2, 0, 1, 2}, equal, none)
	if err != nil || slices.Max(all) < 16 || slices.Max(all) >= 2*slices.Max(one) {
		t.Errorf("one replica ends at %v, and two at %v, %v", one, all, err)
	}
	stuck := [][]order.Task{{list[0][0]}, {list[0][0]}}
	waiting := []map[order.Task][]order.Place{{list[0][0]: {{Stage: 1, Task: list[0][0]}}},
		{list[0][0]: {{Stage: 0, Task: list[0][0]}}}}
	if _, err := order.Shared(stuck, waiting, []int{0, 1}, equal, none); !errors.Is(err, order.ErrDeadlock) {
		t.Errorf("%v", err)
	}
}

// Early is an order of all tasks, in which every stage reaches its end, whichever microbatches leave out a stage and
// however few a stage may have at a time. Stages of equal times wait for less than in the order 1F1B.
func TestEarly(t *testing.T) {
	for n := 3; n < 7; n++ {
		for _, micro := range []int{1, 2, 5, 12} {
			for seed := range 8 {
				tasks, waits := passing(n, micro, seed)
				most := slices.Repeat([]int{1 + seed%4}, n)
				list := order.Early(tasks, waits, slices.Repeat([]int64{int64(1 + seed)}, n), most)
				if err := order.Check(tasks, list, waits); err != nil {
					t.Fatalf("%d stages, %d microbatches: %v", n, micro, err)
				}
				for s := range list {
					if order.InFlight(list[s]) > most[s] {
						t.Errorf("stage %d has %d microbatches at a time, of %d", s, order.InFlight(list[s]), most[s])
					}
				}
			}
		}
	}
	tasks, waits := passing(3, 2, 0)
	waits[2][order.Task{Phase: order.Forward, Number: 1}] = []order.Place{
		{0, order.Task{Phase: order.Backward, Number: 1}}}
	list := order.Early(tasks, waits, []int64{1, 1, 1}, []int{4, 4, 4})
	if err := order.Check(tasks, list, waits); !errors.Is(err, order.ErrDeadlock) {
		t.Errorf("stages that wait for each other: %v", err)
	}
}

// passing are the tasks of stages of which microbatch k leaves out one that depends on a seed, and what they wait for.
func passing(n, micro, seed int) (tasks [][]order.Task, waits []map[order.Task][]order.Place) {
	tasks = make([][]order.Task, n)
	for range n {
		waits = append(waits, map[order.Task][]order.Place{})
	}
	for k := range micro {
		var way []int
		for s := range n {
			if s == 0 || s == n-1 || s != 1+(k*k+seed)%(n-1) {
				way = append(way, s)
			}
		}
		f, b := order.Task{Phase: order.Forward, Number: k}, order.Task{Phase: order.Backward, Number: k}
		for i, s := range way {
			tasks[s] = append(tasks[s], f, b)
			if i > 0 {
				waits[s][f] = []order.Place{{way[i-1], f}}
				waits[way[i-1]][b] = []order.Place{{s, b}}
			}
		}
	}
	return tasks, waits
}
