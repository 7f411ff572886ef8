package arena

import (
	"math"
	"slices"
)

// A round of a committee is a contest that only invited accounts enter, about models that are made from its base. The
// loss of an entry is that of the base, moved towards the entry by one part in as many as accounts were invited: as far
// as the entry moves it in the mean of all. Where the terms say so, it counts by the lower of two gains. A round has no
// places and pays nothing by itself: the median of the
// evaluators is the gain of an entry, and protocol/committee pays for gains.

// Outcome is the result of a round for an account that was invited: its gain and its pay, or the reason why it is paid
// nothing.
type Outcome struct {
	Account string `cbor:"1,keyasint"`
	Entry   uint32 `cbor:"2,keyasint,omitempty"` // 0: it entered no model
	Gain    uint64 `cbor:"3,keyasint,omitempty"` // loss of the base less that of the entry, at least 0
	Score   uint64 `cbor:"4,keyasint,omitempty"` // gain in millionths of the largest of the round
	Rating  uint64 `cbor:"5,keyasint,omitempty"` // median of the scores of the last rounds of the account, with this one
	Paid    uint64 `cbor:"6,keyasint,omitempty"` // grains
	Lost    uint64 `cbor:"7,keyasint,omitempty"` // uzen of its stake
	Why     Zero   `cbor:"8,keyasint,omitempty"` // reason why nothing is paid
}

// Zero is the reason why an invited account is paid nothing.
type Zero string

// Reasons.
const (
	Silent     Zero = "it entered no model, or did not reveal it"
	Unscored   Zero = "the round has no scores"
	Unreadable Zero = "most evaluators could not get its model, or could not read it"
	Worse      Zero = "its model does not lower the loss of the model that the round began with"
	Unsteady   Zero = "the median of the scores of its last rounds is 0"
)

// BeginRound begins a round of a committee at a height. The terms are those of a contest, whose amounts the committee
// holds.
func BeginRound(id, committee uint64, host string, invited []string, t Terms, height int64) (Contest, error) {
	t.Most = uint32(len(invited))
	plain := t
	plain.Adjusted = false
	c, err := Create(id, host, plain, height)
	c.Committee, c.Invited, c.Terms = committee, invited, t
	return c, err
}

// scored ends a round by its reports, if more than half of the panel opened one that says the same of the hidden set.
func (c Contest) scored(w World) (Contest, bool) {
	var with []Report
	absent := 0
	for _, o := range w.Opinions {
		switch {
		case o.Report == nil:
		case o.Report.Absent:
			absent++
		default:
			with = append(with, *o.Report)
		}
	}
	switch {
	case 2*absent > len(c.Panel):
		return c.void(Hidden, w), true
	case 2*len(with) > len(c.Panel):
		c.Phase, c.Gains = Paid, Gains(with, len(w.Entries))
		return c, true
	}
	return c, false
}

// Losses are the mean losses of a model on a set: the exact one, and the adjusted one, which does not depend on how
// often the model expects each token (exampleloss.Adjusted).
type Losses struct{ Exact, Adjusted uint64 }

// Lower is the mean loss that a report has of an entry: that of the base less the lower of the two gains of the entry.
// By the exact loss alone a member whose data differ much has a gain by naming some classes often, even where they are
// wrong; by the adjusted loss alone one has it that ruins how often the model expects each token.
func (base Losses) Lower(entry Losses) uint64 {
	exact, adjusted := int64(base.Exact)-int64(entry.Exact), int64(base.Adjusted)-int64(entry.Adjusted)
	return uint64(min(int64(base.Exact)-min(exact, adjusted), mostLoss))
}

// mostLoss is the largest mean loss that a report of a round has, in units of which a nat has 2^20.
const mostLoss = 64 * Unit

// Unread is the gain of an entry that most evaluators could not get or read.
const Unread = math.MaxUint64

// Gains are those of the entries of a round: the median over the reports of the mean loss of the base less that of the
// entry, at least 0. Of an even number of reports the lower of the two in the middle counts. An entry without losses is
// below all others.
func Gains(reports []Report, entries int) []uint64 {
	gains := make([]uint64, entries)
	for i := range gains {
		said := make([]int64, len(reports))
		for k, r := range reports {
			said[k] = r.gain(i)
		}
		slices.Sort(said)
		if m := said[(len(said)-1)/2]; m < 0 {
			gains[i] = Unread
		} else {
			gains[i] = uint64(m)
		}
	}
	return gains
}

// gain of an entry in a report; -1: it has no losses.
func (r Report) gain(i int) int64 {
	if r.Entries[i].Status != Placed {
		return -1
	}
	return int64(r.Base - min(r.Base, r.Entries[i].Mean))
}

// Agreed reports whether a report says what the medians say: of each entry but those whose files its evaluator could
// not get, which are at most half of all.
func (c Contest) Agreed(r Report) bool {
	absent := 0
	for i, g := range c.Gains {
		switch said := r.gain(i); {
		case r.Entries[i].Status == Absent && g != Unread:
			absent++
		case said < 0 != (g == Unread) || said >= 0 && uint64(said) != g:
			return false
		}
	}
	return 2*absent <= len(c.Gains)
}

// Scores are the gains in millionths of the largest; all are 0 if none is above 0.
func Scores(gains []uint64) []uint64 {
	most := uint64(0)
	for _, g := range gains {
		if g != Unread {
			most = max(most, g)
		}
	}
	scores := make([]uint64, len(gains))
	for i, g := range gains {
		if most > 0 && g != Unread {
			scores[i] = g * million / most // at most mostLoss times a million
		}
	}
	return scores
}
