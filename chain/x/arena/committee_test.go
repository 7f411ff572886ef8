package arena

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/committee"
)

func group() committee.Terms {
	r := small()
	r.Prize, r.Deposit, r.Set, r.Most, r.Places = 0, 0, canon.Digest{}, 0, 0
	return committee.Terms{Rounds: 2, Pay: 1000, Drawn: 2, Stake: 2_000_000, Window: 3, Members: 5, Round: r,
		Job: canon.Sum("job")}
}

// A committee is played by messages: members are drawn for its rounds, which are contests; the median of the evaluators
// is paid; a member that is silent loses a tenth of its stake; and in the end the module holds nothing.
func TestCommittee(t *testing.T) {
	a := open(t)
	m := messages{a.k}
	host := name(0)
	for n := 10; n < 13; n++ {
		a.stakes[name(n)] = 10_000_000
		_, err := m.Evaluate(a.at(), &arenapb.MsgEvaluate{Sender: name(n), Bond: 2_000_000})
		a.must(err)
	}
	bad := group()
	bad.Window = 2
	_, err := m.Convene(a.at(), FromCommittee(host, bad))
	a.refused(err, committee.ErrTerms)
	_, err = m.Convene(a.at(), FromCommittee(host, group()))
	a.must(err)
	for n := 1; n < 4; n++ {
		_, err := m.Join(a.at(), &arenapb.MsgJoin{Sender: name(n), Committee: 1, Stake: 2_000_000})
		a.must(err)
	}
	_, err = m.Join(a.at(), &arenapb.MsgJoin{Sender: name(5), Committee: 2, Stake: 2_000_000})
	a.refused(err, ErrNoCommittee)
	begin := &arenapb.MsgBegin{Sender: name(1), Committee: 1, Model: digest("model"), Url: "http://host/1",
		Set: digest("set")}
	_, err = m.Begin(a.at(), begin)
	a.refused(err, committee.ErrParty)
	begin.Sender = host
	_, err = m.Begin(a.at(), begin)
	a.must(err)
	a.block(2)
	c := a.phase(arena.Entering)
	if len(c.Invited) != 2 || c.Terms.Base != canon.Sum("model") || c.Committee != 1 {
		t.Fatalf("%+v", c)
	}
	_, err = m.Leave(a.at(), &arenapb.MsgLeave{Sender: c.Invited[0], Committee: 1})
	a.refused(err, committee.ErrBusy)
	for n := 1; n < 4; n++ {
		commitment := arena.Commitment(1, name(n), canon.Sum("mine"), canon.Sum("salt"))
		_, err = m.Enter(a.at(), &arenapb.MsgEnter{Sender: name(n), Contest: 1, Commitment: commitment[:]})
		if !slices.Contains(c.Invited, name(n)) {
			a.refused(err, arena.ErrParty)
			continue
		}
		if a.must(err); name(n) == c.Invited[0] {
			other := arena.Commitment(1, name(n), canon.Sum("other"), canon.Sum("salt"))
			_, err = m.Enter(a.at(), &arenapb.MsgEnter{Sender: name(n), Contest: 1, Commitment: other[:]})
			a.refused(err, arena.ErrTwice)
		}
	}
	a.block(2)
	c = a.phase(arena.Revealing)
	_, err = m.RevealSet(a.at(), &arenapb.MsgRevealSet{Sender: host, Contest: 1, Url: "http://host/1"})
	a.must(err)
	entries, err := a.k.entered(a.ctx, 1)
	a.must(err)
	reveals := entries[0] // the other stays silent
	_, err = m.RevealEntry(a.at(), &arenapb.MsgRevealEntry{Sender: reveals.Account, Contest: 1, Entry: reveals.Number,
		Model: digest("mine"), Salt: digest("salt"), Url: "http://mine"})
	a.must(err)
	a.block(21)
	c = a.phase(arena.Sealing)
	for i, who := range c.Panel {
		r := arena.Report{Base: 100, Entries: []arena.Judged{{Status: arena.Placed, Losses: canon.Sum("x"), Mean: 60},
			{Status: arena.Unrevealed}}}
		if i == 0 { // it lies
			r.Entries[0].Mean = 100
		}
		seal := r.Seal(1, who, canon.Sum("salt"))
		_, err = m.Seal(a.at(), &arenapb.MsgSeal{Sender: who, Contest: 1, Seal: seal[:]})
		a.must(err)
		if i == len(c.Panel)-1 {
			a.block(2)
		}
	}
	a.phase(arena.Opening)
	for i, who := range c.Panel {
		r := arena.Report{Base: 100, Entries: []arena.Judged{{Status: arena.Placed, Losses: canon.Sum("x"), Mean: 60},
			{Status: arena.Unrevealed}}}
		if i == 0 {
			r.Entries[0].Mean = 100
		}
		_, err = m.OpenReport(a.at(), &arenapb.MsgOpenReport{Sender: who, Contest: 1, Report: canon.MustMarshal(r),
			Salt: digest("salt")})
		a.must(err)
	}
	a.block(2)
	c = a.phase(arena.Paid)
	if a.paid[reveals.Account] != 1000 || a.paid[c.Panel[0]] != 0 || a.paid[c.Panel[1]] != 5 || a.paid[""] != 200_000 {
		t.Errorf("%+v", a.paid)
	}
	for _, o := range c.Outcomes {
		if (o.Why == "") != (o.Account == reveals.Account) || o.Why != "" && (o.Why != arena.Silent || o.Lost != 200_000) {
			t.Errorf("%+v", o)
		}
	}
	a.block(committee.Waiting + 2)
	for n := 1; n < 4; n++ {
		_, err := m.Leave(a.at(), &arenapb.MsgLeave{Sender: name(n), Committee: 1})
		a.must(err)
	}
	_, err = m.Leave(a.at(), &arenapb.MsgLeave{Sender: name(1), Committee: 1})
	a.refused(err, committee.ErrMember)
	q, err := Queries{a.k}.Committee(a.at(), &arenapb.QueryCommitteeRequest{Committee: 1})
	a.must(err)
	if len(q.Members) != 0 || a.held != 6_000_000 { // the bonds of the evaluators
		t.Errorf("%d members, %d held", len(q.Members), a.held)
	}
}
