package registry

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// A rate is measured, not believed. A participant asks for a measurement; the beacon of a later block seeds a program
// (compute/gauge) that could not be run before; its duration is the time between that block and the one with the
// answer. The answer binds the participant to the result of every segment without showing any. Then another beacon
// draws some segments and some verifiers that run them again and seal their results; only then the participant shows
// its own, so that no checker can copy. The majority of the checkers decides: one alone can neither give a rate nor
// withhold it.

// Segments of a measurement, how many of them are run again, and the most checkers.
const (
	Segments = 16
	Samples  = 2
	Checkers = 3
)

// MaxSteps of a segment.
const MaxSteps = 1 << 20

// StepFlops are the floating-point operations of one step: a product of two square matrices of this side.
const (
	MeasureSide = 256
	StepFlops   = 2 * MeasureSide * MeasureSide * MeasureSide
)

// Measurement is the state of the measurement of one participant.
type Measurement struct {
	ID     string       `cbor:"1,keyasint"`
	Steps  uint32       `cbor:"2,keyasint"`  // of every segment, as the participant wants it
	Since  int64        `cbor:"3,keyasint"`  // height of the last move
	Seed   canon.Digest `cbor:"4,keyasint"`  // of the program; zero until it is drawn
	Began  int64        `cbor:"5,keyasint"`  // time of the block that drew it, in milliseconds since 1970
	Root   canon.Digest `cbor:"6,keyasint"`  // binds to the results of all segments; zero until the answer
	Took   int64        `cbor:"7,keyasint"`  // milliseconds
	Picks  []uint32     `cbor:"8,keyasint"`  // segments that are run again; none until they are drawn
	Checks []Checked    `cbor:"9,keyasint"`  // its checkers
	Silent []string     `cbor:"11,keyasint"` // checkers that did not answer in time
}

// Checked is the result of one checker of a measurement.
type Checked struct {
	By     string       `cbor:"1,keyasint"`
	Sample canon.Digest `cbor:"2,keyasint"` // see Sample; zero until it answers
}

// Sample binds a checker to the results of the segments that it ran again, without showing them to another.
func (m Measurement) Sample(by string, results []canon.Digest) canon.Digest {
	parts := [][]byte{[]byte(m.ID), []byte(by), m.Seed[:]}
	for _, r := range results {
		parts = append(parts, r[:])
	}
	return canon.Sum("starling/measure/sample/1", parts...)
}

// Owes reports whether a checker has not answered.
func (m Measurement) Owes(id string) bool {
	return slices.Contains(m.Checks, Checked{By: id})
}

// Checked reports whether every checker has answered.
func (m Measurement) Checked() bool {
	return len(m.Checks) > 0 && !slices.ContainsFunc(m.Checks, func(c Checked) bool { return c.Sample.IsZero() })
}

// Outcome of a measurement.
type Outcome struct {
	Rate uint64 // operations a second; 0: not measured
	Why  string // it was not
}

