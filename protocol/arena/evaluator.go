package arena

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
)

// MinBond is the least bond of an evaluator, in uzen. silencePPM is the part of it that a drawn evaluator loses which
// seals no report, or does not open it.
const (
	MinBond    = million
	silencePPM = 100_000
)

// MaxEvaluators is the most evaluators of a network. MaxPanels is in how many panels one is before it is drawn for no
// other: hosts set the fee and the time, and contests that are more than an evaluator can do would take its bond.
const (
	MaxEvaluators = 1_000
	MaxPanels     = 3
)

// Evaluator is an account that evaluates models for fees. It is a registered verifier, and is drawn in proportion to
// the stake that it has there.
type Evaluator struct {
	Account string `cbor:"1,keyasint"`
	Bond    uint64 `cbor:"2,keyasint"`           // uzen
	Ready   bool   `cbor:"3,keyasint"`           // may be drawn
	Panels  uint32 `cbor:"4,keyasint,omitempty"` // in which it is
}

// Free reports whether an evaluator may be drawn, by its bond and its panels.
func (e Evaluator) Free() bool { return e.Ready && e.Bond >= MinBond && e.Panels < MaxPanels }

// Offer makes an account an evaluator, or ready again, with more uzen in its bond.
func (e Evaluator) Offer(more uint64) (Evaluator, error) {
	if more >= MaxAmount || e.Bond+more < MinBond || e.Bond+more >= MaxAmount {
		return e, fmt.Errorf("%w: a bond of %d uzen, wanted %d or more, and less than 2^53", ErrEvaluator, e.Bond+more,
			uint64(MinBond))
	}
	e.Bond += more
	e.Ready = true
	return e, nil
}

// Retire returns the bond of an evaluator that is in no panel.
func (e Evaluator) Retire() (uint64, error) {
	switch {
	case e.Account == "":
		return 0, ErrEvaluator
	case e.Panels > 0:
		return 0, fmt.Errorf("%w: of %d contests", ErrBusy, e.Panels)
	}
	return e.Bond, nil
}

// Release takes an evaluator out of a panel. One that was silent is not drawn again before it offers again, and loses a
// part of its bond.
func (e Evaluator) Release(silent bool) (_ Evaluator, lost uint64) {
	e.Panels--
	if !silent {
		return e, 0
	}
	lost = Silence(e.Bond)
	e.Bond -= lost
	e.Ready = false
	return e, lost
}

// Silence is the amount that a drawn account loses of its bond, or of its stake in a committee, if it is silent.
func Silence(bond uint64) uint64 {
	high, low := bits.Mul64(bond, silencePPM)
	lost, _ := bits.Div64(high, low, million)
	return lost
}

// Candidate is an account that may be drawn, with its stake.
type Candidate struct {
	Account string
	Stake   uint64
}

// draw draws a panel by a seed, without the host, the entrants and the members of earlier panels, in proportion to the
// stake. It is shorter than wanted if there are too few candidates.
func (c Contest) draw(from []Candidate, entrants []Entry, seed canon.Digest) (panel []string) {
	var left []Candidate
	for _, f := range from {
		if f.Account != c.Host && !slices.Contains(c.Spent, f.Account) &&
			!slices.ContainsFunc(entrants, func(e Entry) bool { return e.Account == f.Account }) {
			left = append(left, f)
		}
	}
	return Draw("starling/arena-panel/1", left, int(c.Terms.Panel), seed, c.ID)
}

// Draw draws accounts by a seed, in proportion to their stake, for a purpose and a number of it. They are fewer than
// wanted if there are too few candidates.
func Draw(purpose string, from []Candidate, wanted int, seed canon.Digest, number uint64) (drawn []string) {
	left := slices.DeleteFunc(slices.Clone(from), func(c Candidate) bool { return c.Stake == 0 })
	slices.SortFunc(left, func(a, b Candidate) int { return strings.Compare(a.Account, b.Account) })
	total := uint64(0)
	for i := range left {
		left[i].Stake = min(left[i].Stake, MaxAmount) // the sum of 1,000 fits
		total += left[i].Stake
	}
	of := binary.BigEndian.AppendUint64(nil, number)
	for n := uint64(0); len(drawn) < wanted && total > 0; n++ {
		d := canon.Sum(purpose, seed[:], of, binary.BigEndian.AppendUint64(nil, n))
		at, _ := bits.Mul64(binary.BigEndian.Uint64(d[:8]), total)
		for i, f := range left {
			if at < f.Stake {
				drawn = append(drawn, f.Account)
				total -= f.Stake
				left = slices.Delete(left, i, i+1)
				break
			}
			at -= f.Stake
		}
	}
	return drawn
}
