package architecture

import (
	"strconv"
	"strings"
)

// LayerOf is the layer that a tensor belongs to; false: it belongs to none, as embeddings and the output layer do.
func (c Config) LayerOf(name string) (layer int, ok bool) {
	prefix := "transformer.h."
	if c.architecture != GPT2 {
		prefix, _, _ = strings.Cut(NamesOf(c.architecture).Layer, "%d")
	}
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	return layer, err == nil && layer >= 0 && layer < c.Layers
}

// Untied is the model with an output layer of its own.
func (c Config) Untied() Config {
	c.Tied = false
	return c
}
