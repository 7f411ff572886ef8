package arena

import (
	"context"
	"errors"
	"fmt"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter/custody"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// around is a chain on which every account has coins, and is a verifier unless its stake is 0.
type around struct {
	t      *testing.T
	k      *Keeper
	height int64
	ctx    sdk.Context
	held   uint64            // by the module, in uzen
	paid   map[string]uint64 // to accounts and, as "", to the community pool
	stakes map[string]uint64
	beacon canon.Digest
}

func open(t *testing.T) *around {
	t.Helper()
	store, ctx := storetest.Open(t, Name)
	a := &around{t: t, ctx: ctx, height: 1, paid: map[string]uint64{}, stakes: map[string]uint64{},
		beacon: canon.Sum("beacon")}
	var err error
	held := custody.Custody{Module: Name, Account: sdk.AccAddress(Name), Bank: a, Pool: a, Coins: a}
	a.k, err = NewKeeper(store, held, a, verifiers{a})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *around) SendCoinsFromAccountToModule(_ context.Context, _ sdk.AccAddress, _ string, c sdk.Coins) error {
	a.held += c[0].Amount.Uint64()
	return nil
}

func (a *around) SendCoinsFromModuleToAccount(_ context.Context, _ string, to sdk.AccAddress, c sdk.Coins) error {
	a.held -= c[0].Amount.Uint64()
	a.paid[to.String()] += c[0].Amount.Uint64()
	return nil
}

func (a *around) FundCommunityPool(_ context.Context, c sdk.Coins, _ sdk.AccAddress) error {
	a.held -= c[0].Amount.Uint64()
	a.paid[""] += c[0].Amount.Uint64()
	return nil
}

func (a *around) Find(context.Context, string) (coin.Registered, error) {
	return coin.Registered{}, nil
}

func (a *around) Open(context.Context, string) (coin.Registered, error) {
	return coin.Registered{}, nil
}

func (a *around) At(context.Context, int64) (canon.Digest, error) { return a.beacon, nil }

type verifiers struct{ *around }

func (v verifiers) Get(_ context.Context, id string) (registry.Participant, error) {
	if v.stakes[id] == 0 {
		return registry.Participant{}, errors.New("unknown")
	}
	return registry.Participant{ID: id, Roles: []crew.Role{crew.Verifier}, Stake: v.stakes[id]}, nil
}

func (v verifiers) Params(context.Context) (registry.Params, error) {
	return registry.DefaultParams(), nil
}

func name(n int) string { return sdk.AccAddress(fmt.Sprintf("account %012d", n)).String() }

func (a *around) at() sdk.Context { return a.ctx.WithBlockHeight(a.height) }

func (a *around) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *around) refused(err, want error) {
	a.t.Helper()
	if !errors.Is(err, want) {
		a.t.Errorf("%v, wanted %v", err, want)
	}
}

func (a *around) block(n int64) {
	a.t.Helper()
	for range n {
		a.must(a.k.EndBlock(a.at()))
		a.height++
	}
}

func (a *around) phase(want arena.Phase) arena.Contest {
	a.t.Helper()
	c, err := a.k.contest(a.ctx, 1)
	a.must(err)
	if c.Phase != want {
		a.t.Fatalf("%s, wanted %s: %+v", c.Phase, want, c)
	}
	return c
}

func digest(s string) []byte {
	d := canon.Sum(s)
	return d[:]
}

