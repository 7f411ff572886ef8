// Package paths says which stages each microbatch of a step leaves out, as SkipPipe does (Blagoev et al. 2025, arXiv
// 2502.19913): as data, which follows from three numbers. The first and the last stage are passed by all, the others by
// equally many, in their order.
//
// It makes no program and knows no times: package stages cuts a step whose microbatches leave out layers.
package paths

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrShare is wrapped by every reason why a share of the stages cannot be left out.
var ErrShare = errors.New("paths: this share of the stages cannot be left out")

// rounded is by how many stages a share may be another than that of whole ones: it is written with few digits.
const rounded = 0.01

// Paths are the ways of the microbatches of a step.
type Paths struct {
	Stages int
	Left   [][]int // of each microbatch the stages that it leaves out, ascending
}

// Of are the ways of a number of microbatches, which leave out a share of all stages on average. Those that leave out a
// stage are spread evenly over a step, so that a stage has as little to wait as can be.
func Of(stages, micro int, share float64) (Paths, error) {
	p := Paths{Stages: stages, Left: make([][]int, micro)}
	inner := stages - 2
	total := int(math.Round(share * float64(stages) * float64(micro)))
	switch {
	case inner < 1:
		return p, fmt.Errorf("%w: of %d stages, of which the first and the last are never left out", ErrShare, stages)
	case total < 1 || math.Abs(share*float64(stages)*float64(micro)-float64(total)) > rounded || total%inner != 0:
		return p, fmt.Errorf("%w: %v of %d stages is %.3g over %d microbatches, and the %d stages between the first and "+
			"the last are left out equally often", ErrShare, share, stages, share*float64(stages)*float64(micro), micro, inner)
	case total >= inner*micro:
		return p, fmt.Errorf("%w: no microbatch would pass the stages between the first and the last of %d", ErrShare,
			stages)
	}
	for i := range total {
		k := i * micro / total
		p.Left[k] = append(p.Left[k], 1+i%inner)
	}
	for _, left := range p.Left {
		slices.Sort(left)
	}
	return p, nil
}

// Nearest is the share closest to another that Of takes; false: it takes none.
func Nearest(stages, micro int, share float64) (float64, bool) {
	if stages < 3 || micro < 2 {
		return 0, false
	}
	each := math.Round(share * float64(stages) * float64(micro) / float64(stages-2)) // times that a stage is left out
	return min(max(each, 1), float64(micro-1)) * float64(stages-2) / (float64(stages) * float64(micro)), true
}

// Passed is how many of the microbatches pass each stage.
func (p Paths) Passed() []int {
	passed := slices.Repeat([]int{len(p.Left)}, p.Stages)
	for _, left := range p.Left {
		for _, s := range left {
			passed[s]--
		}
	}
	return passed
}

// Layers are the layers that each microbatch leaves out, of a model that is cut before some groups of layers: group 0
// is the embeddings, and the last one the output.
func (p Paths) Layers(before []int) [][]int {
	all := make([][]int, len(p.Left))
	for k, left := range p.Left {
		for _, s := range left {
			for group := before[s-1]; group < before[s]; group++ {
				all[k] = append(all[k], group-1)
			}
		}
	}
	return all
}
