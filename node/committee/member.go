package committee

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/canon"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/arena"
	rules "github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/committee"
)

// Trainer makes a model of that of a round.
type Trainer interface {
	Train(ctx context.Context, round uint32, model map[string]*tensor.Tensor, dir string) (loss float32, err error)
}

// MemberOptions are those of a member.
type MemberOptions struct {
	Dir     string // of its models
	ID      uint64 // of the committee
	Account string
	Stake   uint64 // uzen that it has at least
	URL     string // where Handler is reached
	Private bool   // files at private addresses are got, too
	Job     canon.Digest
	Say     func(text string)
}

// Member is the side of a member.
type Member struct {
	MemberOptions
	trainer Trainer
	shelf   *shelf
	told    uint64 // contest whose outcome was said
	failed  uint64 // contest for which no model could be made
}

// NewMember is a member that trains.
func NewMember(t Trainer, opt MemberOptions) *Member {
	return &Member{MemberOptions: opt, trainer: t, shelf: newShelf(filepath.Join(opt.Dir, dirRounds), false)}
}

// Handler serves the models of rounds once all are entered.
func (m *Member) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(pattern, m.shelf)
	return mux
}

// Block does what the member owes at a block. done says that the committee is over, and the stake came back.
func (m *Member) Block(ctx context.Context, c Membership) (done bool, err error) {
	a, err := c.Committee(ctx, m.ID)
	if err != nil {
		return false, err
	}
	if a.Terms.Job != m.Job {
		return false, &Error{Code: BadJob, What: fmt.Sprintf("the job at its URL is not that of committee %d", m.ID),
			Fix: "tell the host, which serves another job than the network has the digest of"}
	}
	me := slices.IndexFunc(a.All, func(x committee.Member) bool { return x.Account == m.Account })
	if err := m.tell(ctx, c, a); err != nil {
		return false, err
	}
	if !a.Open() {
		if me >= 0 {
			stake, err := c.Leave(ctx, m.ID)
			if err != nil {
				return false, err
			}
			m.Say(fmt.Sprintf("committee %d is over: %s came back", m.ID, coin.Coin{}.Text(stake)))
		}
		return true, nil
	}
	if err := m.join(ctx, c, a, me); err != nil {
		return false, err
	}
	if a.Phase != committee.Round {
		return false, nil
	}
	s, err := c.Contest(ctx, a.Contest)
	if err != nil || !slices.Contains(s.Invited, m.Account) {
		return false, err
	}
	return false, m.round(ctx, c, a, s)
}

// join makes the account a member that may be drawn.
func (m *Member) join(ctx context.Context, c Membership, a module.Assembly, me int) error {
	want, had := max(m.Stake, a.Terms.Stake), uint64(0)
	if me >= 0 {
		had = a.All[me].Stake
		if a.All[me].Ready && had >= a.Terms.Stake {
			return nil
		}
	}
	stake, err := c.Join(ctx, m.ID, want-min(want, had))
	if err == nil {
		m.Say(fmt.Sprintf("a member of committee %d, with a stake of %s", m.ID, coin.Coin{}.Text(stake)))
	}
	return err
}

// tell says what the account has for the latest round, and why it has nothing.
func (m *Member) tell(ctx context.Context, c Membership, a module.Assembly) error {
	if a.Contest == m.told || a.Phase == committee.Round {
		return nil
	}
	s, err := c.Contest(ctx, a.Contest)
	if err != nil {
		return err
	}
	m.told = a.Contest
	for _, o := range s.Outcomes {
		if o.Account != m.Account {
			continue
		}
		if o.Why != "" {
			m.Say(fmt.Sprintf("round %d: paid nothing: %s", a.Begun, o.Why))
		} else {
			m.Say(fmt.Sprintf("round %d: the loss is lower by %.4f nats; paid %d grains", a.Begun,
				float64(o.Gain)/rules.Unit, o.Paid))
		}
	}
	return nil
}

// round enters and reveals the model of a round.
func (m *Member) round(ctx context.Context, c Membership, a module.Assembly, s module.Standing) error {
	at := slices.IndexFunc(s.All, func(e rules.Entry) bool { return e.Account == m.Account })
	switch {
	case s.Phase == rules.Entering && at < 0 && m.failed != s.ID:
		return m.enter(ctx, c, a, s)
	case s.Phase == rules.Entering || at < 0:
		return nil
	}
	m.shelf.publish(s.ID)
	if s.Phase != rules.Revealing || !s.All[at].Model.IsZero() {
		return nil
	}
	all, err := arena.Entrants(m.entries(s.ID))
	if err != nil {
		return err
	}
	for _, e := range all {
		model, salt := e.Model()
		if rules.Commitment(s.ID, m.Account, model, salt) == s.All[at].Commitment {
			return c.RevealEntry(ctx, s.ID, s.All[at].Number, model, salt, fmt.Sprintf("%s/rounds/%d", m.URL, s.ID))
		}
	}
	m.Say(fmt.Sprintf("round %d: the model that was entered is not in %s", a.Begun, m.Dir))
	return nil
}

func (m *Member) entries(contest uint64) string {
	return filepath.Join(m.Dir, "entries", fmt.Sprint(contest))
}

// enter trains the model of a round, and enters what came of it.
func (m *Member) enter(ctx context.Context, c Membership, a module.Assembly, s module.Standing) error {
	base := filepath.Join(m.Dir, "base")
	if err := os.RemoveAll(base); err != nil { // of an earlier round
		return onDisk(err)
	}
	model, err := arena.Fetch(ctx, base, s.Terms.BaseURL, s.Terms.Base, s.Terms.MaxBytes, m.Private, patience)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // the next block tries again
		return fmt.Errorf("round %d: its model: %w", a.Begun, err)
	}
	dir := m.shelf.at(s.ID)
	loss, err := m.trainer.Train(ctx, a.Begun-1, model, dir)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		m.failed = s.ID
		return fmt.Errorf("round %d: %w", a.Begun, err)
	}
	if _, err := arena.ListBase(dir); err != nil {
		return err
	}
	e, err := arena.Prepare(m.entries(s.ID), dir, nil)
	if err != nil {
		return err
	}
	digest, salt := e.Model()
	if _, err := c.Enter(ctx, s.ID, rules.Commitment(s.ID, m.Account, digest, salt)); err != nil {
		if errors.Is(err, rules.ErrPhase) {
			m.failed = s.ID
		}
		return err
	}
	m.Say(fmt.Sprintf("round %d: a model is entered, loss here %.4f", a.Begun, loss))
	return nil
}
