package exampleloss

import "github.com/starling-network/starling/compute/detmath"

// Prior takes out of a model how often it expects each class, whatever it sees, and puts in how often a set has the
// class (Saerens et al. 2002; Menon et al. 2021): the Bias of a class is the logarithm of the number of its targets
// plus one, less that of the sum of its probabilities plus one. A model that expects each class as often as the set has
// it has a bias of 0.
type Prior struct {
	sums   []float64 // of the probabilities of each class
	counts []uint64  // of the targets of each class
}

// NewPrior is that of no examples.
func NewPrior(classes int) *Prior {
	return &Prior{sums: make([]float64, classes), counts: make([]uint64, classes)}
}

// Add adds the probabilities of an example, or of a position of it, and the class that is right. The order of calls
// matters: sums are rounded.
func (p *Prior) Add(probs []float32, class int) {
	for i, x := range probs {
		p.sums[i] += float64(x)
	}
	p.counts[class]++
}

// Bias is added to the logits of each class.
func (p *Prior) Bias() []float32 {
	bias := make([]float32, len(p.sums))
	for i, sum := range p.sums {
		bias[i] = detmath.Log(float32(p.counts[i]+1)) - detmath.Log(float32(sum+1))
	}
	return bias
}
