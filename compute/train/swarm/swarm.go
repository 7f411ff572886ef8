// Package swarm says which units train and use which model, in a job whose units train one each. It holds
// no weights.
package swarm

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/train/parts"
)

// MaxModels is the largest number of models of a job: a checkpoint has all of them.
const MaxModels = 16

// Node is the number of the model that a unit trains, or draws with, of a number of models: answers are drawn with the
// model that their unit trains. 0 where all units train one.
func Node(models uint32, r parts.Rounds, unit uint32) int {
	if models == 0 {
		return 0
	}
	if unit >= r.Units {
		unit, _ = r.Learns(unit)
	}
	return int(unit)
}

// Check returns an error unless the units of rounds can train this number of models. derived: the updates of the units
// are gradients, or transformed.
func Check(models uint32, r parts.Rounds, derived bool) error {
	switch {
	case models == 0 && r.Shared:
		return errors.New("answers are shared by units that train one model together")
	case models == 0:
		return nil
	case r.Units == 0:
		return errors.New("units with models of their own, which draw no answers apart")
	case models != r.Units || models < 2 || models > MaxModels:
		return fmt.Errorf("%d models of %d units, wanted one a unit, 2 to %d", models, r.Units, MaxModels)
	case derived:
		return errors.New("units with models of their own, whose updates are gradients or transformed")
	}
	return nil
}
