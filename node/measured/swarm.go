package measured

import (
	"fmt"
	"maps"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/prepare"
)

// evaluateEach measures each model of a swarm. The loss and the measurements are those of the best one, with the reward
// of each, and the number of the best.
func evaluateEach(b *prepare.CompiledJob, eval *cpu.Exec, ckpt *train.Checkpoint) (loss *float64,
	all map[string]float64, err error) {
	rewards, best := map[string]float64{}, 0
	for k := range int(b.Spec.Exchange.Policies) {
		l, of, err := evaluate(b, eval, train.Model(b.Spec, ckpt, k))
		if l == nil || err != nil {
			return nil, nil, err
		}
		rewards[fmt.Sprintf("node_%d_reward", k)] = of[reward]
		if all == nil || of[reward] > all[reward] {
			loss, all, best = l, of, k
		}
	}
	maps.Copy(all, rewards)
	all[BestNode] = float64(best)
	return loss, all, nil
}

// BestNode is the measurement of a swarm that is the number of its best model.
const BestNode = "best_node"

const reward = "reward"

// Best is the number of the model of a checkpoint that is the model of the job: of a swarm the first of those with the
// highest reward on the held-out examples, or the first of all if nothing is held out.
func Best(b *prepare.CompiledJob, eval *cpu.Exec, ckpt *train.Checkpoint) (int, error) {
	if b.Spec.Exchange.Policies == 0 {
		return 0, nil
	}
	_, all, err := Evaluate(b, eval, ckpt)
	return int(all[BestNode]), err
}
