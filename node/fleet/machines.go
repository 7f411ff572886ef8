package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
)

// State of a machine in the list of its owner.
type State string

// States of machines and invitations.
const (
	Invited    State = "invited"   // no machine used the invitation yet
	Expired    State = "expired"   // none did in time
	Enrolled   State = "enrolled"  // it has no role
	Waiting    State = "waiting"   // it has no run
	Working    State = "working"   // it has a part in a run
	Draining   State = "draining"  // it takes no new work
	Drained    State = "drained"   // it takes no new work, and has none
	Convicted  State = "convicted" // it is given no work
	Answering  State = "answering" // it was revoked, and answers for its work so far
	RevokedNow State = "revoked"   // it was revoked, and its stake leaves
	Gone       State = "gone"      // it was revoked, and has no stake
)

// Duty is a unit that a machine computes or audits, or a run in which it has none now.
type Duty struct {
	Job   string `json:"job"`
	Round uint32 `json:"round"`
	Unit  int    `json:"unit"` // -1: none
	Audit bool   `json:"audit,omitempty"`
}

// String names the duty as lists show it.
func (d Duty) String() string {
	switch {
	case d.Unit < 0:
		return d.Job
	case d.Audit:
		return fmt.Sprintf("%s r%d u%d audit", d.Job, d.Round, d.Unit)
	}
	return fmt.Sprintf("%s r%d u%d", d.Job, d.Round, d.Unit)
}

// Machine is a machine or an invitation of a fleet. Amounts are in uzen.
type Machine struct {
	ID       string    `json:"machine"`
	State    State     `json:"state"`
	Roles    []string  `json:"roles"`
	Class    string    `json:"class"`
	Rate     uint64    `json:"rate"` // measured operations a second
	Stake    uint64    `json:"stake_uzen"`
	Slashed  uint64    `json:"slashed_uzen"`
	LeavesAt int64     `json:"leaves_at,omitempty"` // height at which the stake leaves
	Until    int64     `json:"until,omitempty"`     // height up to which an invitation is open
	Duties   []Duty    `json:"duties"`
	Earned   uint64    `json:"earned_uzen"` // paid for its work, to the owner
	Seen     int64     `json:"seen_height,omitempty"`
	SeenAt   time.Time `json:"seen,omitzero"` // time of its latest transaction
}

// Machines are the machines and invitations of an owner, in order of address.
func Machines(ctx context.Context, c *client.Client, owner string) ([]Machine, error) {
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	params, err := c.Registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	fleet, err := c.Registry.Fleet(ctx, owner)
	if err != nil || len(fleet) == 0 {
		return nil, err
	}
	duties, part, err := busy(ctx, c)
	if err != nil {
		return nil, err
	}
	earned, err := earnings(ctx, c, fleet)
	if err != nil {
		return nil, err
	}
	var list []Machine
	for _, p := range fleet {
		m := Machine{ID: p.ID, State: stateOf(p, part[p.ID], head.Height), Roles: []string{}, Class: p.Class(params).String(),
			Rate: p.Rate, Stake: p.Stake, Slashed: p.Slashed, LeavesAt: p.LeavesAt, Until: p.Machine.Until,
			Duties: duties[p.ID], Earned: earned[p.ID]}
		for _, r := range p.Roles {
			m.Roles = append(m.Roles, r.String())
		}
		if p.Machine.Until == 0 {
			if m.Seen, m.SeenAt, err = seen(ctx, c, p.ID); err != nil {
				return nil, err
			}
		}
		list = append(list, m)
	}
	return list, nil
}

func stateOf(p registry.Participant, part bool, height int64) State {
	switch m := p.Machine; {
	case m.Until > 0 && height > m.Until:
		return Expired
	case m.Until > 0:
		return Invited
	case m.Revoked > 0 && p.Stake == 0:
		return Gone
	case m.Revoked > 0 && part:
		return Answering
	case m.Revoked > 0:
		return RevokedNow
	case p.Jailed:
		return Convicted
	case m.Drains && part:
		return Draining
	case m.Drains:
		return Drained
	case part:
		return Working
	case len(p.Roles) == 0:
		return Enrolled
	}
	return Waiting
}

