package architecture

import (
	"github.com/starling-network/starling/compute/model/blocks"
)

// Frozen lists the tensors of a model under adapters: weights, or their codes and then their scales.
func (c Config) Frozen() (list []Named) {
	for _, n := range c.Tensors() {
		list = append(list, n)
		if linear := n.Shape.Rank() == 2 && !n.embedding && n.Name != c.OutputName(); linear && c.lora.Bits > 0 {
			codes, scales := blocks.Shapes(n.Shape.Dims[0], n.Shape.Dims[1], c.lora.Bits)
			list[len(list)-1].Shape = codes
			list = append(list, Named{Name: n.Name + blocks.Suffix, Shape: scales})
		}
	}
	return list
}
