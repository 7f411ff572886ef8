package spec

import "github.com/starling-network/starling/client/job/owners"

// Kinds of jobs.
const (
	TrainingJob  = "TrainingJob"
	FederatedJob = "FederatedJob" // owners train on data of their own, and a coordinator adds what they send
)

// deriveFederated sets the keys of a FederatedJob that follow from its kind: an owner computes the one unit of a round,
// from no state of earlier ones, and its update is clipped and not compressed.
func (j *Spec) deriveFederated(given func(path string) bool) {
	j.Federated.Derive()
	s := &j.Strategy
	if !given("strategy.workers") {
		s.Workers.Target = 1
	}
	if s.Compression.Quantize == "" {
		s.Compression.Quantize = "none"
	}
}

// deriveScaffold sets the keys of a job with control variates, which are mean gradients of plain steps.
func (j *Spec) deriveScaffold(given func(path string) bool) {
	if j.Kind != FederatedJob || j.Federated.Method != owners.Scaffold {
		return
	}
	t := &j.Training
	if !given("strategy.method") {
		j.Strategy.Method = "fedavg"
	}
	if !given("training.optimizer") {
		t.Optimizer.Name, t.Optimizer.WeightDecay = SGD, 0
	}
	if !given("training.optimizer.momentum") {
		t.Optimizer.Momentum = 0
	}
	if !given("training.max_grad_norm") {
		t.MaxGradNorm = 0
	}
}
