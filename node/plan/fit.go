package plan

import (
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/prepare"
)

// smaller are settings that take less memory, those that change the model least first. One that a job cannot have is
// left out.
var smaller = []string{"training.gradient_checkpointing=true", "training.micro_batch_size=1",
	"training.optimizer.state=int8", "training.precision=bf16"}

// Fitting returns settings, as --set takes them, with which a job takes no more memory than is free if this machine
// does all of it, and how much it then takes; not ok if no such settings are known.
func Fitting(j *job.Job, free uint64) (set []string, need uint64, ok bool) {
	for _, s := range smaller {
		try := append(slices.Clone(set), s)
		all, err := memoryWith(j, try)
		if err != nil {
			continue
		}
		if set = try; all <= free {
			return set, all, true
		}
	}
	return nil, 0, false
}

// memoryWith is what a job with more settings takes in all.
func memoryWith(j *job.Job, set []string) (uint64, error) {
	other, err := job.Parse(j.Source, j.Path, slices.Concat(j.Overrides, set)...)
	if err != nil {
		return 0, err
	}
	b, err := prepare.Outline(other)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	o, err := b.LocalOrder()
	if err != nil {
		return 0, err
	}
	exec, err := b.Spec.Compile(b.Step, kernel.Cores)
	if err != nil {
		return 0, err
	}
	return prepare.Memory(b, exec, prepare.Workers(b)+int(o.Verifiers))
}
