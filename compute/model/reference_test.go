package model

import (
	"math"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/internal/oracle"
)

// reference is what the programs are held against.
type reference struct {
	c architecture.Config
	w map[string]*tensor.Tensor
}

func (r reference) logits(tokens []int32) []oracle.Vector {
	return oracle.Model{Config: r.c, Weights: r.w}.Logits(tokens)
}

// loss is the mean cross-entropy of the sequences of tokens [batch, length+1].
func (r reference) loss(tokens []int32, batch int) float64 {
	length := len(tokens)/batch - 1
	sum := 0.0
	for b := range batch {
		row := tokens[b*(length+1):][:length+1]
		for t, logits := range r.logits(row[:length]) {
			sum += crossEntropyOf(logits, row[t+1])
		}
	}
	return sum / float64(batch*length)
}

func crossEntropyOf(logits oracle.Vector, target int32) float64 {
	total := 0.0
	for _, x := range logits {
		total += math.Exp(x)
	}
	return math.Log(total) - logits[target]
}
