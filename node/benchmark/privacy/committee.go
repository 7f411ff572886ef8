package privacy

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/privacy/alliance"
)

// Limits of the bars about committees.
const (
	dishonest = 0.2 // of the pay of an honest member for a round
	moved     = 1   // standard deviation of a score
)

// committees adds to a report what committees pay members that lie, and how far evaluators that lie move scores.
func (r *Report) committees(ctx context.Context, o Options) error {
	for _, dirichlet := range []float64{0.1, 0.5} {
		c, err := alliance.Measure(ctx, dirichlet, o.Committee, o.Progress)
		if err != nil {
			return err
		}
		r.Committees = append(r.Committees, c)
		for _, e := range c.Earned {
			if e.Kind == alliance.Flips || e.Kind == alliance.Random {
				r.Bars = append(r.Bars, benchmark.AtMost(fmt.Sprintf("pay of a member of a committee over %d rounds that %s, of "+
					"that of an honest one, Dirichlet %g", c.Rounds, e.Kind, dirichlet), benchmark.Rounded(e.Paid, 4), dishonest))
			}
		}
		r.Bars = append(r.Bars, benchmark.AtMost(fmt.Sprintf("change of a score by a third of the evaluators of a round, in "+
			"standard deviations, Dirichlet %g", dirichlet), benchmark.Rounded(c.Moved.Scores, 4), moved))
	}
	return nil
}
