package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/reward"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/bundle"
)

// CoinsConserved checks after every block in which something happened, and at the end, that no uzen was made or lost:
// all accounts together hold what the genesis gave them, the account of all stakes holds their sum, and that of all
// budgets what is left of this one.
type CoinsConserved struct{}

// account of a module.
func account(module string) string { return authtypes.NewModuleAddress(module).String() }

// Block implements Checker.
func (m CoinsConserved) Block(w *Network) error {
	if w.quiet() {
		return nil
	}
	return m.End(w)
}

// End implements Checker.
func (CoinsConserved) End(w *Network) error {
	ctx, c := context.Background(), w.Chain()
	held, err := w.ledger.balances(ctx)
	if err != nil {
		return err
	}
	var sum uint64
	for _, amount := range held {
		sum += amount
	}
	want := w.minted + uint64(len(w.ledger.validators))*chain.SelfStake
	participants, err := c.Registry.Participants(ctx)
	var stakes uint64
	for _, p := range participants {
		stakes += p.Stake
	}
	escrow, failed := c.Market.Escrow(ctx, w.config.Job.ID())
	if errors.Is(failed, client.ErrNotFound) {
		failed = nil
	}
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	switch {
	case sum != want:
		return fmt.Errorf("money: there are %d uzen, the genesis made %d", sum, want)
	case held[account(registry.Name)] != stakes:
		return fmt.Errorf("money: stakes of %d uzen, and %d are held for them", stakes, held[account(registry.Name)])
	case held[account(market.Name)] != escrow.Remaining():
		return fmt.Errorf("money: %d uzen of the budget remain, and %d are held for them", escrow.Remaining(),
			held[account(market.Name)])
	}
	return nil
}

// HonestNotSlashed checks at the end that nobody lost stake but those who broke the rules, or could not be reached when
// it was their move.
type HonestNotSlashed struct {
	Guilty []string // names of those who may be slashed
	Away   []string // of those who may be, for their silence in a dispute, or for a seal that they did not open
}

// Block implements Checker.
func (HonestNotSlashed) Block(*Network) error { return nil }

// End implements Checker.
func (j HonestNotSlashed) End(w *Network) error {
	wronged, err := j.wronged(w)
	if err == nil && len(wronged) > 0 {
		err = fmt.Errorf("justice: %v kept the rules, and lost stake", wronged)
	}
	return err
}

// wronged are the names of those who lost stake and should not have.
func (j HonestNotSlashed) wronged(w *Network) (names []string, err error) {
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
		kept := p.Stake == w.config.stake() && p.Slashed == 0 && !p.Jailed
		if !kept && !slices.Contains(j.Guilty, name) && !(slices.Contains(j.Away, name) && onlySilent(receipts, p.ID)) {
			names = append(names, name)
		}
	}
	return names, nil
}

// onlySilent reports whether all that somebody was slashed for is silence, in a dispute or about a seal.
func onlySilent(receipts []reward.Receipt, who string) bool {
	return !slices.ContainsFunc(receipts, func(r reward.Receipt) bool {
		return r.Who == who && r.Kind == reward.Slash && r.Reason != reward.Silent && r.Reason != reward.SealUnopened &&
			r.Reason != reward.Restitution
	})
}

// PaidOnce checks at the end that no work was paid twice: nobody is paid more often for a unit than it committed to it,
// and only what a rollback made void is paid to another again. And when the run is done, that who kept the rules was
// paid for every commitment whose update could be had, also for those in rounds that were rolled back.
type PaidOnce struct {
	Guilty []string // names of those who may go without
	Away   []string // of those who may, for a unit that was challenged in their silence

	commits map[duty]int
	rolled  bool
}

// quiet reports whether the latest block had no transactions, and the run no events in it.
func (w *Network) quiet() bool { return w.still && len(w.runEvents()) == 0 }