// A contest is played by messages: phases end a block after their last message, a block without a beacon ends none, the
// coins of the module are those of its records, and an evaluator that is silent loses a tenth of its bond.
func TestMessages(t *testing.T) {
	a := open(t)
	m := messages{a.k}
	host, ann := name(0), name(1)
	for n := 2; n < 5; n++ {
		a.stakes[name(n)] = 10_000_000
		if _, err := m.Evaluate(a.at(), &arenapb.MsgEvaluate{Sender: name(n), Bond: 2_000_000}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := m.Evaluate(a.at(), &arenapb.MsgEvaluate{Sender: ann, Bond: 2_000_000})
	a.refused(err, arena.ErrEvaluator)
	a.stakes[name(5)] = 1
	_, err = m.Evaluate(a.at(), &arenapb.MsgEvaluate{Sender: name(5), Bond: 1})
	a.refused(err, arena.ErrEvaluator)
	terms := arena.Terms{Title: "x", Prize: 1000, Bond: 100, Deposit: 10, Fee: 5, Panel: 3, Set: canon.Sum("set"),
		Examples: 100, Vocab: 10, Length: 10, MaxBytes: 10, Most: 2, Entering: 20, Revealing: 20, Judging: 20, Places: 1,
		Tokenizer: canon.Sum("tokenizer"), About: "https://contest.example"}
	bad := terms
	bad.Panel = 1
	_, err = m.Create(a.at(), &arenapb.MsgCreate{Sender: host, Terms: FromTerms(bad)})
	a.refused(err, arena.ErrTerms)
	r, err := m.Create(a.at(), &arenapb.MsgCreate{Sender: host, Terms: FromTerms(terms)})
	a.must(err)
	if c := a.phase(arena.Entering); r.Contest != 1 || c.Terms != terms || a.held != 6_000_000+1115 {
		t.Fatalf("%+v, %d", c, a.held)
	}
	commitment := arena.Commitment(1, ann, canon.Sum("model"), canon.Sum("salt"))
	_, err = m.Enter(a.at(), &arenapb.MsgEnter{Sender: ann, Contest: 2, Commitment: commitment[:]})
	a.refused(err, ErrNone)
	_, err = m.Enter(a.at(), &arenapb.MsgEnter{Sender: ann, Contest: 1, Commitment: commitment[:]})
	a.must(err)
	_, err = m.Enter(a.at(), &arenapb.MsgEnter{Sender: host, Contest: 1, Commitment: commitment[:]})
	a.refused(err, arena.ErrTwice)
	a.block(21)
	a.phase(arena.Entering)
	a.beacon = canon.Digest{}
	a.block(2)
	a.phase(arena.Entering)
	a.beacon = canon.Sum("beacon")
	a.block(1)
	a.phase(arena.Revealing)
	_, err = m.RevealSet(a.at(), &arenapb.MsgRevealSet{Sender: host, Contest: 1, Url: "http://set"})
	a.must(err)
	_, err = m.RevealEntry(a.at(), &arenapb.MsgRevealEntry{Sender: ann, Contest: 1, Entry: 2, Model: digest("model"),
		Salt: digest("salt"), Url: "http://model"})
	a.refused(err, ErrNone)
	_, err = m.RevealEntry(a.at(), &arenapb.MsgRevealEntry{Sender: ann, Contest: 1, Entry: 1, Model: digest("model"),
		Salt: digest("salt"), Url: "http://model"})
	a.must(err)
	a.block(2)
	c := a.phase(arena.Sealing)
	_, err = m.Retire(a.at(), &arenapb.MsgRetire{Sender: c.Panel[0]})
	a.refused(err, arena.ErrBusy)
	report := arena.Report{Entries: []arena.Judged{{Status: arena.Placed, Losses: canon.Sum("losses"), Mean: 7, Group: 1}}}
	for _, who := range c.Panel[:2] {
		seal := report.Seal(1, who, canon.Sum("salt"))
		_, err = m.Seal(a.at(), &arenapb.MsgSeal{Sender: who, Contest: 1, Seal: seal[:]})
		a.must(err)
		_, err = m.Seal(a.at(), &arenapb.MsgSeal{Sender: who, Contest: 1, Seal: seal[:]})
		a.refused(err, arena.ErrTwice)
	}
	a.block(21)
	a.phase(arena.Opening)
	shown := &arenapb.MsgOpenReport{Sender: c.Panel[2], Contest: 1, Report: canon.MustMarshal(report),
		Salt: digest("salt")}
	_, err = m.OpenReport(a.at(), shown)
	a.refused(err, arena.ErrParty)
	for _, who := range c.Panel[:2] {
		shown.Sender = who
		_, err = m.OpenReport(a.at(), shown)
		a.must(err)
	}
	a.block(2)
	a.phase(arena.Paid)
	if a.held != 6_000_000-200_000 || a.paid[ann] != 1010 || a.paid[host] != 105 || a.paid[""] != 200_000 ||
		a.paid[c.Panel[0]] != 5 {
		t.Errorf("%d, %+v", a.held, a.paid)
	}
	for n := 2; n < 5; n++ {
		_, err := m.Retire(a.at(), &arenapb.MsgRetire{Sender: name(n)})
		a.must(err)
	}
	if a.held != 0 {
		t.Errorf("%d stay", a.held)
	}
	q, err := Queries{a.k}.Contest(a.at(), &arenapb.QueryContestRequest{Contest: 1})
	if err != nil || len(q.Entries) != 1 || len(q.Opinions) != 2 {
		t.Errorf("%+v, %v", q, err)
	}
}
