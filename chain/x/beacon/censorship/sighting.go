package censorship

import (
	"cmp"
	"encoding/binary"
	"slices"

	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/starling-network/starling/canon"
)

// Limits of the sightings in a vote.
const (
	MaxSightings = 16  // in a vote
	maxJob       = 128 // bytes of the name of a job
)

// Sighting reports that the pool of a validator holds the move that a dispute waits for, as the next transaction of its
// sender. It names the move and not the transaction, so that it is void as soon as the move is made or the sender's
// sequence increases.
type Sighting struct {
	Job      string `cbor:"1,keyasint"`
	Round    uint32 `cbor:"2,keyasint"`
	Unit     uint32 `cbor:"3,keyasint"`
	Attempt  uint32 `cbor:"4,keyasint"`
	Ply      uint32 `cbor:"5,keyasint"` // moves that both parties have made
	Sequence uint64 `cbor:"6,keyasint"` // of the sender's account
}

func (s Sighting) compare(o Sighting) int {
	return cmp.Or(cmp.Compare(s.Job, o.Job), cmp.Compare(s.Round, o.Round), cmp.Compare(s.Unit, o.Unit),
		cmp.Compare(s.Attempt, o.Attempt),
		cmp.Compare(s.Ply, o.Ply), cmp.Compare(s.Sequence, o.Sequence))
}

// Drawn returns at most most sightings, chosen by a hash of the height. Validators with the same sightings choose the
// same ones, and other ones at each height.
func Drawn(height int64, all []Sighting, most int) []Sighting {
	number := binary.LittleEndian.AppendUint64(nil, uint64(height))
	lot := func(s Sighting) canon.Digest {
		return canon.Sum("starling/sighting/1", number, canon.MustMarshal(s))
	}
	type drawn struct {
		lot canon.Digest
		s   Sighting
	}
	var list []drawn
	for _, s := range all {
		if len(s.Job) <= maxJob {
			list = append(list, drawn{lot(s), s})
		}
	}
	slices.SortFunc(list, func(a, b drawn) int { return slices.Compare(a.lot[:], b.lot[:]) })
	var chosen []Sighting
	for _, d := range list[:min(len(list), most)] {
		chosen = append(chosen, d.s)
	}
	return chosen
}

// Spoken returns the sightings in the ballot of a height, sorted.
func Spoken(height int64, all []Sighting) []Sighting {
	slices.SortFunc(all, Sighting.compare)
	chosen := Drawn(height, slices.CompactFunc(all, func(a, b Sighting) bool { return a == b }), MaxSightings)
	slices.SortFunc(chosen, Sighting.compare)
	return chosen
}

// Fit reports whether the sightings of a ballot keep the limits: at most MaxSightings, distinct and sorted.
func Fit(seen []Sighting) bool {
	for i, s := range seen {
		if len(s.Job) > maxJob || i > 0 && seen[i-1].compare(s) >= 0 {
			return false
		}
	}
	return len(seen) <= MaxSightings
}

// Vote holds the sightings of one validator.
type Vote struct {
	Power int64
	Seen  []Sighting
}

// Tally returns the sightings of validators with more than two thirds of the power, sorted.
func Tally(votes []Vote, powers []abci.Validator) (seen []Sighting) {
	var whole int64
	for _, p := range powers {
		whole += p.Power
	}
	power := map[Sighting]int64{}
	for _, v := range votes {
		if !Fit(v.Seen) {
			continue
		}
		for _, s := range v.Seen {
			if power[s] += v.Power; power[s] > whole/3*2+whole%3*2/3 &&
				power[s]-v.Power <= whole/3*2+whole%3*2/3 {
				seen = append(seen, s)
			}
		}
	}
	slices.SortFunc(seen, Sighting.compare)
	return seen
}
