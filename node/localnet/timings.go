package localnet

import (
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/dispute"
)

// refereeTimings is how long the validator of this process took for the last questions of disputes. It is shown to
// users, and never part of the state.
type refereeTimings struct {
	mu   sync.Mutex
	took map[claimKey]time.Duration
}

// claimKey names the last question of a dispute.
type claimKey struct {
	base                        canon.Digest
	round, unit, step, operator uint32
	part                        uint64
}

// referee recomputes as all validators do, and takes the time.
func (t *refereeTimings) referee(spec canon.Digest, opening []byte, numerics uint32) (works.Case, error) {
	r, err := referee.Open(spec, opening, numerics)
	if err != nil {
		return nil, err
	}
	return timed{r, t}, nil
}

type timed struct {
	works.Case
	times *refereeTimings
}

// Judge implements dispute.Referee.
func (c timed) Judge(q dispute.Claim, payload []byte) (dispute.Ruling, error) {
	begin := time.Now()
	r, err := c.Case.Judge(q, payload)
	took := time.Since(begin)
	t := c.times
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took == nil {
		t.took = map[claimKey]time.Duration{}
	}
	key := claimKey{q.Base, q.Round, q.Unit, q.Step, q.Index, q.Part}
	t.took[key] = max(t.took[key], took)
	return r, err
}

// of returns the milliseconds for a dispute, 0 if this process did not see its end.
func (t *refereeTimings) of(g dispute.Dispute) float64 {
	if g.Verdict == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.took[claimKey{g.Config.Base, g.Config.Round, g.Config.Unit, uint32(g.Steps.From), g.Verdict.Operator,
		g.Verdict.Part}]
	return float64(took.Microseconds()) / 1000
}
