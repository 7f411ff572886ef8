package pipeline

import (
	"slices"
	"testing"
)

// late is a model whose first of four stages is late by two steps.
var late = size{family: "gpt2", tied: true, layers: 4, width: 16, length: 10, sequences: 4, microbatch: 2, steps: 5,
	late: 2}

// A unit in stages that do not wait for each other ends with the bits of the program in which each reads weights of the
// same age, and each stage can be executed again alone.
func TestUnitOfLateStages(t *testing.T) {
	for _, n := range []int{2, 4} {
		c, err := compare(late, n, 1)
		if err != nil || c.Differ > 0 {
			t.Errorf("%d stages: %+v, %v", n, c, err)
		}
		j, err := newJob(late, n, 1)
		if err != nil {
			t.Fatal(err)
		}
		p := j.play(nil, nil, true)
		for s, r := range p.results {
			if got, err := j.again(p, s); err != nil || !slices.Equal(got, r.Segments) {
				t.Errorf("%d stages: stage %d alone ends in other states: %v", n, s, err)
			}
		}
	}
}

// A stage that is late by many steps hears from its receivers about many steps before it ends the first of them.
func TestUnitOfManyLateStages(t *testing.T) {
	c, err := compare(size{family: "gpt2", layers: 9, width: 8, length: 4, sequences: 1, microbatch: 1, steps: 17,
		late: 8}, 10, 1)
	if err != nil || c.Differ > 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Attacks on such stages end as those on stages that wait.
func TestAttacksOnLateStages(t *testing.T) {
	j, err := newJob(late, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	var a Attacks
	if err := j.attack(&a); err != nil {
		t.Fatal(err)
	}
	if a.Liars != 12 || a.Convicted != a.Liars || a.Denials < 20 || a.Shown != a.Denials || a.Withheld < 6 ||
		a.Named != a.Withheld || a.Wrong > 0 || a.Restarts > 0 {
		t.Errorf("%+v", a)
	}
}
