package payout

import (
	"errors"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/protocol/payout"
)

// far is a second bridge.
var far = payout.Bridge{EVM: 7, Contract: payout.Address{0xfa}, Minimum: 10}

// reach adds the second bridge.
func (w *town) reach() {
	w.Helper()
	if _, err := (messages{w.Keeper}).UpdateParams(w.ctx, &payoutpb.MsgUpdateParams{Authority: "governance",
		Params: FromParams(payout.Params{EpochBlocks: 5, Bridges: []payout.Bridge{bridge, far}})}); err != nil {
		w.Fatal(err)
	}
}

// forged is a deposit of ZEN that the contract of a bridge never took.
func forged(b payout.Bridge, number uint64, to sdk.AccAddress) payout.Deposit {
	return payout.Deposit{Number: number, Token: b.Zen(), From: payout.Address{1}, To: to, Amount: []byte{200}}
}

// A validator with a sixth of the power that reports a deposit four times, between reports of another chain, counts
// once, and not at all: its vote is refused.
func TestAValidatorCountsOnce(t *testing.T) {
	w := newTown(t, 10, 50)
	w.launch(0, 1)
	w.reach()
	w.name(0, 0)
	if err := w.withdraw(0, payout.Own, 500); err != nil {
		t.Fatal(err)
	}
	var b ballot
	for range 4 {
		b.Reports = append(b.Reports,
			report{EVM: evm, Deposits: []payout.Deposit{forged(bridge, 1, w.accounts[4])}},
			report{EVM: far.EVM, Deposits: []payout.Deposit{forged(far, 1, w.accounts[4])}})
	}
	text := canon.MustMarshal(b)
	if ok, err := w.Fit(w.ctx, validator(0), text); err != nil || ok {
		t.Errorf("the vote fits: %v, %v", ok, err)
	}
	w.block(0, 1)
	w.votes[0].Text = text
	w.block(0, 1)
	if s := w.state(); s.Credited != 0 {
		t.Errorf("%+v", s)
	}
	if d, ok := agreed(payout.Set{Total: 60}, evm, 1, []spoken{{validator: w.votes[0].Validator, ballot: b}}); ok {
		t.Errorf("a sixth agrees on %+v", d)
	}
}

// A chain of which all validators report forged deposits releases what the network holds for its bridge, and nothing of
// the others.
func TestABridgeReleasesItsOwn(t *testing.T) {
	w := newTown(t, 1)
	w.launch(0)
	w.reach()
	w.name(0, 0)
	if err := w.withdraw(0, payout.Own, 500); err != nil { // by the first bridge
		t.Fatal(err)
	}
	had := w.bank[w.accounts[4].String()]
	for number := uint64(1); number < 3; number++ {
		w.block(0)
		w.votes[0].Text = canon.MustMarshal(ballot{Reports: []report{{EVM: far.EVM,
			Deposits: []payout.Deposit{forged(far, number, w.accounts[4])}}}})
		w.block(0)
	}
	s, err := w.states.Get(w.ctx, far.EVM)
	if err != nil || s.Credited != 2 || s.Returned != 0 || !w.bank[w.accounts[4].String()].Equal(had) {
		t.Errorf("%+v, %v: %s, and had %s", s, err, w.bank[w.accounts[4].String()], had)
	}
	if w.state().Locked != 500 {
		t.Errorf("%+v", w.state())
	}
}

// A node of another chain that shows a deposit of nothing takes no vote from its validator.
func TestALyingNodeTakesNoVote(t *testing.T) {
	w := newTown(t, 1)
	w.deposits, w.final = []payout.Deposit{{Number: 1, Token: usdc, To: w.accounts[0]}}, 1
	w.launch(0) // the votes fit
	if s := w.state(); s.Credited != 0 {
		t.Errorf("%+v", s)
	}
}

// A long amount is refused before it is read, and an epoch of no blocks while there is a bridge.
func TestMessagesThatCostMuch(t *testing.T) {
	if _, err := number(strings.Repeat("9", 5_000_000)); !errors.Is(err, ErrAmount) {
		t.Error(err)
	}
	w := newTown(t, 1)
	if _, err := (messages{w.Keeper}).UpdateParams(w.ctx, &payoutpb.MsgUpdateParams{Authority: "governance",
		Params: FromParams(payout.Params{Bridges: []payout.Bridge{bridge}})}); !errors.Is(err, payout.ErrBridge) {
		t.Error(err)
	}
}
