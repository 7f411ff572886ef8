package arena

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
)

// Seal binds a member of the panel to a report, before the seed of the duels is known. sealed is how many members have
// sealed theirs, with this one.
func (c Contest) Seal(sender string, seal canon.Digest, sealed int, height int64) (Contest, Opinion, error) {
	switch err := c.during(Sealing, height); {
	case !slices.Contains(c.Panel, sender):
		return c, Opinion{}, fmt.Errorf("%w: %s is not in the panel of %d", ErrParty, sender, c.ID)
	case err != nil:
		return c, Opinion{}, err
	case seal.IsZero():
		return c, Opinion{}, fmt.Errorf("%w: the seal is missing", ErrReport)
	}
	if sealed == len(c.Panel) {
		c.Until = height
	}
	return c, Opinion{Account: sender, Sealed: seal}, nil
}

// OpenReport shows a sealed report, with the groups that the seed gives. left is how many members have sealed and not
// opened theirs, without this one.
func (c Contest) OpenReport(o Opinion, r Report, salt canon.Digest, entries []Entry, left int, height int64) (Contest,
	Opinion, error) {
	if err := c.during(Opening, height); err != nil {
		return c, o, err
	}
	if o.Report != nil {
		return c, o, fmt.Errorf("%w: the report of %s", ErrTwice, o.Account)
	}
	if err := c.Check(r, entries); err != nil {
		return c, o, err
	}
	if r.Seal(c.ID, o.Account, salt) != o.Sealed {
		return c, o, ErrSeal
	}
	o.Report = &r
	if left == 0 {
		c.Until = height
	}
	return c, o, nil
}

// World is what the end of a phase depends on.
type World struct {
	Height     int64
	Beacon     canon.Digest // of the block of the height: it is later than all messages of the phase
	Entries    []Entry      // of the contest
	Opinions   []Opinion    // of its panel
	Candidates func() ([]Candidate, error)
}

// Freed is a member of a panel that is no longer in it.
type Freed struct {
	Account string
	Silent  bool // it sealed no report, or did not open it
}

// Turn ends a phase whose last block is past. The contest then has its payments if it is over.
func (c Contest) Turn(w World) (Contest, []Freed, error) {
	if !c.Open() || w.Height <= c.Until {
		return c, nil, nil
	}
	switch c.Phase {
	case Entering:
		if c.Entries == 0 {
			return c.void(Empty, w), nil, nil
		}
		c.Phase, c.Until = Revealing, w.Height+int64(c.Terms.Revealing)
	case Revealing:
		switch {
		case c.SetURL == "":
			return c.void(Hidden, w), nil, nil
		case c.Shown == 0:
			return c.void(Worthless, w), nil, nil
		}
		c, err := c.convene(w)
		return c, nil, err
	case Sealing:
		if 2*len(w.Opinions) <= len(c.Panel) {
			freed := c.free(w)
			c.Torn = nil
			c, err := c.convene(w)
			return c, freed, err
		}
		c.Phase, c.Until, c.Seed = Opening, w.Height+int64(c.Terms.Judging), w.Beacon
	case Opening:
		freed := c.free(w)
		if c.Committee > 0 {
			if over, ok := c.scored(w); ok {
				return over, freed, nil
			}
		} else if r, ok := c.majority(w.Opinions); ok {
			return c.settle(r, w), freed, nil
		}
		c.Torn = c.torn(w.Opinions)
		c, err := c.convene(w)
		return c, freed, err
	case Paid, Void:
	}
	return c, nil, nil
}

// free are the members of the panel, and which of them were silent.
func (c Contest) free(w World) (freed []Freed) {
	for _, who := range c.Panel {
		i := slices.IndexFunc(w.Opinions, func(o Opinion) bool { return o.Account == who })
		freed = append(freed, Freed{who, i < 0 || c.Phase == Opening && w.Opinions[i].Report == nil})
	}
	return freed
}

// convene draws a panel, the first one or another in place of one without a majority.
func (c Contest) convene(w World) (Contest, error) {
	c.Spent = append(slices.Clone(c.Spent), c.Panel...)
	c.Panel, c.Seed = nil, canon.Digest{}
	if c.Draws == maxDraws {
		return c.void(Undecided, w), nil
	}
	from, err := w.Candidates()
	if err != nil {
		return c, err
	}
	panel := c.draw(from, w.Entries, w.Beacon)
	if len(panel) < int(c.Terms.Panel) {
		if c.Draws > 0 {
			return c.void(Undecided, w), nil
		}
		return c.void(Alone, w), nil
	}
	c.Draws++
	c.Panel, c.Phase, c.Until = panel, Sealing, w.Height+int64(c.Terms.Judging)
	return c, nil
}

