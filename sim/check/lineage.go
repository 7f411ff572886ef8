package check

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role/bundle"
)

// Lineage checks at the end that every attested checkpoint is signed by a quorum, follows its predecessor, and can be
// had; and, if Honest, that each is what honest work alone leads to.
type Lineage struct {
	Honest bool

	last  uint32         // round of the run after the block before
	least int            // active members, since that round began
	quora map[uint32]int // active members at least, by the round after which they attested
}

// Block implements Checker. More than half of those who are there at the end of a round attest it.
func (l *Lineage) Block(w World) error {
	s, err := w.State()
	if err != nil {
		return nil // it has not begun
	}
	active := len(s.Active(crew.Worker)) + len(s.Active(crew.Verifier))
	if l.quora == nil {
		l.quora, l.least = map[uint32]int{}, active
	}
	l.least = min(l.least, active)
	if s.Round != l.last {
		l.quora[s.Base.Round], l.last, l.least = l.least, s.Round, active
	}
	return nil
}

// End implements Checker.
func (l *Lineage) End(w World) error {
	ctx, job := context.Background(), w.Genesis().Job
	s, err := w.State()
	if err != nil {
		return err
	}
	for round := uint32(1); round <= s.Base.Round; round++ {
		e, err := w.Chain().Training.Lineage(ctx, job.ID(), round)
		if err != nil {
			return fmt.Errorf("lineage: %w", err)
		}
		digest := e.Attestation.Digest()
		for _, v := range e.Votes {
			if err := wallet.Verify(v.Member, v.PublicKey, digest, v.Signature); err != nil {
				return fmt.Errorf("lineage: round %d: %w", round, err)
			}
		}
		if active := l.quora[round]; 2*len(e.Votes) <= active {
			return fmt.Errorf("lineage: round %d has %d signatures of at least %d members", round, len(e.Votes), active)
		}
		if _, err := bundle.LoadCheckpoint(ctx, e.Attestation.Checkpoint, w.Blob); err != nil {
			return fmt.Errorf("lineage: round %d: %w", round, err)
		}
		want, err := job.Root(round)
		if err != nil {
			return err
		}
		if got := e.Attestation.Checkpoint.Root; l.Honest && got != want {
			return fmt.Errorf("lineage: round %d ends in %s, honest work ends in %s", round, got.Short(), want.Short())
		}
	}
	return nil
}
