package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
)

// pairings are topologies by their names in a work specification.
var pairings = map[string]Topology{"complete": Complete, "ring": Ring, "expander": Expander, "small_world": SmallWorld}

// State is how many tensors of state a checkpoint has for each parameter: of the outer optimizer; where units are
// paired, of every replica its difference to the parameters and its momentum; in a swarm, the models besides the first.
func State(x train.Exchange) (int, error) {
	if x.Pairs > 0 {
		return train.PairState * int(x.Pairs), nil
	}
	if x.Policies > 0 {
		return int(x.Policies) - 1, nil
	}
	o, err := NewOptimizer(x)
	if err != nil {
		return 0, err
	}
	return o.State(), nil
}

// checkPairs reports why units cannot be paired as a specification says.
func checkPairs(x train.Exchange) error {
	switch _, ok := pairings[x.Topology]; {
	case !ok:
		return fmt.Errorf("outer: topology %q is not known", x.Topology)
	case x.Outer != PairwiseGossip || x.Rule != aggregate.Mean:
		return fmt.Errorf(
			"outer: units in pairs with optimizer %q and rule %q, wanted %q and %q",
			x.Outer,
			x.Rule,
			PairwiseGossip,
			aggregate.Mean,
		)
	}
	return nil
}

// advancePairs moves every replica with its partner of the round, as Gossip does. The parameters of the checkpoint are
// the mean of the replicas. An update is the difference of the parameters to where the unit has ended, so that what its
// replica began with is taken from it.
func advancePairs(s *train.Spec, base *train.Checkpoint, deltas [][]*tensor.Tensor) (*train.Checkpoint, error) {
	x := s.Exchange
	n, topology := int(x.Pairs), pairings[x.Topology]
	if len(base.Outer) != train.PairState*n || len(deltas) != n {
		return nil, fmt.Errorf("%w: %d updates and %d tensors of state for a parameter, for %d replicas", ErrRound,
			len(deltas), len(base.Outer), n)
	}
	gossip := Gossip{Rate: float32(x.Rate), Decay: float32(x.Momentum), Pull: float32(x.Rate)}
	next := &train.Checkpoint{Round: base.Round + 1, Names: base.Names, Outer: make([][]*tensor.Tensor, len(base.Outer))}
	for i, p := range base.Params {
		before, moved := make([]*tensor.Tensor, n), make([]*tensor.Tensor, n)
		for u, d := range deltas {
			if !d[i].Shape.Equal(p.Shape) {
				return nil, fmt.Errorf("%w: %q is %s and its update %s", ErrRound, base.Names[i], p.Shape, d[i].Shape)
			}
			before[u], moved[u] = train.Difference(p, base.Outer[train.PairState*u][i]),
				train.Difference(d[i], base.Outer[train.PairState*u][i])
		}
		momenta := make([]*tensor.Tensor, n)
		replicas := make([]aggregate.Update, n)
		for u := range n {
			v := topology.Partner(n, u, uint64(base.Round), s.Seed)
			q, m := before[u].Clone(), base.Outer[train.PairState*u+1][i].Clone()
			gossip.Apply(q.F32(), m.F32(), moved[u].F32(), moved[v].F32(), before[v].F32())
			momenta[u], replicas[u] = m, aggregate.Update{Unit: uint32(u), Weight: 1, Tensors: []*tensor.Tensor{q}}
		}
		mean, err := aggregate.Combine(aggregate.Average{}, replicas)
		if err != nil {
			return nil, fmt.Errorf("outer: %w", err)
		}
		next.Params = append(next.Params, mean[0])
		for u := range n {
			apart := train.Difference(mean[0], replicas[u].Tensors[0])
			next.Outer[train.PairState*u] = append(next.Outer[train.PairState*u], apart)
			next.Outer[train.PairState*u+1] = append(next.Outer[train.PairState*u+1], momenta[u])
		}
	}
	return next, nil
}