// runEvents are the events of the run in the latest block.
func (w *Network) runEvents() (events []event.Event) {
	for _, e := range w.ledger.events {
		if e.Type != "starling.training.v1.EventRun" {
			continue
		}
		said := map[string]string{}
		for _, a := range e.Attributes {
			said[a.Key] = strings.Trim(a.Value, `"`) // JSON of strings and small numbers
		}
		round, _ := strconv.Atoi(said["round"])
		unit, _ := strconv.Atoi(said["unit"])
		events = append(events, event.Event{
			Kind: event.Kind(said["kind"]), Round: uint32(round), Unit: uint32(unit), Who: said["who"], Other: said["other"],
			Why: said["why"],
		})
	}
	return events
}

// duty is a unit of a round, and who did it.
type duty struct {
	round, unit uint32
	who         string
}

// Block implements Checker.
func (p *PaidOnce) Block(w *Network) error {
	for _, e := range w.runEvents() {
		switch e.Kind {
		case event.UnitCommitted:
			if p.commits == nil {
				p.commits = map[duty]int{}
			}
			p.commits[duty{e.Round, e.Unit, e.Who}]++
		case event.RolledBack:
			p.rolled = true
		}
	}
	return nil
}

// End implements Checker.
func (p *PaidOnce) End(w *Network) error {
	receipts, err := w.Receipts()
	if err != nil {
		return err
	}
	if err := p.once(receipts); err != nil {
		return err
	}
	s, err := w.State()
	if err != nil || s.Phase != progress.Done {
		return err
	}
	if p.rolled && s.Terms.Carry > 0 { // what was built on a state that nobody has cannot be settled
		return nil
	}
	return p.all(receipts, w.Name)
}

// all reports a commitment that was not paid.
func (p *PaidOnce) all(receipts []reward.Receipt, name func(id string) string) error {
	open := maps.Clone(p.commits)
	for _, r := range receipts {
		known := r.Reason == reward.Unavailable || r.Reason == reward.Odd || r.Reason == reward.Outside ||
			(r.Reason == reward.Silent || r.Reason == reward.Forfeited) && slices.Contains(p.Away, name(r.Who))
		if r.Kind == reward.Work && (r.Amount > 0 || known) {
			open[duty{r.Round, r.Unit, r.Who}]--
		}
	}
	for d, n := range open {
		if n > 0 && !slices.Contains(p.Guilty, name(d.who)) {
			return fmt.Errorf("pay: %s committed to unit %d of round %d, and is not paid for it", name(d.who), d.unit, d.round)
		}
	}
	return nil
}

// once reports the first payment for what was paid before.
func (p *PaidOnce) once(receipts []reward.Receipt) error {
	paid, units := map[duty]int{}, map[duty]int{}
	for i, r := range receipts {
		if r.Seq != uint64(i) {
			return fmt.Errorf("pay: receipt %d has number %d", i, r.Seq)
		}
		if r.Amount == 0 || r.Kind != reward.Work {
			continue
		}
		d, unit := duty{r.Round, r.Unit, r.Who}, duty{r.Round, r.Unit, ""}
		paid[d]++
		units[unit]++
		if paid[d] > p.commits[d] || units[unit] > 1 && !p.rolled {
			return fmt.Errorf("pay: unit %d of round %d is paid %d times, to %s %d times for %d commitments", r.Unit, r.Round,
				units[unit], r.Who, paid[d], p.commits[d])
		}
	}
	return nil
}

// Lineage checks at the end that every attested checkpoint is signed by a quorum, follows its predecessor, and can be
// had; and, if Honest, that each is what honest work alone leads to.
type Lineage struct {
	Honest bool

	last  uint32         // round of the run after the block before
	least int            // active members, since that round began
	quora map[uint32]int // active members at least, by the round after which they attested
}

// Block implements Checker. More than half of those who are there at the end of a round attest it, whoever disagrees.
func (l *Lineage) Block(w *Network) error {
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
func (l *Lineage) End(w *Network) error {
	ctx, job := context.Background(), w.config.Job
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
