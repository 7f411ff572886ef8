package spec

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
