package worker

import "github.com/starling-network/starling/role"

// accuse returns the actions against a unit of an earlier round, whose carried state, or what it drew, is false: the
// worker cannot train its own unit before that is corrected. It executes the unit again to find the first segment that
// differs, or that the unit's own carried state is false as well, and challenges it as any account may.
func (w *Worker) accuse(o origin) []role.Action {
	l, ok := w.run.At(o.round)
	if !ok || uint64(o.unit) >= uint64(len(l.Units)) {
		return nil
	}
	u := l.Units[o.unit]
	c, known := w.checked[u.ID(o.round)]
	switch {
	case !known || !c.Of(u):
		return []role.Action{role.CheckOf(l, u)}
	case c.Wrong != nil:
		return w.accuse(origin{*c.Wrong, c.Source})
	case u.Worker == w.id:
		return nil
	}
	if challenge, ok := c.Challenge(u, w.id); ok {
		return []role.Action{challenge}
	}
	return nil
}
