package architecture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/compute/model/fields"
)

// turnsKey lists the layers before which a model in the form of Llama multiplies the residual stream by a matrix
// [width, width]. No other program knows the key: models that the keys of epochs make have it (package rekey).
const turnsKey = "starling_turns"

// Turned reports whether the residual stream is multiplied by a matrix before a layer.
func (f Form) Turned(layer int) bool { return slices.Contains(f.turnsList(), layer) }

// turnsList is the layers of Turned, ascending.
func (f Form) turnsList() (list []int) {
	for word := range strings.SplitSeq(f.turns, ",") {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// Turning is the model with a matrix before some more layers.
func (c Config) Turning(layers []int) Config {
	list := slices.Concat(c.Form.turnsList(), layers)
	slices.Sort(list)
	c.Form.turns = ""
	for _, n := range slices.Compact(list) {
		c.Form.turns += strconv.Itoa(n) + ","
	}
	return c
}

// readTurns reads the layers of Turned.
func readTurns(f *fields.Reader, c *Config) {
	v, ok := f.Get(turnsKey)
	if !ok {
		return
	}
	list, _ := v.([]any)
	var layers []int
	for _, x := range list {
		n, whole := fields.Integer(x)
		if !whole || n < 0 || n >= c.Layers || len(layers) > 0 && n <= layers[len(layers)-1] {
			f.Fail(turnsKey, fmt.Sprintf("%v is no layer of %d after the one before it", x, c.Layers),
				f.Advice("list numbers of layers from 0 on, in ascending order"))
			return
		}
		layers = append(layers, n)
	}
	*c = c.Turning(layers)
}
