package learner

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os/exec"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/torchtest"
)

// listed are examples as the script reads them.
func (d Data) listed() map[string]any {
	var x [][]int32
	var y []int
	for _, e := range d {
		x, y = append(x, e.Pixels[:]), append(y, e.Digit)
	}
	return map[string]any{"x": x, "y": y}
}

// Both methods learn as well as a script does with PyTorch, which sends variates as the paper has it. With variates
// owners that differ much learn better.
func TestMethodsOfPyTorch(t *testing.T) {
	s := Size{Owners: 10, Examples: 400, Rounds: 12}
	got, err := Methods(context.Background(), s, func(m Method) { t.Logf("%+v", m) })
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	if plain, steered := got[0].Accuracy, got[1].Accuracy; steered < plain+0.02 {
		t.Errorf("owners that differ much: %v with variates, %v without", steered, plain)
	}
	python := torchtest.Python(t)
	m, err := ofBatch(1, batch)
	if err != nil {
		t.Fatal(err)
	}
	var weights [][]float32
	var shapes [][]int
	for _, w := range m.Weights {
		weights, shapes = append(weights, w.F32()), append(shapes, w.Shape.Dims)
	}
	var jobs []map[string]any
	for _, x := range got {
		var owners []map[string]any
		for _, d := range Owners(x.Dirichlet, s) {
			owners = append(owners, d.listed())
		}
		jobs = append(jobs, map[string]any{"weights": weights, "shapes": shapes, "owners": owners, "rounds": s.Rounds,
			"steps": steps, "batch": batch, "rate": rate, "scaffold": x.Name == "scaffold",
			"test": Drawn(1<<20, 1000).listed()})
	}
	text, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	inputs.Of(t, "testdata")
	cmd := exec.Command(python, "-I", "testdata/methods.py")
	cmd.Stdin = bytes.NewReader(text)
	said, err := cmd.Output()
	var want []float64
	if err == nil {
		err = json.Unmarshal(said, &want)
	}
	if err != nil || len(want) != len(got) {
		t.Fatal(want, err)
	}
	for i, x := range got {
		t.Logf("%+v, PyTorch %.4f", x, want[i])
		if math.Abs(x.Accuracy-want[i]) > 0.02 {
			t.Errorf("%+v, and PyTorch has %v", x, want[i])
		}
	}
}
