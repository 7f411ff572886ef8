// Package registrant performs the duties of a participant towards the registry: it sends heartbeats if it committed to
// a tier, has its machine measured, and runs the segments that were drawn for it of other participants' measurements.
//
// It is a step function like the other roles. protocol/registry defines a measurement; the program is compute/gauge,
// which the process that performs the actions runs.
package registrant

import (
	"fmt"
	"maps"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role"
)

// View is the state of the registry after a block.
type View struct {
	Height       int64
	Params       registry.Params
	Self         registry.Participant
	Uptime       *registry.Uptime       // nil: it committed to no tier
	Measurements []registry.Measurement // all in progress
	Busy         bool                   // the machine is in use, and cannot be measured now
	Paused       bool                   // its owner uses it: a measurement of it would find too little
}

// Actions.
type (
	// Beat is a heartbeat in a window of uptime.
	Beat struct{ Window int64 }
	// Ask begins the measurement of its machine, which chooses the number of steps of a segment.
	Ask struct{}
	// Gauge runs segments of the program of a seed, and returns their results.
	Gauge struct {
		Seed         canon.Digest
		Steps        uint32
		First, Count uint32 // segments
	}
	// Answer binds the participant to the results of its measurement.
	Answer struct{ Root canon.Digest }
	// Check sends the sealed results of the drawn segments of another participant: registry.Measurement.Sample.
	Check struct {
		Participant string
		Seed        canon.Digest
		Result      canon.Digest
	}
	// Open shows the results of its measurement.
	Open struct{ Results []canon.Digest }
)

// Key implements role.Action.
func (a Beat) Key() string { return fmt.Sprintf("beat %d", a.Window) }

// Key implements role.Action.
func (Ask) Key() string { return "ask" }

// Key implements role.Action.
func (a Gauge) Key() string {
	return fmt.Sprintf("gauge %s %d+%d", a.Seed, a.First, a.Count)
}

// Key implements role.Action.
func (a Answer) Key() string { return "answer " + a.Root.String() }

// Key implements role.Action.
func (a Check) Key() string { return "check " + a.Seed.String() }

// Key implements role.Action.
func (Open) Key() string { return "open" }

// Registrant follows the registry for one participant.
type Registrant struct {
	id       string
	measures bool // it has its machine measured
	height   int64
	asked    int64 // height at which it last asked to be measured
	pending  role.Pending
	results  map[Gauge][]canon.Digest
	dropped  map[canon.Digest]bool // own measurements that a pause interrupted, by their seed
}

// New returns the registrant of a participant. One that does not measure answers for others all the same.
func New(id string, measures bool) *Registrant {
	return &Registrant{id: id, measures: measures, results: map[Gauge][]canon.Digest{},
		dropped: map[canon.Digest]bool{}}
}

// Block returns the actions that are due after a block.
func (r *Registrant) Block(v View) []role.Action {
	r.height = v.Height
	r.forget(v.Measurements)
	var want []role.Action
	if window := (v.Height + 1) / v.Params.BeatBlocks; v.Uptime != nil && v.Uptime.Last <= window {
		want = append(want, Beat{window})
	}
	own := false
	for _, m := range v.Measurements {
		switch {
		case m.ID == r.id:
			own = true
			if r.drop(m, v.Paused); !r.dropped[m.Seed] {
				want = append(want, r.measured(m)...)
			}
		case m.Owes(r.id):
			want = append(want, r.checked(m))
		}
	}
	// A measurement without a result is tried again, after the longest time that one takes, and so is one that found too
	// little for a place without a stake: the machine may have had other work. A convicted participant needs one to be
	// matched again.
	rested := r.asked == 0 || v.Height > r.asked+4*v.Params.MeasureBlocks
	free := !own && !v.Busy && !v.Paused
	little := v.Self.Rate == 0 || v.Self.Earning && v.Self.Rate < v.Params.Earning.Rate
	if r.measures && free && rested && little && (v.Self.Has(crew.Worker) || v.Self.Jailed) {
		want = append(want, Ask{})
	}
	return r.pending.Want(v.Height, want...)
}

// drop gives a measurement of its own machine up whose program a pause interrupts: a rate from a time that contains the
// pause would be too low, and takes its class. Without a result the rate before stays.
func (r *Registrant) drop(m registry.Measurement, paused bool) {
	if paused && !m.Seed.IsZero() && m.Root.IsZero() && r.results[Gauge{m.Seed, m.Steps, 0, registry.Segments}] == nil {
		r.dropped[m.Seed] = true
	}
}

// checked is the next action for a measurement that it checks: to run a segment again, or to send all results.
func (r *Registrant) checked(m registry.Measurement) role.Action {
	var found []canon.Digest
	for _, segment := range m.Picks {
		g := Gauge{m.Seed, m.Steps, segment, 1}
		results := r.results[g]
		if results == nil {
			return g
		}
		found = append(found, results[0])
	}
	return Check{m.ID, m.Seed, m.Sample(r.id, found)}
}

// measured is the next move in the measurement of its own machine.
func (r *Registrant) measured(m registry.Measurement) []role.Action {
	g := Gauge{m.Seed, m.Steps, 0, registry.Segments}
	results := r.results[g]
	switch {
	case m.Seed.IsZero() || !m.Root.IsZero() && !m.Checked():
		return nil // others are to move
	case results == nil:
		return []role.Action{g}
	case m.Root.IsZero():
		return []role.Action{Answer{registry.Root(r.id, m.Seed, results)}}
	}
	return []role.Action{Open{results}}
}

// forget drops the results of measurements that ended.
func (r *Registrant) forget(open []registry.Measurement) {
	for g := range r.results {
		if !slices.ContainsFunc(open, func(m registry.Measurement) bool { return m.Seed == g.Seed }) {
			delete(r.results, g)
		}
	}
	maps.DeleteFunc(r.dropped, func(seed canon.Digest, _ bool) bool {
		return !slices.ContainsFunc(open, func(m registry.Measurement) bool { return m.Seed == seed })
	})
}

// Ended records the end of an action: the results of a Gauge, none for the others, or an error.
func (r *Registrant) Ended(a role.Action, results []canon.Digest, err error) {
	if err != nil {
		r.pending.Rest(a, r.height)
		return
	}
	switch a := a.(type) {
	case Gauge:
		r.results[a] = results
	case Ask:
		r.asked = r.height
	}
	r.pending.Settle(a, r.height)
}
