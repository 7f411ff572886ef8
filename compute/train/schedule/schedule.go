// Package schedule is the learning rate of each step of a job, and the corrections of the bias of moments. It trains
// nothing.
package schedule

import "github.com/starling-network/starling/compute/detmath"

// Rate is the learning rate schedule over the inner steps of the whole job.
type Rate struct {
	Kind   string  `cbor:"1,keyasint"` // Cosine, Linear or Constant
	Peak   float64 `cbor:"2,keyasint"`
	Warmup uint32  `cbor:"3,keyasint"` // steps of linear increase to Peak
	Floor  float64 `cbor:"4,keyasint"` // share of Peak that all but Constant end at
	// share of all steps, the last ones, in which WSD falls, on a line
	Decay float64 `cbor:"5,keyasint,omitempty"`
}

// Kinds of schedules.
const (
	Cosine   = "cosine"
	Linear   = "linear"
	Constant = "constant"
	WSD      = "wsd" // it stays at the peak, and falls in the last steps (Hu et al. 2024)
)

// At is the learning rate of the global inner step (from 0) out of total.
func (r Rate) At(step, total uint32) float32 {
	if step < r.Warmup {
		return float32(float64(r.Peak*float64(step+1)) / float64(r.Warmup))
	}
	if r.Kind == Constant || total <= r.Warmup+1 {
		return float32(r.Peak)
	}
	if r.Kind == WSD {
		return r.late(step, total)
	}
	const pi = 3.14159265358979323846
	progress := min(float64(step-r.Warmup)/float64(total-r.Warmup-1), 1)
	left := float64(1 - progress) // of the way from Peak to the floor
	if r.Kind == Cosine {
		left = float64(0.5 * (1 + detmath.Cos64(pi*progress)))
	}
	return float32(r.Peak * (r.Floor + float64(left*(1-r.Floor))))
}

// late is At of WSD after the warm-up.
func (r Rate) late(step, total uint32) float32 {
	last := uint32(float64(r.Decay * float64(total)))
	if last = max(1, min(last, total-r.Warmup)); step < total-last {
		return float32(r.Peak)
	}
	left := float64(total-1-step) / float64(last)
	return float32(r.Peak * (r.Floor + float64(left*(1-r.Floor))))
}

// Correction is 1/(1-beta^t), by which the bias of a moment is corrected after t steps.
func Correction(beta float64, t uint32) float32 {
	power := 1.0
	for range t {
		next := power * beta
		if next == power { // and stays it: beta is 1, or the power has nothing left to lose
			break
		}
		power = next
	}
	return float32(1 / (1 - power))
}
