package rundir

import (
	"fmt"
	"maps"
	"math"
)

// Rise says that the loss at the end is far above that at the start: by half of its size, and by one. It is the eval
// loss, or the loss in training when nothing is held out; "" if it is not. The loss of rewards may be below 0.
func Rise(metrics []Metric) string {
	what := "eval loss"
	first, last, _ := Evaluations(metrics)
	if first == 0 && last == 0 {
		what = "loss"
		for _, m := range metrics {
			if m.Kind == "round" && m.Round > 0 {
				if last = m.Loss; first == 0 {
					first = m.Loss
				}
			}
		}
	}
	if last < first+max(1, math.Abs(first)/2) {
		return ""
	}
	return fmt.Sprintf("the %s rose from %.3f to %.3f", what, first, last)
}

// Evaluations returns the first and the last measured eval loss, 0 when nothing is held out, and the last value of
// everything else that was measured: after the last round no answers are drawn.
func Evaluations(metrics []Metric) (first, last float64, measured map[string]float64) {
	seen := false
	for _, m := range metrics {
		if m.EvalLoss != nil {
			if !seen {
				first, seen = *m.EvalLoss, true
			}
			before := measured
			last, measured = *m.EvalLoss, maps.Clone(m.Measured)
			for name, x := range before {
				if _, again := measured[name]; !again && measured != nil {
					measured[name] = x
				}
			}
		}
	}
	return first, last, measured
}
