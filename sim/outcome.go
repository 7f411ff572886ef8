package sim

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Outcome is how a run ended.
type Outcome struct {
	Phase   progress.Phase
	Why     string // for progress.Halted
	Rounds  uint32 // attested
	Blocks  int64
	Honest  bool              // the last state root is that of honest work
	Slashed map[string]uint64 // uzen lost, by name
	Earned  map[string]uint64 // uzen received for work and audits, by name
	Out     map[string]string // why, by name of members who had to leave
}

// Outcome reads the chain after Play.
func (w *Network) Outcome() (Outcome, error) {
	s, err := w.State()
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{
		Phase: s.Phase, Why: s.Why, Rounds: s.Base.Round, Blocks: w.ledger.Height,
		Slashed: map[string]uint64{}, Earned: map[string]uint64{}, Out: map[string]string{}}
	root, err := w.config.Job.Root(s.Base.Round)
	if err != nil {
		return o, err
	}
	o.Honest = root == s.Base.Root
	for _, m := range s.Members {
		if !m.Active {
			o.Out[w.Name(m.ID)] = m.Why
		}
	}
	receipts, err := w.Receipts()
	for _, r := range receipts {
		switch {
		case r.Amount == 0:
		case r.Kind == reward.Slash:
			o.Slashed[w.Name(r.Who)] += r.Amount
		case r.Kind == reward.Work || r.Kind == reward.Audit:
			o.Earned[w.Name(r.Who)] += r.Amount
		}
	}
	return o, err
}

// Receipts of the job.
func (w *Network) Receipts() ([]reward.Receipt, error) {
	return w.Chain().Training.Receipts(context.Background(), w.config.Job.ID())
}

// Name of the party with an account.
func (w *Network) Name(id string) string {
	for _, p := range w.parties {
		if p.key.Address() == id {
			return p.name
		}
	}
	return id
}

// Blob returns a blob that some party stores.
func (w *Network) Blob(ctx context.Context, c blob.CID) ([]byte, error) {
	for _, p := range w.parties {
		if b, err := p.store.Get(ctx, c); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("sim: no party stores %s: %w", c, blob.ErrNotFound)
}
