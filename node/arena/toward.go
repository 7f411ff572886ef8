package arena

import (
	"fmt"
	"reflect"

	"github.com/starling-network/starling/compute/model/copied"
	"github.com/starling-network/starling/compute/tensor"
)

// toward is the base moved towards an entry of a round by one part in as many as the round has members: as far as the
// entry moves it in the mean of them all. Each element is computed in float64 and rounded to float32 once. The error
// wraps errInvalid if the entry has another network than the base.
func toward(base, m copied.Model, parts int) (copied.Model, error) {
	if !reflect.DeepEqual(m.Config, base.Config) {
		return m, fmt.Errorf("%w: its config.json is not that of the model of the round", errInvalid)
	}
	moved := copied.Model{Config: base.Config, Tensors: map[string]*tensor.Tensor{}}
	for name, t := range base.Tensors {
		x, ok := m.Tensors[name]
		if !ok || !x.Shape.Equal(t.Shape) {
			return m, fmt.Errorf("%w: tensor %s is not there, or has another shape than in the model of the round",
				errInvalid, name)
		}
		y := tensor.New(t.Shape)
		for i, from := range t.F32() {
			y.F32()[i] = float32(float64(from) + (float64(x.F32()[i])-float64(from))/float64(parts))
		}
		moved.Tensors[name] = y
	}
	return moved, nil
}
