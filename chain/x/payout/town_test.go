package payout

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"slices"
	"testing"

	sdkmath "cosmossdk.io/math"
	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/protocol/payout"
)

// vault is a bank: it refuses what a bank refuses.
type vault map[string]sdk.Coins

func (v vault) move(from, to string, amount sdk.Coins) error {
	left, short := v[from].SafeSub(amount...)
	if short {
		return fmt.Errorf("%s has %s, not %s", from, v[from], amount)
	}
	v[from], v[to] = left, v[to].Add(amount...)
	return nil
}

func (v vault) SpendableCoin(_ context.Context, a sdk.AccAddress, denom string) sdk.Coin {
	return sdk.NewCoin(denom, v[a.String()].AmountOf(denom))
}

func (v vault) SendCoinsFromAccountToModule(_ context.Context, from sdk.AccAddress, module string, c sdk.Coins) error {
	return v.move(from.String(), module, c)
}

func (v vault) SendCoinsFromModuleToAccount(_ context.Context, module string, to sdk.AccAddress, c sdk.Coins) error {
	if to.Equals(closed) {
		v[module] = v[module].Sub(sdk.NewCoins(sdk.NewCoin(dollar, c.AmountOf(dollar)))...) // its mint is undone
		return fmt.Errorf("%s takes no coins", to)
	}
	return v.move(module, to.String(), c)
}

func (v vault) MintCoins(_ context.Context, module string, c sdk.Coins) error {
	v[module] = v[module].Add(c...)
	return nil
}

func (v vault) BurnCoins(_ context.Context, module string, c sdk.Coins) error {
	return v.move(module, "burned", c)
}

// closed is an account that takes no coins, as those of modules.
var closed = sdk.AccAddress(bytes.Repeat([]byte{9}, 20))

const evm = 1337

var (
	contract = payout.Address{0xc0}
	usdc     = payout.Address{0x05}
	bridge   = payout.Bridge{EVM: evm, Contract: contract, Minimum: 10, Tokens: []payout.Token{{Address: usdc}}}
	dollar   = fmt.Sprintf("evm/%d/0x05%038d", evm, 0)
)

// town is a network with validators, the contract as protocol/payout describes it, and accounts on both sides.
type town struct {
	testing.TB
	*Keeper
	ctx      sdk.Context
	height   int64
	bank     vault
	powers   []int64 // of validators
	deaf     int     // validators below it have seen no deposits
	votes    []beacon.Said
	accounts []sdk.AccAddress
	wallets  []payout.Wallet

	// The other chain: what the contract knows, and what it holds and owes.
	number, epoch uint64
	set           payout.Digest
	roots         [2]payout.Digest
	claimed       map[[40]byte]*big.Int
	held          map[payout.Address]map[payout.Address]*big.Int // by token and owner
	deposits      []payout.Deposit
	final         int // deposits that are final
}

func (w *town) After(_ uint64, _ payout.Address, number uint64) []payout.Deposit {
	return w.deposits[min(int(number), w.final):w.final]
}

func newTown(t testing.TB, powers ...int64) *town {
	t.Helper()
	store, ctx := storetest.Open(t, Name)
	w := &town{TB: t, ctx: ctx.WithChainID("town"), bank: vault{}, powers: powers, claimed: map[[40]byte]*big.Int{},
		held: map[payout.Address]map[payout.Address]*big.Int{usdc: {}, bridge.Zen(): {}}}
	var err error
	if w.Keeper, err = NewKeeper(store, "governance", w.bank, w); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		a := sdk.AccAddress(bytes.Repeat([]byte{byte(i + 1)}, 20))
		wallet, err := payout.NewWallet(bytes.Repeat([]byte{byte(i + 1)}, 32))
		if err != nil {
			t.Fatal(err)
		}
		w.accounts, w.wallets = append(w.accounts, a), append(w.wallets, wallet)
		w.bank[a.String()] = adapter.Coins(1_000_000)
		w.held[usdc][wallet.Address()] = big.NewInt(1_000_000)
	}
	if _, err := (messages{w.Keeper}).UpdateParams(w.ctx, &payoutpb.MsgUpdateParams{Authority: "governance",
		Params: FromParams(payout.Params{EpochBlocks: 5, Bridges: []payout.Bridge{bridge}})}); err != nil {
		t.Fatal(err)
	}
	return w
}

