package sim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/starling-network/starling/node/simulate"
)

// A sweep over seeds ends with the settings that are best in the mean, and the deviation between seeds.
func TestSpreads(t *testing.T) {
	var done []variant
	for _, x := range []struct {
		steps, seed string
		loss        float64
	}{{"10", "1", 3}, {"10", "2", 5}, {"20", "1", 2}, {"20", "2", 2}, {"40", "1", 9}} {
		s := &simulate.Simulation{}
		s.FinalEvalLoss = x.loss
		done = append(done, variant{Settings: map[string]string{"a.steps": x.steps, "seed": x.seed}, Simulation: s})
	}
	done[4].Halted = "no workers"
	var out bytes.Buffer
	if err := printSpreads(&out, spreads(done, []string{"a.steps=10,20,40", "seed=1,2"})); err != nil {
		t.Fatal(err)
	}
	want := "SETTINGS    SEEDS  MEAN    SPREAD\na.steps=20  2      2.0000  0.0000\na.steps=10  2      4.0000  1.4142\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s", out.String())
	}
}
