package worker

import "github.com/starling-network/starling/role"

// accuse returns what a worker does about the unit of an index that handed on, in an earlier round, another state than
// it should: the worker cannot train its own unit before that is put right. It executes the unit again to find the
// first segment that differs, or that the unit was handed on a wrong state as well, and challenges it as a stranger
// may.
func (w *Worker) accuse(round, unit uint32) []role.Action {
	l, ok := w.run.At(round)
	if !ok || uint64(unit) >= uint64(len(l.Units)) {
		return nil
	}
	u := l.Units[unit]
	c, known := w.checked[u.ID(round)]
	switch {
	case !known || !c.Of(u):
		return []role.Action{role.CheckOf(l, u)}
	case c.Wrong != nil:
		return w.accuse(*c.Wrong, unit)
	case u.Worker == w.id:
		return nil
	}
	if challenge, ok := c.Challenge(u, w.id); ok {
		return []role.Action{challenge}
	}
	return nil
}