func validator(i int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, 20) }

func seed(i int) []byte { return fmt.Appendf(nil, "seed %d", i) }

// block makes a block from the votes on the one before, and the validators in up vote on it.
func (w *town) block(up ...int) {
	w.Helper()
	w.height++
	w.ctx = w.ctx.WithBlockHeight(w.height)
	var powers []abci.Validator
	for i, p := range w.powers {
		if p > 0 {
			powers = append(powers, abci.Validator{Address: validator(i), Power: p})
		}
	}
	if err := w.Count(w.ctx, w.height, w.votes, powers); err != nil {
		w.Fatalf("block %d: %v", w.height, err)
	}
	w.votes = nil
	for _, i := range up {
		if w.powers[i] == 0 {
			continue
		}
		had := w.watcher
		if i < w.deaf {
			w.watcher = nil
		}
		text, err := w.Speak(w.ctx, validator(i), seed(i))
		w.watcher = had
		if err != nil {
			w.Fatal(err)
		}
		if ok, err := w.Fit(w.ctx, validator(i), text); err != nil || !ok {
			w.Fatalf("the vote of validator %d on block %d is refused (%v)", i, w.height, err)
		}
		w.votes = append(w.votes, beacon.Said{Validator: abci.Validator{Address: validator(i), Power: w.powers[i]},
			Text: text})
	}
}

// name gives an account its address, whose owner signs.
func (w *town) name(account int, automatic uint64) {
	w.Helper()
	a, sender := w.wallets[account].Address(), w.accounts[account].String()
	if _, err := (messages{w.Keeper}).SetPayout(w.ctx, &payoutpb.MsgSetPayout{Sender: sender, Address: a[:],
		Signature: w.wallets[account].SignText(payout.Text("town", sender, a)), EvmChain: automatic,
		Keep: 900_000}); err != nil {
		w.Fatal(err)
	}
}

func (w *town) withdraw(account int, denom string, amount int64) error {
	_, err := messages{w.Keeper}.Withdraw(w.ctx, &payoutpb.MsgWithdraw{Sender: w.accounts[account].String(), EvmChain: evm,
		Denom: denom, Amount: fmt.Sprint(amount)})
	return err
}

// relay brings the contract up to date, as any account may: handovers first, then the root.
func (w *town) relay() {
	w.Helper()
	r, err := Queries{w.Keeper}.Handovers(w.ctx, &payoutpb.QueryHandoversRequest{After: w.number})
	if err != nil {
		w.Fatal(err)
	}
	for range r.Handovers {
		h, err := w.handovers.Get(w.ctx, w.number+1)
		if err != nil {
			w.Fatal(err)
		}
		if err := h.Certificate.Check(w.set, payout.HandoverMessage(payout.Network("town"), h.Number, h.Set)); err != nil {
			w.Fatalf("handover %d: %v", h.Number, err)
		}
		w.number, w.set = h.Number, h.Set
	}
	s, ok, err := get(w.states.Get(w.ctx, evm))
	if err != nil {
		w.Fatal(err)
	}
	if !ok || s.Signed <= w.epoch || s.Set != w.number { // a root by the set before: the next one is under way
		return
	}
	message := payout.RootMessage(payout.Network("town"), evm, contract, s.Signed, s.Root)
	if err := s.Certificate.Check(w.set, message); err != nil {
		w.Fatalf("root %d: %v", s.Signed, err)
	}
	w.epoch, w.roots = s.Signed, [2]payout.Digest{s.Root, w.roots[0]}
}