// Why a measurement ends without a rate. They are stable.
const (
	WhyNoAnswer  = "no_answer"  // the participant did not answer in time
	WhyNoChecker = "no_checker" // no verifier was available to check it
	WhyNotOpened = "not_opened" // the participant did not show its results in time
	WhyDisagree  = "disagree"   // at least half of the checkers found other results
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

// Check takes the sealed result of a checker.
func (m Measurement) Check(from string, result canon.Digest, height int64) (Measurement, error) {
	switch {
	case !m.Owes(from):
		return m, fmt.Errorf("%w: %s does not check it, or has", ErrMeasure, from)
	case result.IsZero():
		return m, fmt.Errorf("%w: a result without a digest", ErrMeasure)
	}
	m.Checks = slices.Clone(m.Checks)
	m.Checks[slices.Index(m.Checks, Checked{By: from})].Sample = result
	if m.Checked() {
		m.Since = height
	}
	return m, nil
}

// Open takes the results that the participant shows, and ends the measurement.
func (m Measurement) Open(results []canon.Digest) (Outcome, error) {
	switch {
	case !m.Checked():
		return Outcome{}, fmt.Errorf("%w: not everybody who checks it has", ErrMeasure)
	case len(results) != Segments || Root(m.ID, m.Seed, results) != m.Root:
		return Outcome{}, fmt.Errorf("%w: these are not the results of the answer", ErrMeasure)
	}
	var picked []canon.Digest
	for _, i := range m.Picks {
		picked = append(picked, results[i])
	}
	agree := 0
	for _, c := range m.Checks {
		if c.Sample == m.Sample(c.By, picked) {
			agree++
		}
	}
	if 2*agree <= len(m.Checks) {
		return Outcome{Why: WhyDisagree}, nil
	}
	return Outcome{Rate: m.rate()}, nil
}

// rate is a lower bound, since the time between two blocks includes their delays.
func (m Measurement) rate() uint64 { return RateOf(m.Steps, m.Took) }

// RateOf is the rate of a machine in operations a second that took some milliseconds, at least one, for all segments,
// each of a number of steps.
func RateOf(steps uint32, millis int64) uint64 {
	return uint64(steps) * Segments * StepFlops * 1000 / uint64(millis) // below 2^60, as MaxSteps is 2^20
}

// Draw returns at most n verifiers to check a measurement, none of except, drawn with a seed.
type Draw func(seed canon.Digest, n int, except []string) ([]string, error)

// Tick moves a measurement forward at the end of a block: it draws the program, then the samples and the checkers, and
// ends a measurement that waited too long. It returns checkers that were silent, and draws others in their place; if
// there are none, the checkers that answered decide.
func (m Measurement) Tick(params Params, draw Draw, beacon canon.Digest, height,
	at int64) (after Measurement, silent []string, end *Outcome, err error) {
	late := height > m.Since+params.MeasureBlocks
	switch {
	case beacon.IsZero():
	case m.Seed.IsZero() && height > m.Since:
		m.Seed, m.Began, m.Since = canon.Sum("starling/measure/seed/1", beacon[:], []byte(m.ID)), at, height
	case m.Root.IsZero() && late:
		return m, nil, &Outcome{Why: WhyNoAnswer}, nil
	case m.Root.IsZero():
	case m.Checked() && late:
		return m, nil, &Outcome{Why: WhyNotOpened}, nil
	case m.Checked():
	case len(m.Checks) == 0 && height > m.Since || len(m.Checks) > 0 && late:
		return m.checkers(draw, beacon, height, late)
	}
	return m, nil, nil, nil
}

// checkers draws the checkers of a measurement, or others for those that were silent.
func (m Measurement) checkers(draw Draw, beacon canon.Digest, height int64,
	late bool) (after Measurement, silent []string, end *Outcome, err error) {
	begun := len(m.Checks) > 0
	var said []Checked
	beside := append([]string{m.ID}, m.Silent...)
	for _, c := range m.Checks {
		beside = append(beside, c.By)
		if c.Sample.IsZero() {
			silent = append(silent, c.By)
		} else {
			said = append(said, c)
		}
	}
	seed := audit.Seed(beacon, "measure", m.ID, 0, 0, uint32(len(m.Silent)))
	more, err := draw(seed, Checkers-len(said), beside)
	if err != nil {
		return m, nil, nil, err
	}
	if m.Checks = said; len(more) == 0 {
		switch {
		case len(said) == 0 && (begun || late), len(said) == 1:
			return m, silent, &Outcome{Why: WhyNoChecker}, nil // one of several decides nothing
		case len(said) > 0:
			m.Since = height
		}
		return m, silent, nil, nil
	}
	for _, id := range more {
		m.Checks = append(m.Checks, Checked{By: id})
	}
	if len(m.Picks) == 0 {
		first := audit.Pick(beacon, "measure/segment", m.ID, 0, 0, 0, Segments)
		next := 1 + audit.Pick(beacon, "measure/segment", m.ID, 0, 0, 1, Segments-1)
		m.Picks = []uint32{uint32(first), uint32((first + next) % Segments)}
	}
	m.Silent, m.Since = append(slices.Clip(m.Silent), silent...), height
	return m, silent, nil, nil
}

// Rated gives a participant the rate of a measurement.
func (p Participant) Rated(rate uint64, height int64) Participant {
	p.Rate, p.RatedAt = rate, height
	return p
}
