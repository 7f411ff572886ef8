package architecture

import "github.com/starling-network/starling/compute/model/fields"

// turnsKey lists the layers, the first of which is 1, before which a model in the form of Llama multiplies the residual
// stream by a matrix [width, width]. Models that the keys of epochs make have it (package rekey), and no other program
// knows it.
const turnsKey = "starling_turns"

// Turned reports whether the residual stream is multiplied by a matrix before a layer.
func (f Form) Turned(layer int) bool { return f.turns != "" && f.turns[layer] == 1 }

// Turning is the model with a matrix before some more layers, which it has.
func (c Config) Turning(layers []int) Config {
	all := make([]byte, c.Layers)
	copy(all, c.Form.turns)
	for _, n := range layers {
		all[n] = 1
	}
	if len(layers) > 0 {
		c.Form.turns = string(all)
	}
	return c
}

// turnsJSON is turnsKey.
func (f Form) turnsJSON() (list []int) {
	for i := range f.turns {
		if f.Turned(i) {
			list = append(list, i+1)
		}
	}
	return list
}

// readTurns reads turnsKey.
func readTurns(f *fields.Reader, c *Config) {
	list := f.Sizes(turnsKey, nil, c.Layers, c.Layers)
	for i := range list {
		list[i]--
	}
	*c = c.Turning(list)
}
