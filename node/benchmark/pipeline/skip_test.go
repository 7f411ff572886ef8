package pipeline

import (
	"slices"
	"testing"
)

// left is a model of whose four stages each microbatch leaves out one.
var left = size{family: "gpt2", tied: true, layers: 6, width: 16, length: 10, sequences: 4, microbatch: 1, steps: 3,
	skip: 0.25}

// A unit in stages that microbatches leave out ends with the bits of one program, each stage can be executed again
// alone, and attacks end as on stages that all microbatches pass.
func TestStagesThatAreLeftOut(t *testing.T) {
	c, err := compare(left, 4, 1)
	if err != nil || c.Differ > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	j, err := newJob(left, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := j.play(nil, nil, true)
	for s, r := range p.results {
		if got, err := j.again(p, s); err != nil || !slices.Equal(got, r.Segments) {
			t.Errorf("stage %d alone ends in other states: %v", s, err)
		}
	}
	var a Attacks
	if err := j.attack(&a); err != nil {
		t.Fatal(err)
	}
	if a.Liars != 12 || a.Convicted != a.Liars || a.Denials < 20 || a.Shown != a.Denials || a.Withheld < 5 ||
		a.Named != a.Withheld || a.Wrong > 0 || a.Resumed != a.Restarts {
		t.Errorf("%+v", a)
	}
}