// claim pays an address all that it may claim.
func (w *town) claim(account int) {
	w.Helper()
	a := w.wallets[account].Address()
	r, err := Queries{w.Keeper}.Claims(w.ctx, &payoutpb.QueryClaimsRequest{EvmChain: evm, Address: a.String()})
	if err != nil {
		w.Fatal(err)
	}
	for _, raw := range r.Claims {
		p := decode[payout.Proof](w, raw)
		c := payout.Claim{Account: p.Account, Token: p.Token, Total: new(big.Int).SetBytes(p.Total)}
		if !slices.Contains(w.roots[:], payout.RootOf(c.Leaf(), p.Path)) {
			if r.Epoch <= w.epoch {
				w.Fatalf("a claim of epoch %d is not proven", r.Epoch)
			}
			continue // the root is not there yet
		}
		key := [40]byte(payout.Entry{Account: a, Token: p.Token}.Key())
		had := w.claimed[key]
		if had == nil {
			had = new(big.Int)
		}
		if c.Total.Cmp(had) <= 0 {
			continue
		}
		w.claimed[key] = c.Total
		w.give(p.Token, a, new(big.Int).Sub(c.Total, had))
	}
}

func (w *town) give(token, to payout.Address, amount *big.Int) {
	if w.held[token][to] == nil {
		w.held[token][to] = new(big.Int)
	}
	w.held[token][to].Add(w.held[token][to], amount)
}

// deposit takes tokens of a wallet for an account; it is final later.
func (w *town) deposit(wallet int, token payout.Address, amount int64, to sdk.AccAddress) {
	a, n := w.wallets[wallet].Address(), big.NewInt(amount)
	if had := w.held[token][a]; had == nil || had.Cmp(n) < 0 || amount == 0 {
		return
	}
	w.give(token, a, new(big.Int).Neg(n))
	w.deposits = append(w.deposits, payout.Deposit{Number: uint64(len(w.deposits) + 1), Token: token, From: a, To: to,
		Amount: n.Bytes()})
}

// conserved checks that coins and tokens are the same amounts on both sides: those on one side stand for those locked,
// burned or held on the other, but for those that are on their way.
func (w *town) conserved() {
	w.Helper()
	credited := uint64(0)
	if s, ok, err := get(w.states.Get(w.ctx, evm)); err != nil {
		w.Fatal(err)
	} else if ok {
		credited = s.Credited
	}
	for _, token := range []payout.Address{usdc, bridge.Zen()} {
		out, coming, unclaimed := new(big.Int), new(big.Int), new(big.Int)
		for _, n := range w.held[token] {
			out.Add(out, n)
		}
		for _, d := range w.deposits[credited:] {
			if d.Token == token {
				coming.Add(coming, new(big.Int).SetBytes(d.Amount))
			}
		}
		if err := w.entries.Walk(w.ctx, nil, func(_ entryKey, e payout.Entry) (bool, error) {
			if e.Token == token {
				unclaimed.Add(unclaimed, new(big.Int).SetBytes(e.Total))
				if had := w.claimed[[40]byte(e.Key())]; had != nil {
					unclaimed.Sub(unclaimed, had)
				}
			}
			return false, nil
		}); err != nil {
			w.Fatal(err)
		}
		there := new(big.Int).Add(out, coming)
		there.Add(there, unclaimed)
		if token == usdc { // all that there is of it is there, or a coin here
			here := new(big.Int)
			for owner, coins := range w.bank {
				if owner != "burned" {
					here.Add(here, coins.AmountOf(dollar).BigInt())
				}
			}
			if there.Add(there, here); there.Cmp(big.NewInt(5_000_000)) != 0 {
				w.Fatalf("block %d: there are %s of 5000000 dollars", w.height, there)
			}
			continue
		}
		if locked := w.bank[Name].AmountOf(payout.Own); !locked.Equal(sdkmath.NewIntFromBigInt(there)) {
			w.Fatalf("block %d: %s uzen are locked for %s tokens", w.height, locked, there)
		}
	}
	total := sdkmath.ZeroInt()
	for _, coins := range w.bank {
		total = total.Add(coins.AmountOf(payout.Own))
	}
	if !total.Equal(sdkmath.NewInt(5_000_000)) {
		w.Fatalf("block %d: there are %s uzen", w.height, total)
	}
}
