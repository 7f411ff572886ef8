// Package owners has the keys of job files about owners of data who train together. It does not check them:
// client/job/check does.
package owners

// Federated is how owners of data train together, of a FederatedJob.
type Federated struct {
	Owners    int     `job:"owners" in:"[3,128]"` // that may take part
	Updates   string  `job:"updates" one:"masked encrypted public"`
	MinCohort int     `job:"min_cohort" in:"[3,128]"`
	Clip      float64 `job:"clip" in:"(0,1000000]"` // largest Euclidean norm of an update
	Method    string  `job:"method" one:"mean scaffold"`
	Weights   string  `job:"weights" one:"equal examples"`
	// of which an owner counts fully, of weights: examples
	FullExamples int          `job:"full_examples" in:"[1,1000000000]"`
	Sample       float64      `job:"sample" in:"(0,1]"` // of the owners is asked in a round
	Classes      []string     `job:"classes" size:"[2,1024]"`
	Noise        Noise        `job:"noise"`
	ExampleNoise ExampleNoise `job:"example_noise"`
}

// Noise is what owners add to their updates, so that the sum discloses little of one of them.
type Noise struct {
	Multiplier float64 `job:"multiplier" in:"[0,4]"` // standard deviation in the sum, in clipping norms
	Delta      float64 `job:"delta" in:"(0,0.01]"`   // at which epsilon is stated
}

// ExampleNoise is what an owner adds to the gradients of each step, so that its update discloses little of one of its
// examples.
type ExampleNoise struct {
	Multiplier  float64 `job:"multiplier" in:"[0,4]"`            // standard deviation in a sum of gradients, in Clip
	Clip        float64 `job:"clip" in:"(0,1000000]"`            // largest Euclidean norm of the gradient of an example
	MinExamples int     `job:"min_examples" in:"[1,1000000000]"` // an owner with fewer does not take part
	Delta       float64 `job:"delta" in:"(0,0.01]"`              // at which epsilon is stated
}

// On reports whether there is noise for examples.
func (n ExampleNoise) On() bool { return n.Multiplier > 0 }

// Scaffold is the method with which owners correct their steps by control variates (package exchange/scaffold). With
// the other one they correct nothing.
const Scaffold, mean = "scaffold", "mean"

// Public are updates that anybody sees: the models of owners, which a committee scores. Of others the coordinator
// learns the sum alone: they are Masked, or Encrypted so that ciphertexts are added and masks hide their keys.
const Public, Encrypted, Masked = "public", "encrypted", "masked"

// Weights of owners.
const Equal, ByExamples = "equal", "examples"

// Weight is what an owner with a number of examples counts.
func (f Federated) Weight(examples int) float64 {
	if f.Weights != ByExamples {
		return 1
	}
	return min(1, float64(examples)/float64(f.FullExamples))
}

// Derive sets the keys that are not given.
func (f *Federated) Derive() {
	if f.MinCohort == 0 {
		f.MinCohort = 3
	}
	if f.Updates == "" {
		f.Updates = Masked
	}
	if f.Method == "" {
		f.Method = mean
	}
	if f.Weights == "" {
		f.Weights = Equal
	}
	for _, k := range []struct {
		key     *float64
		without float64
	}{{&f.Clip, 1}, {&f.Sample, 1}, {&f.Noise.Delta, 1e-5}, {&f.ExampleNoise.Clip, 1}, {&f.ExampleNoise.Delta, 1e-5}} {
		if *k.key == 0 {
			*k.key = k.without
		}
	}
}
