package arena

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Unit is the number of units of a loss in one nat.
const Unit = 1 << 20

// Status of an entry in a report.
type Status uint8

// Statuses of entries.
const (
	Placed     Status = iota + 1 // it has losses and, if they are small enough, a place
	Unrevealed                   // its entrant did not reveal it
	Absent                       // its files cannot be got, or are not those of its digest
	Invalid                      // its files are no model that the contest takes
	Copy                         // it is a copy of an earlier entry, or of the base
)

// String is the name of a status.
func (s Status) String() string {
	return [...]string{"unknown", "placed", "unrevealed", "absent", "invalid", "copy", "unknown"}[min(int(s), 6)]
}

// Judged is what an evaluator found about an entry.
type Judged struct {
	Status Status       `cbor:"1,keyasint"`
	Of     uint32       `cbor:"2,keyasint,omitempty"` // of a copy: the entry; 0: the base of the contest
	Losses canon.Digest `cbor:"3,keyasint,omitzero"`  // of a placed one: digest of its loss on each example
	Mean   uint64       `cbor:"4,keyasint,omitempty"` // of its losses, rounded down, in units of which a nat has 2^20
	// place of the group of entries that it is in, from 1: the first of a group is better than each of the next group by
	// a duel, and no worse than each of its own; 0: its loss is too large, or it is not placed
	Group uint32 `cbor:"5,keyasint,omitempty"`
}

// Report is what an evaluator found.
type Report struct {
	Absent  bool     `cbor:"1,keyasint,omitempty"` // the hidden set cannot be got, or is not that of its root
	Entries []Judged `cbor:"2,keyasint,omitempty"` // by their numbers
	Base    uint64   `cbor:"3,keyasint,omitempty"` // of a round: mean loss of its model, as that of an entry
}

// DecodeReport reads the canonical bytes of a report.
func DecodeReport(b []byte) (r Report, err error) {
	if len(b) > MaxReport {
		return r, fmt.Errorf("%w: of %d bytes, at most %d", ErrReport, len(b), MaxReport)
	}
	if err := canon.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrReport, err)
	}
	return r, nil
}

// Digest of a report.
func (r Report) Digest() canon.Digest { return canon.Hash("starling/arena-report/1", r) }

// Seal binds an evaluator to a report before the seed of the duels is known: to all but the groups. The account is in
// it, so that no evaluator can send the seal of another.
func (r Report) Seal(contest uint64, account string, salt canon.Digest) canon.Digest {
	sealed := Report{Absent: r.Absent, Entries: make([]Judged, len(r.Entries)), Base: r.Base}
	for i, e := range r.Entries {
		e.Group = 0
		sealed.Entries[i] = e
	}
	return canon.Hash("starling/arena-seal/1", struct {
		Contest uint64       `cbor:"1,keyasint"`
		Account string       `cbor:"2,keyasint"`
		Salt    canon.Digest `cbor:"3,keyasint"`
		Report  Report       `cbor:"4,keyasint"`
	}{contest, account, salt, sealed})
}

// Check reports whether a report can be one about entries: the statuses that the network knows are right, and the
// groups agree with the means.
func (c Contest) Check(r Report, entries []Entry) error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrReport, fmt.Sprintf(format, args...))
	}
	if r.Absent {
		if len(r.Entries) > 0 || r.Base > 0 {
			return reject("%d entries without the hidden set", len(r.Entries))
		}
		return nil
	}
	if len(r.Entries) != len(entries) || c.Committee == 0 && r.Base > 0 {
		return reject("%d entries, wanted %d", len(r.Entries), len(entries))
	}
	for i, j := range r.Entries {
		placed := j.Status == Placed
		unplaced := c.TooLarge(j.Mean) || c.Committee > 0 // a round has no places
		switch {
		case j.Status < Placed || j.Status > Copy || (j.Status == Unrevealed) != entries[i].Model.IsZero():
			return reject("entry %d is %s", i+1, j.Status)
		case c.Committee > 0 && max(r.Base, j.Mean) > mostLoss:
			return reject("a loss of entry %d, or of the base, is more than %d", i+1, mostLoss)
		case placed == j.Losses.IsZero() || !placed && (j.Mean > 0 || j.Group > 0):
			return reject("entry %d is %s, with losses", i+1, j.Status)
		case placed && unplaced == (j.Group > 0):
			return reject("entry %d has the group %d and the mean %d", i+1, j.Group, j.Mean)
		case j.Status != Copy && j.Of > 0 || j.Of > uint32(i) || j.Of > 0 && r.Entries[j.Of-1].Status != Placed ||
			j.Status == Copy && (j.Of == 0 && c.Terms.Base.IsZero() || c.Committee > 0):
			return reject("entry %d is a copy of %d", i+1, j.Of)
		}
	}
	return grouped(r.Ranking())
}

// TooLarge reports whether a mean loss has no place in the contest.
func (c Contest) TooLarge(mean uint64) bool {
	return c.Terms.Worst > 0 && mean > c.Terms.Worst*Unit/million
}

// Ranked is a placed entry.
type Ranked struct {
	Number uint32
	Judged
}

// Ranking lists the placed entries whose losses are small enough, the best mean first, and the earlier commitment
// before a later one with the same.
func (r Report) Ranking() (list []Ranked) {
	for i, j := range r.Entries {
		if j.Group > 0 {
			list = append(list, Ranked{uint32(i + 1), j})
		}
	}
	order(list)
	return list
}

// grouped checks that the groups of a ranking count from 1 without gaps.
func grouped(list []Ranked) error {
	last := uint32(0)
	for _, r := range list {
		if r.Group != last && r.Group != last+1 || r.Group == 0 {
			return fmt.Errorf("%w: entry %d is in group %d after group %d", ErrReport, r.Number, r.Group, last)
		}
		last = r.Group
	}
	return nil
}

// Opinion is the report of a member of the panel of a contest.
type Opinion struct {
	Account string       `cbor:"1,keyasint"`
	Sealed  canon.Digest `cbor:"2,keyasint"`
	Report  *Report      `cbor:"3,keyasint,omitempty"` // nil: not opened
}