// busy is what each account has to do in the runs under way, and which accounts have a part in one.
func busy(ctx context.Context, c *client.Client) (duties map[string][]Duty, part map[string]bool, err error) {
	duties, part = map[string][]Duty{}, map[string]bool{}
	jobs, err := c.Training.Runs(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	for _, job := range jobs {
		s, err := c.Training.Run(ctx, job)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range s.Members {
			if s.Removed(m.ID) && !s.Liable(m.ID) {
				continue
			}
			part[m.ID] = true
			duties[m.ID] = append(duties[m.ID], dutiesIn(s, job, m.ID)...)
		}
	}
	return duties, part, nil
}

// dutiesIn are the open units of an account in a run; the run alone if it has none.
func dutiesIn(s run.State, job, id string) (list []Duty) {
	rounds := append(slices.Clone(s.Open), s.RoundState)
	for _, l := range rounds {
		for _, u := range l.Units {
			computes, audits := u.Status == work.Assigned && u.Worker == id, u.Status == work.Auditing && u.Verifier == id
			if computes || audits {
				list = append(list, Duty{Job: job, Round: l.Round, Unit: int(u.Index), Audit: audits})
			}
		}
	}
	if list == nil {
		list = []Duty{{Job: job, Round: s.Round, Unit: -1}}
	}
	return list
}

// earnings sums the pay for the work of machines.
func earnings(ctx context.Context, c *client.Client, fleet []registry.Participant) (map[string]uint64, error) {
	sums := map[string]uint64{}
	for _, p := range fleet {
		if p.Machine.Until == 0 {
			sums[p.ID] = 0
		}
	}
	add := func(all []reward.Receipt) {
		for _, r := range all {
			if _, own := sums[r.Who]; own && paid(r.Kind) && r.Coin.Own() {
				sums[r.Who] += r.Amount
			}
		}
	}
	jobs, err := c.Training.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		all, err := c.Training.Receipts(ctx, job)
		if err != nil {
			return nil, err
		}
		add(all)
	}
	for id := range sums { // sums do not depend on the order
		all, err := c.Reward.Rewarded(ctx, id)
		if err != nil {
			return nil, err
		}
		add(all)
	}
	return sums, nil
}

// paid reports whether receipts of a kind are pay.
func paid(k reward.Kind) bool {
	return k != reward.Slash && k != reward.Fee && k != reward.Deposit && k != reward.Refund
}

// seen is the height and the time of the latest transaction of an account; zero if there is none, or if the validator
// keeps no index of transactions.
func seen(ctx context.Context, c *client.Client, id string) (int64, time.Time, error) {
	last, err := c.Ledger.History(ctx, id, 1)
	if err != nil || len(last) == 0 {
		return 0, time.Time{}, ctx.Err()
	}
	r, err := c.Ledger.Record(ctx, last[0].Height)
	if err != nil { // the block is not kept
		return last[0].Height, time.Time{}, nil
	}
	return last[0].Height, r.Time.UTC(), nil
}

// Offer is what an owner gives each of the machines that it invites.
type Offer struct {
	Machines  int
	Stake     uint64        // uzen
	DailyFees uint64        // uzen
	Valid     time.Duration // of the invitation
	Network   string        // for the machines
}

// Add invites machines to the fleet of the account of a connection. It also returns the invitations with an error after
// which they may be open: the transaction was sent, and its answer was lost.
func Add(ctx context.Context, c *client.Client, o Offer, blockTime time.Duration) ([]Invitation, error) {
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	until := head.Height + max(10, int64(o.Valid/max(blockTime, 10*time.Millisecond)))
	var made []Invitation
	var open []module.Invitation
	for range o.Machines {
		i := NewInvitation(head.ChainID, c.Address(), o.Network, until)
		made = append(made, i)
		open = append(open, module.Invitation{Key: i.Key().PublicKey(), Stake: o.Stake, DailyFees: o.DailyFees, Until: until})
	}
	err = c.Registry.Invite(ctx, open...)
	if errors.Is(err, transaction.ErrRejected) || errors.Is(err, client.ErrLost) || errors.Is(err, client.ErrNoAccount) {
		return nil, err
	}
	return made, err
}