// majority is the report that more than half of the panel opened.
func (c Contest) majority(opinions []Opinion) (Report, bool) {
	count := map[canon.Digest]int{}
	for _, o := range opinions {
		if o.Report == nil {
			continue
		}
		d := o.Report.Digest()
		if count[d]++; 2*count[d] > len(c.Panel) {
			return *o.Report, true
		}
	}
	return Report{}, false
}

// torn are the entries whose files some evaluators got and others did not, in the panel of the opinions and in each
// before it. A server that answers some of them alone keeps their reports apart; an evaluator that lies is in one
// panel.
func (c Contest) torn(opinions []Opinion) (list []uint32) {
	got, missed := map[uint32]bool{}, map[uint32]bool{}
	for _, o := range opinions {
		if o.Report == nil {
			continue
		}
		for i, j := range o.Report.Entries {
			if j.Status == Absent {
				missed[uint32(i+1)] = true
			} else {
				got[uint32(i+1)] = true
			}
		}
	}
	for n := range c.Entries {
		if got[n+1] && missed[n+1] && (c.Draws == 1 || slices.Contains(c.Torn, n+1)) {
			list = append(list, n+1)
		}
	}
	return list
}

// pay adds a payment to those of the end.
func (c *Contest) pay(to string, amount uint64, use Use) {
	if amount > 0 && c.Committee == 0 { // the committee of a round pays
		c.Payments = append(c.Payments, Payment{to, amount, use})
	}
}

// void ends a contest without a report: the deposits go back, but for those of entries that kept the reports apart, and
// the prize and the fees. The bond goes back, too, unless the host did not reveal the set: then the entrants share it.
func (c Contest) void(why Reason, w World) Contest {
	c.Phase, c.Why = Void, why
	c.pay(c.Host, c.Terms.Prize+uint64(c.Terms.Panel)*c.Terms.Fee, ForRefund)
	c.bond(why != Hidden, w.Entries)
	for _, e := range w.Entries {
		if why == Worthless && e.Model.IsZero() || why == Undecided && slices.Contains(c.Torn, e.Number) {
			c.pay("", c.Terms.Deposit, ForDeposit)
		} else {
			c.pay(e.Account, c.Terms.Deposit, ForDeposit)
		}
	}
	return c
}

// bond returns the bond to the host, or shares it among the entrants.
func (c *Contest) bond(back bool, entries []Entry) {
	if back || len(entries) == 0 {
		c.pay(c.Host, c.Terms.Bond, ForBond)
		return
	}
	each := c.Terms.Bond / uint64(len(entries))
	for _, e := range entries {
		c.pay(e.Account, each, ForBond)
	}
	c.pay("", c.Terms.Bond-each*uint64(len(entries)), ForBond)
}

// settle ends a contest by the report of the majority. The members that opened it have their fees, if it has an entry
// with losses: a report without any needs no work, and evaluators must gain nothing by agreeing on it. The pool has the
// fees then, so that a host gains nothing either.
func (c Contest) settle(r Report, w World) Contest {
	c.Phase, c.Report = Paid, r.Digest()
	fees := uint64(c.Terms.Panel) * c.Terms.Fee
	worked := slices.ContainsFunc(r.Entries, func(j Judged) bool { return j.Status == Placed })
	for _, o := range w.Opinions {
		if o.Report != nil && o.Report.Digest() == c.Report {
			to := o.Account
			if !worked {
				to = ""
			}
			c.pay(to, c.Terms.Fee, ForFee)
			fees -= c.Terms.Fee
		}
	}
	list := r.Ranking()
	shares := c.Terms.Shares(c.Terms.Prize, list)
	for i, e := range list {
		c.pay(w.Entries[e.Number-1].Account, shares[i], ForPrize)
	}
	if len(list) == 0 {
		c.Phase, c.Why = Void, Worthless
		fees += c.Terms.Prize
	}
	if r.Absent {
		c.Why = Hidden
	}
	c.pay(c.Host, fees, ForRefund)
	c.bond(!r.Absent, w.Entries)
	for i, e := range w.Entries {
		if r.Absent || r.Entries[i].Status == Placed {
			c.pay(e.Account, c.Terms.Deposit, ForDeposit)
		} else {
			c.pay("", c.Terms.Deposit, ForDeposit)
		}
	}
	return c
}
