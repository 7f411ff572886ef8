package arena

import (
	"context"
	"errors"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/protocol/arena"
)

func small() arena.Terms {
	return arena.Terms{Title: "x", Prize: 1000, Bond: 100, Deposit: 10, Fee: 5, Panel: 3, Set: canon.Sum("set"),
		Examples: 100, Vocab: 10, Length: 10, MaxBytes: 10, Most: 1, Entering: 20, Revealing: 20, Judging: 20, Places: 1,
		Tokenizer: canon.Sum("tokenizer"), About: "https://contest.example"}
}

// broken is a bank that cannot pay.
type broken struct {
	*around
	fails bool
}

func (b *broken) SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress,
	c sdk.Coins) error {
	if b.fails {
		return errors.New("it cannot pay")
	}
	return b.around.SendCoinsFromModuleToAccount(ctx, module, to, c)
}

// A contest whose end fails is turned again later: its coins are not locked for ever.
func TestFailedTurns(t *testing.T) {
	a := open(t)
	b := &broken{around: a, fails: true}
	a.k.custody.Bank = b
	m := messages{a.k}
	_, err := m.Create(a.at(), &arenapb.MsgCreate{Sender: name(0), Terms: FromTerms(small())})
	a.must(err)
	a.block(25)
	a.phase(arena.Entering)
	b.fails = false
	a.block(again)
	if a.phase(arena.Void); a.held != 0 || a.paid[name(0)] != 1115 {
		t.Errorf("%d stay, %+v", a.held, a.paid)
	}
}

// A party that begins many contests at once takes not more than a few tenths of the bond of an evaluator.
func TestManyContestsAtOnce(t *testing.T) {
	a := open(t)
	m := messages{a.k}
	for n := 2; n < 5; n++ {
		a.stakes[name(n)] = 10_000_000
		_, err := m.Evaluate(a.at(), &arenapb.MsgEvaluate{Sender: name(n), Bond: 2_000_000})
		a.must(err)
	}
	for id := uint64(1); id <= 8; id++ {
		_, err := m.Create(a.at(), &arenapb.MsgCreate{Sender: name(0), Terms: FromTerms(small())})
		a.must(err)
		c := arena.Commitment(id, name(1), canon.Sum("model"), canon.Sum("salt"))
		_, err = m.Enter(a.at(), &arenapb.MsgEnter{Sender: name(1), Contest: id, Commitment: c[:]})
		a.must(err)
	}
	a.block(2)
	for id := uint64(1); id <= 8; id++ {
		_, err := m.RevealSet(a.at(), &arenapb.MsgRevealSet{Sender: name(0), Contest: id, Url: "http://set"})
		a.must(err)
		_, err = m.RevealEntry(a.at(), &arenapb.MsgRevealEntry{Sender: name(1), Contest: id, Entry: 1,
			Model: digest("model"), Salt: digest("salt"), Url: "http://model"})
		a.must(err)
	}
	a.block(50)
	if e, err := a.k.evaluator(a.ctx, name(2)); err != nil || e.Panels > 0 || e.Bond < 1_400_000 {
		t.Errorf("%+v, %v", e, err)
	}
}

// An evaluator has the stake of a verifier: a place among a thousand is not for a bond alone.
func TestEvaluatorsHaveStake(t *testing.T) {
	a := open(t)
	a.stakes[name(2)] = 1
	_, err := messages{a.k}.Evaluate(a.at(), &arenapb.MsgEvaluate{Sender: name(2), Bond: 2_000_000})
	a.refused(err, arena.ErrEvaluator)
}
