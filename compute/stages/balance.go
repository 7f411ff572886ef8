package stages

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Cost is what one group of the layers of a model costs in a step.
type Cost struct {
	Flops uint64 // of forward, backward and update
	State int64  // bytes of weights and moments
}

// Costs are the costs of the groups of a program, as Groups lists them.
func Costs(p *program.Program) ([]Cost, error) {
	groups, err := Groups(p)
	if err != nil {
		return nil, err
	}
	pl, err := place(p, groups, func(group int) int { return group }, len(groups))
	if err != nil {
		return nil, err
	}
	costs, shapes := make([]Cost, len(groups)), p.InputShapes()
	for g, st := range pl.extract().Stages {
		costs[g].Flops = st.Whole.Flops()
		for _, n := range st.State {
			costs[g].State += int64(tensor.AlignUp(shapes[n].Bytes()))
		}
	}
	return costs, nil
}

// Balance are the groups before which a program is cut into stages so that the slowest has the fewest operations; of
// equals, so that the largest state has the fewest bytes. Each stage has at least one group. passed has, for each
// stage, how many of the microbatches pass it: costs are those of a step whose microbatches all do.
func Balance(costs []Cost, passed []int) ([]int, error) {
	n := len(passed)
	if n < 2 || n > len(costs) {
		return nil, fmt.Errorf("%w: %d stages of %d groups of layers, wanted 2 to %d", ErrCut, n, len(costs), len(costs))
	}
	type best struct {
		flops uint64
		state int64
		from  int
	}
	// table[k][g] is the best division of the first g groups into k stages
	table := make([][]best, n+1)
	for k := range table {
		table[k] = make([]best, len(costs)+1)
		for g := range table[k] {
			table[k][g] = best{flops: math.MaxUint64, state: math.MaxInt64}
		}
	}
	table[0][0] = best{}
	for k := 1; k <= n; k++ {
		for to := k; to <= len(costs); to++ {
			var flops uint64
			var state int64
			for from := to - 1; from >= k-1; from-- {
				flops, state = flops+costs[from].Flops*uint64(passed[k-1]), state+costs[from].State
				before := table[k-1][from]
				if before.flops == math.MaxUint64 {
					continue
				}
				b := best{max(before.flops, flops), max(before.state, state), from}
				if t := &table[k][to]; b.flops < t.flops || b.flops == t.flops && b.state < t.state {
					*t = b
				}
			}
		}
	}
	before := make([]int, n-1)
	for k, at := n, len(costs); k > 1; k-- {
		at = table[k][at].from
		before[k-2] = at
	}
	return before, nil
}
