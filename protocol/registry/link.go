package registry

import (
	"fmt"
	"math/bits"
	"slices"
)

// Link is one participant's measurement of another in an epoch: the bytes that it fetched, their speed, and the
// round-trip time.
type Link struct {
	Bytes  uint64 `cbor:"1,keyasint"`
	Millis uint64 `cbor:"2,keyasint"`           // that the timed bytes took; in a report 0: not measured
	RTT    uint32 `cbor:"3,keyasint"`           // milliseconds of a round trip, the last reported; 0: not measured
	Timed  uint64 `cbor:"4,keyasint,omitempty"` // bytes with a known time; not part of a report
}

// Limits of a report.
const (
	MaxReport = 1 << 50 // bytes, and milliseconds
	MaxRTT    = 60_000
)

// Report adds the measurements since the last report: bytes, and, unless that is 0, their time. Bytes count up to
// room, the rest of the bytes that the reported participant had to serve in the epoch; the others are dropped.
func (l Link) Report(more Link, room uint64) (Link, error) {
	if more.Bytes > MaxReport || more.Millis > MaxReport || more.RTT > MaxRTT {
		return l, fmt.Errorf("%w: %d bytes in %d ms, %d ms away", ErrReport, more.Bytes, more.Millis, more.RTT)
	}
	counted := min(more.Bytes, room)
	l.Bytes += counted
	if counted > 0 && more.Millis > 0 {
		high, low := bits.Mul64(more.Millis, counted)
		took, _ := bits.Div64(high, low, more.Bytes) // counted is at most more.Bytes
		l.Timed += counted
		l.Millis += max(1, took)
	}
	if more.RTT > 0 {
		l.RTT = more.RTT
	}
	return l, nil
}

// Rate is the measured speed in kbit/s, at least 1; 0 if none was measured.
func (l Link) Rate() uint64 {
	if l.Timed == 0 || l.Millis == 0 {
		return 0
	}
	return max(1, l.Timed*8/l.Millis)
}

// Median of values that are not zero: of an even number the lower of the two in the middle; 0 of none.
func Median[T uint32 | uint64](values []T) T {
	known := slices.DeleteFunc(slices.Clone(values), func(v T) bool { return v == 0 })
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[(len(known)-1)/2]
}

// Measured is the link of one participant to another.
type Measured struct {
	Of   string `cbor:"1,keyasint"` // account that was measured
	By   string `cbor:"2,keyasint"` // account that measured
	Link `cbor:"3,keyasint"`
}

// Speed is the speed that one peer of a participant measured of it, and the highest that it measured of any other;
// both in kbit/s.
type Speed struct{ Rate, Best uint64 }

// Speeds gathers the measured speeds of every participant, in the order of the links.
func Speeds(links []Measured) map[string][]Speed {
	type top struct {
		of           string // the fastest
		first, other uint64 // its rate, and that of the next
	}
	tops := map[string]top{} // by the account that measured
	for _, l := range links {
		switch t, rate := tops[l.By], l.Rate(); {
		case rate > t.first:
			tops[l.By] = top{l.Of, rate, t.first}
		case rate > t.other:
			t.other = rate
			tops[l.By] = t
		}
	}
	speeds := map[string][]Speed{}
	for _, l := range links {
		if l.Rate() == 0 {
			continue
		}
		t := tops[l.By]
		best := t.first
		if t.of == l.Of {
			best = t.other
		}
		speeds[l.Of] = append(speeds[l.Of], Speed{l.Rate(), best})
	}
	return speeds
}

// Bandwidth is the upload of a participant in kbit/s, as far as it is known: the promised one, or the sum of the
// speeds that peers measured in an epoch if that is less. They fetch from it at the same time.
func (p Participant) Bandwidth(speeds []Speed) uint64 {
	var all uint64
	for _, s := range speeds {
		all += s.Rate
	}
	if all == 0 || p.Hardware.Upload > 0 && p.Hardware.Upload < all {
		return p.Hardware.Upload
	}
	return all
}

// Throttled reports whether the measurements of a participant's peers in an epoch show that it gives less than half of
// its promised upload. They fetch from it at the same time, so each may expect its part of that half. A peer finds it
// slow if it got less from this participant, and not from others: a peer that got no more from any other cannot tell
// whose line is slow. More than half of at least Params.Witnesses peers must find so. It is no proof, and accounts are
// free, so it is shown to the owner and costs nothing.
func (p Participant) Throttled(params Params, speeds []Speed) bool {
	n := uint64(len(speeds))
	if p.Tier == NoTier || n == 0 || n < uint64(params.Witnesses) {
		return false
	}
	part := (p.Hardware.Upload/2 + n - 1) / n // kbit/s
	slow := uint64(0)
	for _, s := range speeds {
		if s.Rate < part && s.Best >= part {
			slow++
		}
	}
	return 2*slow > n
}
