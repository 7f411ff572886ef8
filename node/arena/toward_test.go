package arena

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/model/copied"
	"github.com/starling-network/starling/compute/tensor"
)

// An entry of a round is scored as far as it moves the model in the mean of all: a copy of it does not.
func TestToward(t *testing.T) {
	of := func(values ...float32) copied.Model {
		x := tensor.New(tensor.Make(tensor.Float32, len(values)))
		copy(x.F32(), values)
		return copied.Model{Tensors: map[string]*tensor.Tensor{"w": x}}
	}
	base := of(1, 0.1)
	for _, want := range []struct {
		entry, moved copied.Model
	}{{of(3, 0.1), of(1.5, 0.1)}, {of(1, 0.1), of(1, 0.1)}} {
		got, err := toward(base, want.entry, 4)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range got.Tensors["w"].F32() {
			if x != want.moved.Tensors["w"].F32()[i] {
				t.Errorf("%v", got.Tensors["w"].F32())
			}
		}
	}
	if _, err := toward(base, of(1), 4); !errors.Is(err, errInvalid) {
		t.Error(err)
	}
}
