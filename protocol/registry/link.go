package registry

import (
	"fmt"
	"math/bits"
	"slices"
)

// Link is what one participant measured of another in an epoch: what it fetched from it, how long that took, and how far
// away it is.
type Link struct {
	Bytes  uint64 `cbor:"1,keyasint"`
	Millis uint64 `cbor:"2,keyasint"` // that the transfers took
	RTT    uint32 `cbor:"3,keyasint"` // milliseconds of a round trip, the last reported; 0: not measured
}

// Limits of a report.
const (
	maxReport = 1 << 50 // bytes, and milliseconds
	maxRTT    = 60_000
)

// Report adds what was measured since the last report. No more bytes count than the epoch has room for, which is what the
// reported one committed to serve; the rest is dropped.
func (l Link) Report(more Link, room uint64) (Link, error) {
	if more.Bytes > maxReport || more.Millis > maxReport || more.RTT > maxRTT || more.Bytes > 0 && more.Millis == 0 {
		return l, fmt.Errorf("%w: %d bytes in %d ms, %d ms away", ErrReport, more.Bytes, more.Millis, more.RTT)
	}
	if more.Bytes > 0 {
		counted := min(more.Bytes, room)
		high, low := bits.Mul64(more.Millis, counted)
		took, _ := bits.Div64(high, low, more.Bytes) // counted is at most more.Bytes
		l.Bytes += counted
		l.Millis += max(1, took)
	}
	if more.RTT > 0 {
		l.RTT = more.RTT
	}
	return l, nil
}

// Rate is the measured speed in kbit/s; 0 if nothing was fetched.
func (l Link) Rate() uint64 {
	if l.Millis == 0 {
		return 0
	}
	return l.Bytes * 8 / l.Millis
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

// Throttled reports whether what the peers of a participant measured in an epoch, in kbit/s, shows that it gives less than
// half of the upload that it promised. Too few peers show nothing, and half of them must agree: one cannot accuse alone.
func (p Participant) Throttled(params Params, measured []uint64) bool {
	known := slices.DeleteFunc(slices.Clone(measured), func(v uint64) bool { return v == 0 })
	return p.Tier != NoTier && uint32(len(known)) >= params.Witnesses && Median(known) < p.Hardware.Upload/2
}
