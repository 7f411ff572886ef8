package spec

// Kinds of jobs.
const (
	TrainingJob  = "TrainingJob"
	FederatedJob = "FederatedJob" // owners train on data of their own, and a coordinator adds what they send
)

// Federated is how owners of data train together, of a FederatedJob.
type Federated struct {
	Owners    int     `job:"owners" in:"[3,128]"` // that may take part
	MinCohort int     `job:"min_cohort" in:"[3,128]"`
	Clip      float64 `job:"clip" in:"(0,1000000]"` // largest Euclidean norm of an update
	Weights   string  `job:"weights" one:"equal examples"`
	// of which an owner counts fully, of weights: examples
	FullExamples int      `job:"full_examples" in:"[1,1000000000]"`
	Sample       float64  `job:"sample" in:"(0,1]"` // of the owners is asked in a round
	Classes      []string `job:"classes" size:"[2,1024]"`
	Noise        Noise    `job:"noise"`
}

// Noise is what owners add to their updates, so that the sum discloses little of one of them.
type Noise struct {
	Multiplier float64 `job:"multiplier" in:"[0,4]"` // standard deviation in the sum, in clipping norms
	Delta      float64 `job:"delta" in:"(0,0.01]"`   // at which epsilon is stated
}

// Weights of owners.
const Equal, ByExamples = "equal", "examples"

// Weight is what an owner with a number of examples counts.
func (f Federated) Weight(examples int) float64 {
	if f.Weights != ByExamples {
		return 1
	}
	return min(1, float64(examples)/float64(f.FullExamples))
}

// deriveFederated sets the keys of a FederatedJob that follow from its kind: an owner computes the one unit of a round,
// from no state of earlier ones, and its update is clipped and not compressed.
func (j *Spec) deriveFederated(given func(path string) bool) {
	f := &j.Federated
	if f.MinCohort == 0 {
		f.MinCohort = 3
	}
	if f.Clip == 0 {
		f.Clip = 1
	}
	if f.Weights == "" {
		f.Weights = Equal
	}
	if f.Sample == 0 {
		f.Sample = 1
	}
	if f.Noise.Delta == 0 {
		f.Noise.Delta = 1e-5
	}
	s := &j.Strategy
	if !given("strategy.workers") {
		s.Workers.Target = 1
	}
	if s.Compression.Quantize == "" {
		s.Compression.Quantize = "none"
	}
}
