package offer

import (
	"log/slog"
	"sync"

	"github.com/starling-network/starling/node/pause"
)

// Paused takes an offer back for a pause, and makes it again after that.
type Paused struct {
	Turned <-chan struct{} // closed when a pause begins or ends
	Tried  chan error      // what came of a try

	pauser  *pause.Pauser
	offers  func(slots uint32) error
	log     *slog.Logger
	offered bool // as the chain knows
	trying  bool
	to      bool // what is being tried
}

// NewPaused returns one of an offer, which is made at present or not, and which offers changes.
func NewPaused(p *pause.Pauser, offered bool, offers func(slots uint32) error, log *slog.Logger) *Paused {
	_, turned := p.State()
	return &Paused{Turned: turned, Tried: make(chan error, 1), pauser: p, offers: offers, log: log, offered: offered}
}

// Turn takes note that a pause begins or ends.
func (o *Paused) Turn() { _, o.Turned = o.pauser.State() }

// Step tries to bring the offer in line with the pause. withheld says that no work is offered for another reason, for
// as long as that holds. A try that fails is made again by the next call.
func (o *Paused) Step(withheld bool, working *sync.WaitGroup) {
	to := !o.pauser.Paused()
	if o.trying || to == o.offered || to && withheld {
		return
	}
	o.trying, o.to = true, to
	working.Go(func() { o.Tried <- o.offers(map[bool]uint32{true: 1}[to]) })
}

// End records the result of a try.
func (o *Paused) End(err error) {
	if o.trying = false; err == nil {
		o.offered = o.to
		return
	}
	o.log.Warn("cannot change the offer for a pause: tries again with the next block", "err", err)
}
