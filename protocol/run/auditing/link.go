package auditing

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/work"
)

// A stage is executed again from the values that it has received, which both sides of each link keep. Two neighbours
// that both lie can both keep them to themselves. The verifier says so, and the other members look for the values: the
// word of a verifier alone takes no unit from its worker.

// LacksLink notes the report of a party that the values of a link into a stage under audit cannot be had. Links are
// counted from 1, in the order of terms.Pipeline.LinksOf. The report of the verifier says which link it is, and the
// others follow it.
func LacksLink(d *Audits, l *work.RoundState, i int, from string, link uint32) error {
	u, stage := l.Units[i], uint32(i)%d.Terms.Pipeline.Stages()
	links := d.Terms.Pipeline.LinksOf(stage)
	switch {
	case u.Status != work.Auditing:
		return fmt.Errorf("%w: unit %d is not under audit", refusal.ErrWrongPhase, u.Index)
	case uint64(link) > uint64(len(links)) || links[link-1].To != stage:
		return fmt.Errorf("%w: stage %d receives nothing on its link %d", refusal.ErrBadSlice, stage, link)
	case u.Worker == from || l.Units[i-int(stage)+int(links[link-1].From)].Worker == from:
		return fmt.Errorf("%w: link %d of unit %d is the sender's own", refusal.ErrNotYours, link, u.Index)
	case u.Lost != link && u.Verifier != from:
		return fmt.Errorf("%w: link %d of unit %d, whose verifier has not reported it", refusal.ErrBadSlice, link, u.Index)
	case u.Lost == link && slices.Contains(u.Missing, from):
		return fmt.Errorf("%w: link %d of unit %d is reported", refusal.ErrDuplicate, link, u.Index)
	}
	v := d.Unit(l, i)
	if u.Lost != link { // reports about the update are made again once the audit is over
		v.Missing, v.Lost = nil, link
	}
	v.Missing = append(slices.Clip(v.Missing), from)
	return nil
}

// Hidden reports whether most members, without both sides, cannot have the values of the link into a unit under audit
// that its verifier has reported, and which unit is on the other side.
func Hidden(d *Audits, l *work.RoundState, i int) (other int, hidden bool) {
	u, stage := l.Units[i], i%int(d.Terms.Pipeline.Stages())
	if u.Status != work.Auditing || u.Lost == 0 || len(d.Terms.Pipeline.Flops) == 0 {
		return 0, false
	}
	other = i - stage + int(d.Terms.Pipeline.LinksOf(uint32(stage))[u.Lost-1].From)
	return other, crew.MostSayOf(d.Crew, []string{u.Worker, l.Units[other].Worker}, u.Missing)
}

// forgetLink drops the reports about a link of a unit whose audit is over.
func forgetLink(d *Audits, u *work.Unit) {
	if len(d.Terms.Pipeline.Flops) > 0 && u.Lost > 0 {
		u.Missing, u.Lost = nil, 0
	}
}
