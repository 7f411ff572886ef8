package outer

import "fmt"

// Schedule is when the parameters are exchanged, in Streaming DiLoCo (Douillard et al. 2025): the model is
// cut into fragments, and after every Every inner steps each of them has been sent once, at its own time. What was sent
// after one step is applied Delay steps later, and training goes on meanwhile. One fragment without delay is DiLoCo.
//
// All replicas follow one schedule, so they exchange fragments in one order. An exchange costs one fragment of traffic;
// Every 1 with momentum is the worst setting there is (Charles et al. 2025), and no stand-in for data-parallel training.
type Schedule struct{ Every, Fragments, Delay int }

// Check reports why nobody can keep to the schedule.
func (s Schedule) Check() error {
	switch {
	case s.Every < 1 || s.Fragments < 1 || s.Every%s.Fragments != 0:
		return fmt.Errorf("outer: %d inner steps do not divide into %d fragments", s.Every, s.Fragments)
	case s.Delay < 0 || s.Delay > s.spacing():
		return fmt.Errorf("outer: a delay of %d steps is not below the %d between fragments: two would be under way", s.Delay, s.spacing())
	}
	return nil
}

func (s Schedule) spacing() int { return s.Every / s.Fragments }

// Sends returns the fragment that is sent after inner step t, counted from 1 over the whole run, if there is one.
func (s Schedule) Sends(t int) (fragment int, ok bool) {
	if t < 1 || t%s.spacing() != 0 {
		return 0, false
	}
	return t % s.Every / s.spacing(), true
}

// Applies returns the fragment whose combined update is applied after inner step t, before anything is sent then.
func (s Schedule) Applies(t int) (fragment int, ok bool) { return s.Sends(t - s.Delay) }

// Fragment returns the fragment of a layer, counted from 0: neighbours are in different ones (the strided pattern of the
// paper).
func (s Schedule) Fragment(layer int) int { return layer % s.Fragments }
