package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
)

// checkPolicies reports why the units of a specification cannot move a model each.
func checkPolicies(x train.Exchange) error {
	if x.Outer != SGD || x.Rate != 1 || x.Rule != aggregate.Mean || x.Transform != "" || x.Replicas() || x.Gradients {
		return fmt.Errorf("outer: units with a model each, with optimizer %q at the rate %v, rule %q and transform %q, "+
			"wanted %q at 1, %q and none", x.Outer, x.Rate, x.Rule, x.Transform, SGD, aggregate.Mean)
	}
	return nil
}

// genesisOfPolicies is the checkpoint before the first round of a swarm: each of its models is the one that is given.
func genesisOfPolicies(x train.Exchange, names []string, params map[string]*tensor.Tensor) (*train.Checkpoint, error) {
	c, err := train.Genesis(names, params, 0)
	for range max(1, x.Policies) - 1 {
		if err == nil {
			c.Outer = append(c.Outer, c.Params)
		}
	}
	return c, err
}

// advancePolicies moves each model of a swarm by the update of its unit. Updates are not combined.
func advancePolicies(s *train.Spec, base *train.Checkpoint, deltas [][]*tensor.Tensor,
	lay func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	if n := int(s.Exchange.Policies); len(base.Outer) != n-1 || len(deltas) != n {
		return nil, fmt.Errorf("%w: %d updates and %d models, of %d", ErrRound, len(deltas), 1+len(base.Outer), n)
	}
	next := &train.Checkpoint{Round: base.Round + 1, Names: base.Names}
	for u, d := range deltas {
		own := train.Model(s, base, u)
		moved := make([]*tensor.Tensor, len(own.Params))
		for i, p := range own.Params {
			if !p.Shape.Equal(d[i].Shape) {
				return nil, fmt.Errorf("%w: %q is %s and its update %s", ErrRound, base.Names[i], p.Shape, d[i].Shape)
			}
			moved[i] = train.Difference(p, d[i])
			p.Rest()
			if d[i] = nil; lay != nil {
				moved[i] = lay(moved[i])
			}
		}
		if u == 0 {
			next.Params = moved
		} else {
			next.Outer = append(next.Outer, moved)
		}
	}
	return next, nil
}
