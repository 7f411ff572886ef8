package paths_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/stages/paths"
)

// Of every share that is taken, stages between the first and the last are left out equally often, none twice by a
// microbatch, and microbatches leave out equally many, but for one.
func TestOf(t *testing.T) {
	taken := 0
	for stages := range 10 {
		for micro := 1; micro < 20; micro++ {
			for total := range stages*micro + 1 {
				share := float64(total) / float64(stages*micro)
				p, err := paths.Of(stages, micro, share)
				if near, ok := paths.Nearest(stages, micro, share); ok {
					if _, err := paths.Of(stages, micro, near); err != nil {
						t.Errorf("%d stages, %d microbatches: %v is advised, and %v", stages, micro, near, err)
					}
				}
				if err != nil {
					if !errors.Is(err, paths.ErrShare) {
						t.Fatal(err)
					}
					continue
				}
				taken++
				passed := p.Passed()
				if passed[0] != micro || passed[stages-1] != micro || slices.Min(passed) < 1 ||
					slices.Min(passed[1:stages-1]) != slices.Max(passed[1:stages-1]) {
					t.Errorf("%d stages, %d microbatches, %v: passed %v", stages, micro, share, passed)
				}
				least, most := stages, 0
				for _, left := range p.Left {
					least, most = min(least, len(left)), max(most, len(left))
					if len(slices.Compact(slices.Clone(left))) != len(left) {
						t.Errorf("%d stages, %d microbatches, %v: one leaves out %v", stages, micro, share, left)
					}
				}
				if most-least > 1 {
					t.Errorf("%d stages, %d microbatches, %v: %v", stages, micro, share, p.Left)
				}
			}
		}
	}
	if taken < 100 {
		t.Errorf("%d shares are taken", taken)
	}
}

func TestLayers(t *testing.T) {
	p, err := paths.Of(4, 2, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	layers := p.Layers([]int{2, 4, 7}) // layer 0; 1 and 2; 3 to 5; 6
	if len(layers) != 2 || !slices.Equal(layers[0], []int{1, 2}) || !slices.Equal(layers[1], []int{3, 4, 5}) {
		t.Errorf("left out are %v", layers)
	}
}
