package committee

import (
	"math/bits"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/arena"
)

// Draw ends a phase whose last block is past. Where a round has its model it draws members by the beacon, and returns
// the round; nil: there is none. A committee that is over has payments.
func (c Committee) Draw(id uint64, members []Member, beacon canon.Digest, height int64) (Committee, *arena.Contest,
	[]arena.Payment, error) {
	switch {
	case height <= c.Until:
		return c, nil, nil, nil
	case c.Phase == Idle:
		c, payments := c.end(Stopped)
		return c, nil, payments, nil
	case c.Phase != Drawing:
		return c, nil, nil, nil
	}
	var from []arena.Candidate
	for _, m := range members {
		if m.Ready && m.Stake >= c.Terms.Stake {
			from = append(from, arena.Candidate{Account: m.Account, Stake: m.Stake})
		}
	}
	drawn := arena.Draw("starling/committee-members/1", from, int(c.Terms.Drawn), beacon, c.ID)
	if len(drawn) == 0 { // the host begins it again once there are members
		c.Phase, c.Until = Idle, height+Waiting
		return c, nil, nil, nil
	}
	r, err := arena.BeginRound(id, c.ID, c.Host, drawn, c.Terms.round(c.Set, c.Model, c.URL, uint32(len(drawn))), height)
	if err != nil {
		return c, nil, nil, err
	}
	c.Phase, c.Contest = Round, id
	c.Begun++
	return c, &r, nil, nil
}

// end ends a committee: what is left goes back to the host.
func (c Committee) end(why Reason) (Committee, []arena.Payment) {
	left := c.Left
	c.Phase, c.Why, c.Left = Over, why, 0
	return c, []arena.Payment{{To: c.Host, Amount: left, For: arena.ForRefund}}
}

// Settle pays for a round that is over. members are those that were invited, in their order; they are returned as they
// are after it. The payments are grains of the coin of the committee, and lost the uzen of members that were silent.
func (c Committee) Settle(r arena.Contest, entries []arena.Entry, opinions []arena.Opinion, members []Member,
	height int64) (_ Committee, _ arena.Contest, _ []Member, payments []arena.Payment, lost uint64) {
	r.Outcomes = make([]arena.Outcome, len(members))
	members = slices.Clone(members)
	scores := arena.Scores(r.Gains)
	var total uint64
	weights := make([]uint64, len(members))
	for i := range members {
		m, o := &members[i], &r.Outcomes[i]
		o.Account = m.Account
		m.Drawn++
		at := slices.IndexFunc(entries, func(e arena.Entry) bool { return e.Account == m.Account && !e.Model.IsZero() })
		switch {
		case at < 0:
			o.Why = arena.Silent
			if r.Why != arena.Hidden { // of a host that hid the set members need not reveal
				o.Lost = arena.Silence(m.Stake)
				m.Stake, m.Ready, lost = m.Stake-o.Lost, false, lost+o.Lost
			}
		case r.Phase == arena.Void:
			o.Entry, o.Why = entries[at].Number, arena.Unscored
		case r.Gains[at] == arena.Unread:
			o.Entry, o.Why = entries[at].Number, arena.Unreadable
		default:
			o.Entry, o.Gain, o.Score = entries[at].Number, r.Gains[at], scores[at]
		}
		if r.Phase == arena.Void && (at >= 0 || r.Why == arena.Hidden) {
			continue // no fault of the member
		}
		m.score(o.Score, c.Terms.Window)
		switch o.Rating = m.Rating(); {
		case o.Why != "":
		case o.Score == 0:
			o.Why = arena.Worse
		case o.Rating == 0:
			o.Why = arena.Unsteady
		default:
			weights[i] = o.Rating
			total += o.Rating
		}
	}
	for i, w := range weights {
		if w > 0 {
			high, low := bits.Mul64(c.Terms.Pay, w)
			r.Outcomes[i].Paid, _ = bits.Div64(high, low, total)
			members[i].Paid += r.Outcomes[i].Paid
			payments = append(payments, arena.Payment{To: members[i].Account, Amount: r.Outcomes[i].Paid, For: arena.ForPrize})
		}
	}
	for _, o := range opinions {
		if r.Phase == arena.Paid && o.Report != nil && !o.Report.Absent && r.Agreed(*o.Report) {
			payments = append(payments, arena.Payment{To: o.Account, Amount: c.Terms.Round.Fee, For: arena.ForFee})
		}
	}
	for _, p := range payments {
		c.Left -= p.Amount
	}
	c.Staked -= lost
	if r.Phase == arena.Paid {
		c.Scored++
	}
	c, more := c.after(r, entries, height)
	return c, r, members, append(payments, more...), lost
}

// after is the committee after a round, and what it pays at its end.
func (c Committee) after(r arena.Contest, entries []arena.Entry, height int64) (Committee, []arena.Payment) {
	switch {
	case r.Why == arena.Hidden: // those that trained share the bond
		var more []arena.Payment
		if n := uint64(len(entries)); n > 0 {
			for _, e := range entries {
				more = append(more, arena.Payment{To: e.Account, Amount: c.Terms.Round.Bond / n, For: arena.ForBond})
			}
			c.Left -= c.Terms.Round.Bond / n * n
		}
		c, back := c.end(Hidden)
		return c, append(more, back...)
	case c.Begun == c.Terms.Rounds:
		return c.end(Done)
	}
	c.Phase, c.Until = Idle, height+Waiting
	return c, nil
}

// score adds the score of a round, and forgets those before the window.
func (m *Member) score(s uint64, window uint32) {
	m.Scores = append(slices.Clone(m.Scores), s)
	m.Scores = m.Scores[max(0, len(m.Scores)-int(window)):]
}

// Rating of a member is the median of the scores of its last rounds, the lower of the two in the middle of an even
// number. It is in millionths.
func (m Member) Rating() uint64 {
	if len(m.Scores) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(m.Scores))
	return s[(len(s)-1)/2]
}
