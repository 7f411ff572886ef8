package registry

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// A rate is measured, not believed. A participant asks for it; the beacon of a later block seeds a program (compute/gauge)
// that nobody could run before; the time between that block and the one with the answer is what it took. The answer binds
// the participant to the result of every segment without showing any. Then another beacon draws a segment and somebody to
// run it again, who says what came out; and only then the participant shows its results, so that nothing can be copied.

// Segments of a measurement.
const Segments = 16

// MaxSteps of a segment.
const MaxSteps = 1 << 20

// StepFlops are the floating-point operations of one step: a product of two square matrices of this side.
const (
	MeasureSide = 256
	StepFlops   = 2 * MeasureSide * MeasureSide * MeasureSide
)

// Measurement is where the measurement of one participant stands.
type Measurement struct {
	ID      string       `cbor:"1,keyasint"`
	Steps   uint32       `cbor:"2,keyasint"`  // of every segment, as the participant wants it
	Since   int64        `cbor:"3,keyasint"`  // height of the last move
	Seed    canon.Digest `cbor:"4,keyasint"`  // of the program; zero until it is drawn
	Began   int64        `cbor:"5,keyasint"`  // time of the block that drew it, in milliseconds since 1970
	Root    canon.Digest `cbor:"6,keyasint"`  // binds to the results of all segments; zero until the answer
	Took    int64        `cbor:"7,keyasint"`  // milliseconds
	Checker string       `cbor:"8,keyasint"`  // who runs Segment again; none until it is drawn
	Segment uint32       `cbor:"9,keyasint"`  // of the sample
	Result  canon.Digest `cbor:"10,keyasint"` // what the checker found; zero until it says
	Silent  []string     `cbor:"11,keyasint"` // checkers that said nothing in time
}

// Outcome of a measurement.
type Outcome struct {
	Rate uint64 // operations a second; 0: not measured
	Why  string // it was not
}

// Why a measurement ends without a rate. They are stable.
const (
	WhyNoAnswer  = "no_answer"  // the participant did not answer in time
	WhyNoChecker = "no_checker" // nobody was there to check it
	WhyNotOpened = "not_opened" // the participant did not show its results in time
	WhyDisagree  = "disagree"   // what the checker found is something else
)

// Ask begins a measurement.
func Ask(id string, steps uint32, height int64) (Measurement, error) {
	if id == "" || steps < 1 || steps > MaxSteps {
		return Measurement{}, fmt.Errorf("%w: %d steps, wanted 1 to %d", ErrMeasure, steps, MaxSteps)
	}
	return Measurement{ID: id, Steps: steps, Since: height}, nil
}

// Root binds to the results of the segments of a measurement.
func Root(id string, seed canon.Digest, results []canon.Digest) canon.Digest {
	parts := [][]byte{[]byte(id), seed[:]}
	for _, r := range results {
		parts = append(parts, r[:])
	}
	return canon.Sum("starling/measure/1", parts...)
}

// Answer takes the participant's answer in a block of a time, in milliseconds since 1970.
func (m Measurement) Answer(root canon.Digest, height, at int64) (Measurement, error) {
	switch {
	case m.Seed.IsZero():
		return m, fmt.Errorf("%w: the program is not drawn yet", ErrMeasure)
	case !m.Root.IsZero():
		return m, fmt.Errorf("%w: it is answered", ErrMeasure)
	case root.IsZero():
		return m, fmt.Errorf("%w: an answer without a digest", ErrMeasure)
	}
	m.Root, m.Took, m.Since = root, max(1, at-m.Began), height
	return m, nil
}

// Check takes what the checker found.
func (m Measurement) Check(from string, result canon.Digest, height int64) (Measurement, error) {
	switch {
	case m.Checker != from:
		return m, fmt.Errorf("%w: %s does not check it", ErrMeasure, from)
	case !m.Result.IsZero() || result.IsZero():
		return m, fmt.Errorf("%w: it is checked, or the result has no digest", ErrMeasure)
	}
	m.Result, m.Since = result, height
	return m, nil
}

// Open takes the results that the participant shows, and ends the measurement.
func (m Measurement) Open(results []canon.Digest) (Outcome, error) {
	switch {
	case m.Result.IsZero():
		return Outcome{}, fmt.Errorf("%w: nobody has checked it yet", ErrMeasure)
	case len(results) != Segments || Root(m.ID, m.Seed, results) != m.Root:
		return Outcome{}, fmt.Errorf("%w: these are not the results of the answer", ErrMeasure)
	case results[m.Segment] != m.Result:
		return Outcome{Why: WhyDisagree}, nil
	}
	return Outcome{Rate: m.rate()}, nil
}

// rate is what the time between two blocks shows at least.
func (m Measurement) rate() uint64 {
	return uint64(m.Steps) * Segments * StepFlops * 1000 / uint64(m.Took) // below 2^60, as MaxSteps is 2^20
}

// Tick moves a measurement at the end of a block: it draws the program, then the sample and who checks it among the
// candidates, and ends what waited too long. A checker that was silent is returned, and another one drawn.
func (m Measurement) Tick(params Params, candidates []string, beacon canon.Digest, height, at int64) (after Measurement, silent string, end *Outcome) {
	late := height > m.Since+params.MeasureBlocks
	switch {
	case beacon.IsZero():
	case m.Seed.IsZero() && height > m.Since:
		m.Seed, m.Began, m.Since = canon.Sum("starling/measure/seed/1", beacon[:], []byte(m.ID)), at, height
	case m.Root.IsZero() && late:
		return m, "", &Outcome{Why: WhyNoAnswer}
	case m.Root.IsZero():
	case !m.Result.IsZero() && late:
		return m, "", &Outcome{Why: WhyNotOpened}
	case !m.Result.IsZero():
	case m.Checker == "" && height > m.Since || m.Checker != "" && late:
		if m.Checker != "" {
			silent = m.Checker
			m.Silent = append(slices.Clip(m.Silent), silent)
		}
		pool := slices.DeleteFunc(slices.Clone(candidates), func(id string) bool { return id == m.ID || slices.Contains(m.Silent, id) })
		if len(pool) == 0 {
			if m.Checker != "" || late {
				return m, silent, &Outcome{Why: WhyNoChecker}
			}
			return m, "", nil
		}
		m.Checker = pool[audit.Pick(beacon, "measure", m.ID, 0, 0, uint32(len(m.Silent)), len(pool))]
		m.Segment = uint32(audit.Pick(beacon, "measure/segment", m.ID, 0, 0, uint32(len(m.Silent)), Segments))
		m.Since = height
	}
	return m, silent, nil
}

// Rated gives a participant the rate of a measurement.
func (p Participant) Rated(rate uint64, height int64) Participant {
	p.Rate, p.RatedAt = rate, height
	return p
}
