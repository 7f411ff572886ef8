package party

import (
	"context"
	"sync"

	"github.com/starling-network/starling/protocol/run"
)

// waits are the updates that this party waits for, by round. Those that signed the checkpoint after a round had all its
// updates: once it is attested, an update that no member serves is not about to be published, and is reported while its
// round is open. A run in which such a report gives no time waits on.
type waits struct {
	mu    sync.Mutex
	round uint32           // of the run; 0: waits do not end
	stops map[*wait]func() // of those under way
}

type wait struct{ round uint32 }

// begin returns a context that is done when a round is attested, and a function that frees it.
func (w *waits) begin(ctx context.Context, round uint32) (context.Context, func()) {
	ctx, stop := context.WithCancel(ctx)
	one := &wait{round}
	w.mu.Lock()
	defer w.mu.Unlock()
	if round < w.round {
		stop()
	}
	if w.stops == nil {
		w.stops = map[*wait]func(){}
	}
	w.stops[one] = stop
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.stops, one)
		stop()
	}
}

// follow ends the waits for rounds that are attested.
func (w *waits) follow(s run.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.round = 0; s.Rules.Extend(s.Terms) {
		w.round = s.Round
	}
	for one, stop := range w.stops {
		if one.round < w.round {
			stop()
		}
	}
}
