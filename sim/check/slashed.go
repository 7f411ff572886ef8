package check

import (
	"context"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/reward"
)

// HonestNotSlashed checks at the end that no party lost stake but those that broke the rules, or could not be reached
// when it was their move.
type HonestNotSlashed struct {
	Guilty []string // names of those who may be slashed
	Away   []string // of those who may be, for their silence in a dispute, or for a seal that they did not open
}

// Block implements Checker.
func (HonestNotSlashed) Block(World) error { return nil }

// End implements Checker.
func (j HonestNotSlashed) End(w World) error {
	wronged, err := j.Wronged(w)
	if err == nil && len(wronged) > 0 {
		err = fmt.Errorf("justice: %v kept the rules, and lost stake", wronged)
	}
	return err
}

// Wronged are the names of those who lost stake and should not have.
func (j HonestNotSlashed) Wronged(w World) (names []string, err error) {
	participants, err := w.Chain().Registry.Participants(context.Background())
	if err != nil {
		return nil, err
	}
	receipts, err := w.Receipts()
	if err != nil {
		return nil, err
	}
	for _, p := range participants {
		name := w.Name(p.ID)
		kept := (p.Earning || p.Stake == w.Genesis().Stake) && p.Slashed == 0 && !p.Jailed
		if !kept && !slices.Contains(j.Guilty, name) && !(slices.Contains(j.Away, name) && onlySilent(receipts, p.ID)) {
			names = append(names, name)
		}
	}
	return names, nil
}

// onlySilent reports whether all that a party was slashed for is silence, in a dispute or about a seal.
func onlySilent(receipts []reward.Receipt, who string) bool {
	return !slices.ContainsFunc(receipts, func(r reward.Receipt) bool {
		return r.Who == who && r.Kind == reward.Slash && r.Reason != reward.Silent && r.Reason != reward.SealUnopened &&
			r.Reason != reward.Restitution
	})
}
