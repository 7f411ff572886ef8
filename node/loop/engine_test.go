package loop

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// code is the code of an error for clients.
func code(err error) string {
	if known := (*failure.Error)(nil); errors.As(err, &known) {
		return known.Code
	}
	return ""
}

// A step whose batch is not whole, because a part of it was refused, is refused once, in both engines: no weight moves
// by the other parts. The whole batch can be sent after it.
func TestGradientsLost(t *testing.T) {
	loss, large := tinker.Loss{Name: tinker.CrossEntropy}, tinker.Loss{Name: tinker.ImportanceSampling}
	tr := begun(t, 4)
	e := &Engine{Trainer: tr, ctx: t.Context(), options: Options{Shape: shape}, models: map[string]*model{"m": {}}}
	infinite := batch(0)
	for range infinite[0].Tokens {
		infinite[0].Sampled, infinite[0].Advantages = append(infinite[0].Sampled, -1e4), append(infinite[0].Advantages, 1)
	}
	for name, c := range map[string]struct {
		engine tinker.Engine
		data   []tinker.Datum
		loss   tinker.Loss
		code   string
	}{"network": {e, append(batch(0), batch(1)...), loss, "BATCH_TOO_LARGE"},
		"machine": {begun(t, 4), infinite[:1], large, "NOT_FINITE"}} {
		t.Run(name, func(t *testing.T) {
			first, err := c.engine.Backward("m", batch(0), loss)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.engine.Backward("m", c.data, c.loss); code(err) != c.code {
				t.Fatalf("the second part is answered with %v", err)
			}
			if _, err := c.engine.Step("m", rate); code(err) != "GRADIENTS_LOST" {
				t.Errorf("the step is answered with %v", err)
			}
			if first.Later != nil {
				if _, err := first.Later(); code(err) != "GRADIENTS_LOST" {
					t.Errorf("the first part is answered with %v", err)
				}
				if _, err := c.engine.Step("m", rate); code(err) != "NO_GRADIENTS" {
					t.Errorf("the next step is answered with %v", err)
				}
			}
		})
	}
}
