package verifier

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// combineAgain returns the actions for attested rounds whose updates this verifier did not have in time. It asks for
// those of the oldest once more, and reports the first that no member serves. Of the rounds that it reported it
// executes one at a time: those of its units whose updates no member serves. A proactive verifier without a seat
// executes rounds that members reported. One that can execute nothing but what it was drawn for asks for the oldest
// alone. If the attested checkpoint does not follow, the lineage refutes it.
//
// The order in which it executes rounds follows from its seed: a party that keeps the updates of many rounds to itself
// does not know which of them are executed.
func (v *Verifier) combineAgain(s run.State) (actions []role.Action) {
	maps.DeleteFunc(v.doubted, func(round uint32, _ bool) bool { return round < s.Oldest() })
	takesPart := v.part.Seated(s) || v.watches
	if s.Phase == progress.Done || s.Phase == progress.Halted || !s.Rules.Extend(s.Terms) || !takesPart {
		return nil
	}
	if v.again != nil {
		if l, open := s.At(v.again.Base.Round); !open || l.Base != v.again.Base || l.Round >= s.Round {
			actions, v.again = append(actions, role.Stop{Of: v.again.Key()}), nil
		}
	}
	var reported []role.Advance
	asks := true
	for _, l := range s.Open {
		if v.lineage.Combined(l) {
			continue
		}
		a := role.Advance{Base: l.Base, Units: l.Units.Learning(), Closed: l.Closed}
		switch mine, others := v.reported(l); {
		case !v.drawn && (mine || v.watches && others):
			a.Executes = true
			reported = append(reported, a)
		case asks && v.part.Seated(s):
			actions, asks = append(actions, a), false
		}
	}
	return append(actions, v.execute(s, reported)...)
}

// execute returns the first of some rounds in the order of this verifier, unless it executes one already.
func (v *Verifier) execute(s run.State, rounds []role.Advance) []role.Action {
	rounds = slices.DeleteFunc(rounds, func(a role.Advance) bool { return v.lineage.Rests(a) })
	if v.again != nil || len(rounds) == 0 || v.part.Paused() {
		return nil
	}
	next := slices.MinFunc(rounds, func(a, b role.Advance) int {
		x, y := v.lot(s, a.Base.Round), v.lot(s, b.Base.Round)
		return bytes.Compare(x[:], y[:])
	})
	v.again = &next
	return []role.Action{next}
}

// reported reports whether this verifier, or any member, could not fetch an update of a round.
func (v *Verifier) reported(l work.RoundState) (mine, others bool) {
	for _, u := range l.Units.Learning() {
		mine, others = mine || slices.Contains(u.Missing, v.id), others || len(u.Missing) > 0
	}
	return mine, others
}

// lot is the place of a round in the order in which it combines rounds again.
func (v *Verifier) lot(s run.State, round uint32) canon.Digest {
	return canon.Sum("starling/combine/1", v.seed[:], []byte(s.Terms.Job), binary.BigEndian.AppendUint32(nil, round))
}

// combined takes note that a round is combined again, or could not be. One reason is a false unit: the units of the
// round are checked. A pause is no reason.
func (v *Verifier) combined(a role.Action, err error) {
	if v.again == nil || a.Key() != v.again.Key() {
		return
	}
	if err != nil && !v.part.Paused() {
		v.doubted[v.again.Base.Round] = true
	}
	v.again = nil
}
