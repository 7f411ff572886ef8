package payout

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/protocol/payout"
)

func decode[T any](t testing.TB, b []byte) (v T) {
	t.Helper()
	if err := canon.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// until makes blocks until something is so.
func (w *town) until(what string, so func() bool, up ...int) {
	w.Helper()
	for range 30 {
		if so() {
			return
		}
		w.block(up...)
	}
	w.Fatalf("after 30 blocks: not %s", what)
}

func (w *town) has() bool {
	_, ok, err := get(w.Keeper.set.Get(w.ctx))
	return err == nil && ok
}

func (w *town) state() payout.State {
	s, _, err := get(w.states.Get(w.ctx, evm))
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// launch makes the first set, and the contract with it.
func (w *town) launch(up ...int) {
	w.Helper()
	w.until("a set", w.has, up...)
	set, err := w.Keeper.set.Get(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	digest, err := set.Digest()
	if err != nil {
		w.Fatal(err)
	}
	w.number, w.set = set.Number, digest
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "play 1,000 random blocks, as .ci/run does")

// Random withdrawals, claims, deposits, absent validators, changed powers and relayers that sleep: after each
// block the amounts on both sides are equal, and in the end everything can be claimed.
func TestCoinsAreTheSameOnBothSides(t *testing.T) {
	w := newTown(t, 30, 30, 20, 20, 10)
	r := rand.New(rand.NewPCG(1, 2))
	all := []int{0, 1, 2, 3, 4}
	w.launch(all...)
	for i := range w.accounts {
		w.name(i, []uint64{0, evm}[i%2])
	}
	blocks := 200
	if *long {
		blocks = 1000
	}
	for n := range blocks {
		up := all
		if r.IntN(4) == 0 {
			up = r.Perm(5)[:3+r.IntN(3)]
		}
		w.block(up...)
		if r.IntN(3) == 0 {
			_ = w.withdraw(r.IntN(5), []string{payout.Own, dollar}[r.IntN(2)], r.Int64N(2000))
		}
		if r.IntN(4) == 0 {
			to := w.accounts[r.IntN(5)]
			if r.IntN(10) == 0 {
				to = closed
			}
			w.deposit(r.IntN(5), []payout.Address{usdc, bridge.Zen()}[r.IntN(2)], r.Int64N(3000), to)
		}
		if r.IntN(2) == 0 {
			w.final = min(len(w.deposits), w.final+r.IntN(4))
		}
		if n/100%3 != 1 && r.IntN(5) == 0 { // a relayer, which now and then is not there for a hundred blocks
			w.relay()
		}
		if r.IntN(5) == 0 {
			w.claim(r.IntN(5))
		}
		if r.IntN(30) == 0 {
			w.powers[r.IntN(5)] = 10 + r.Int64N(30)
		}
		w.conserved()
	}
	w.final = len(w.deposits)
	w.until("deposits are credited", func() bool { return w.state().Credited == uint64(len(w.deposits)) }, all...)
	for range 20 {
		w.block(all...)
	}
	w.relay()
	for i := range w.accounts {
		w.claim(i)
	}
	w.conserved()
	if w.number < uint64(blocks/100) || w.epoch < uint64(blocks/20) || len(w.deposits) < blocks/10 {
		t.Errorf("%d sets, %d epochs, %d deposits", w.number, w.epoch, len(w.deposits))
	}
	t.Logf("%d sets, %d epochs, %d deposits", w.number, w.epoch, len(w.deposits))
}

// Validators with less than two thirds of the power sign nothing and credit nothing; with two thirds they do.
func TestTwoThirdsSign(t *testing.T) {
	w := newTown(t, 40, 27, 20, 13)
	w.launch(0, 1, 2, 3)
	w.name(0, 0)
	if err := w.withdraw(0, payout.Own, 500); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		w.block(1, 2, 3) // 60 of 100
	}
	w.deposit(1, usdc, 7, w.accounts[2])
	w.final, w.deaf = 1, 1 // the first has not seen it
	if s := w.state(); s.Epoch != 1 || s.Signed != 0 || s.Credited != 0 {
		t.Errorf("60 of 100 sign: %+v", s)
	}
	w.until("the root", func() bool { return w.state().Signed == 1 }, 0, 1) // 67
	for range 5 {
		w.block(0, 1, 2, 3)
	}
	if w.state().Credited != 0 {
		t.Error("60 of 100 credit a deposit")
	}
	w.deaf = 0
	w.until("the deposit", func() bool { return w.state().Credited == 1 }, 0, 1)
	for range 5 { // it is reported once more: the votes on a block do not know the block
		w.block(0, 1, 2, 3)
	}
	if n := w.bank[w.accounts[2].String()].AmountOf(dollar); n.Int64() != 7 {
		t.Errorf("the deposit is credited as %s", n)
	}
	w.relay()
	w.claim(0)
	if n := w.held[bridge.Zen()][w.wallets[0].Address()]; n.Int64() != 500 {
		t.Errorf("%s claimed", n)
	}
	w.conserved()
}

// While a set is too weak to sign, epochs wait, and totals grow; the next root has all of them.
func TestAStallLosesNothing(t *testing.T) {
	w := newTown(t, 30, 30, 30, 10)
	w.launch(0, 1, 2, 3)
	w.name(0, 0)
	for i := range 10 {
		if err := w.withdraw(0, payout.Own, 100); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			w.block(0, 3)
		}
		if s := w.state(); s.Epoch > 1 || s.Signed > 0 {
			t.Fatalf("%d: %+v", i, s)
		}
	}
	w.until("the second root", func() bool { return w.state().Signed == 2 }, 0, 1, 2, 3)
	w.relay()
	w.claim(0)
	if n := w.held[bridge.Zen()][w.wallets[0].Address()]; n.Int64() != 1000 {
		t.Errorf("%s claimed", n)
	}
}

// Validators that vote no more sign by a transaction, which any account sends; wrong signatures change nothing.
func TestValidatorsThatLeftSign(t *testing.T) {
	w := newTown(t, 30, 30, 30, 10)
	w.launch(0, 1, 2, 3)
	w.name(0, 0)
	if err := w.withdraw(0, payout.Own, 100); err != nil {
		t.Fatal(err)
	}
	w.powers[0], w.powers[1] = 0, 0
	for range 20 {
		w.block(2, 3)
	}
	turn, ok, err := get(w.turn.Get(w.ctx))
	if err != nil || !ok || turn.Next == nil {
		t.Fatalf("%+v (%v)", turn, err)
	}
	send := func(i, secret int, number uint64) error {
		var signatures [][]byte
		for _, m := range turn.Messages {
			s, err := payout.NewSecret(seed(secret)).Sign(m)
			if err != nil {
				t.Fatal(err)
			}
			signatures = append(signatures, s)
		}
		_, err := messages{w.Keeper}.Sign(w.ctx, &payoutpb.MsgSign{Sender: w.accounts[4].String(), Validator: validator(i),
			Turn: number, Signatures: signatures})
		return err
	}
	if err := send(0, 1, turn.Number); !errors.Is(err, payout.ErrSignature) {
		t.Errorf("the signature of another validator: %v", err)
	}
	if err := send(0, 0, turn.Number+1); !errors.Is(err, ErrTurn) {
		t.Errorf("another turn: %v", err)
	}
	if err := send(0, 0, turn.Number); err != nil {
		t.Error(err)
	}
	if err := send(2, 2, turn.Number); !errors.Is(err, ErrTurn) { // 70 of 100 have signed
		t.Errorf("after the end of the turn: %v", err)
	}
	w.until("the root", func() bool { return w.state().Signed == 1 }, 2, 3)
	w.relay()
	w.claim(0)
	if w.number != 2 || w.held[bridge.Zen()][w.wallets[0].Address()].Int64() != 100 {
		t.Errorf("set %d", w.number)
	}
}

// An address counts only with the signature of its owner for this account on this network, and small amounts stay.
func TestOnlyTheOwnerOfAnAddressNamesIt(t *testing.T) {
	w := newTown(t, 1)
	w.launch(0)
	a, sender := w.wallets[1].Address(), w.accounts[0].String()
	text := payout.Text("town", sender, a)
	for name, s := range map[string][]byte{
		"nothing":                    nil,
		"the signature of another":   w.wallets[2].SignText(text),
		"one for another account":    w.wallets[1].SignText(payout.Text("town", w.accounts[1].String(), a)),
		"one for another network":    w.wallets[1].SignText(payout.Text("city", sender, a)),
		"one with another character": append(w.wallets[1].SignText(text)[:64], 29),
	} {
		_, err := messages{w.Keeper}.SetPayout(w.ctx, &payoutpb.MsgSetPayout{Sender: sender, Address: a[:], Signature: s})
		if !errors.Is(err, payout.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.withdraw(0, payout.Own, 100); !errors.Is(err, ErrPayee) {
		t.Errorf("a withdrawal without an address: %v", err)
	}
	w.name(0, 0)
	if err := w.withdraw(0, payout.Own, 9); !errors.Is(err, ErrAmount) {
		t.Errorf("a withdrawal below the minimum: %v", err)
	}
	if err := w.withdraw(0, payout.Own, 1_000_001); !errors.Is(err, ErrFunds) {
		t.Errorf("a withdrawal of more than there is: %v", err)
	}
	if err := w.withdraw(0, "ibc/1", 100); !errors.Is(err, payout.ErrBridge) {
		t.Errorf("a withdrawal of another coin: %v", err)
	}
	w.name(1, evm) // keeps 900,000
	w.bank[w.accounts[1].String()] = adapter.Coins(900_009)
	for range 11 {
		w.block(0)
	}
	if n := w.bank[w.accounts[1].String()].AmountOf(payout.Own); n.Int64() != 900_009 {
		t.Errorf("9 uzen are withdrawn: %s are left", n)
	}
	w.bank[w.accounts[1].String()] = adapter.Coins(900_010)
	for range 11 {
		w.block(0)
	}
	if n := w.bank[w.accounts[1].String()].AmountOf(payout.Own); n.Int64() != 900_000 {
		t.Errorf("10 uzen are not withdrawn: %s are left", n)
	}
}

// FuzzBallot gives votes arbitrary texts: none stops a block, and none that fits is above the limits.
func FuzzBallot(f *testing.F) {
	w := newTown(f, 1, 1)
	w.launch(0, 1)
	w.name(0, 0)
	w.deposit(1, usdc, 7, w.accounts[2])
	w.final = 1
	if err := w.withdraw(0, payout.Own, 100); err != nil {
		f.Fatal(err)
	}
	for range 6 {
		for _, v := range w.votes {
			f.Add(v.Text)
		}
		w.block(0)
	}
	f.Add(canon.MustMarshal(ballot{Key: payout.NewSecret([]byte("x")).Public(), Proof: make([]byte, 48)}))
	f.Fuzz(func(t *testing.T, text []byte) {
		ctx, _ := w.ctx.CacheContext()
		ok, err := w.Fit(ctx, validator(1), text)
		if err != nil || ok && len(text) > maxBallot {
			t.Fatalf("%d bytes fit: %v (%v)", len(text), ok, err)
		}
		vote := w.votes[0]
		vote.Validator.Address, vote.Text = validator(1), text
		votes := append(slices.Clone(w.votes), vote)
		if err := w.Count(ctx, w.height+1, votes, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// A key of Ed25519 is named by its owner, has totals on a chain of keys alone, and its claim leads to the signed root.
func TestKeysArePaidOnTheirChains(t *testing.T) {
	w := newTown(t, 1)
	w.launch(0)
	rules, err := w.params.Get(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	keys := payout.Bridge{EVM: payout.FirstKeyed + 1, Contract: payout.Address{5}, Minimum: 10}
	rules.Bridges = append(rules.Bridges, keys)
	if err := w.params.Set(w.ctx, rules); err != nil {
		t.Fatal(err)
	}
	secret := ed25519.NewKeyFromSeed(make([]byte, 32))
	key, sender := payout.Key(secret.Public().(ed25519.PublicKey)), w.accounts[0].String()
	name := func(signature []byte, chain uint64) error {
		_, err := messages{w.Keeper}.SetPayout(w.ctx, &payoutpb.MsgSetPayout{Sender: sender, Address: key[:],
			Signature: signature, EvmChain: chain})
		return err
	}
	signature := ed25519.Sign(secret, []byte(payout.Text("town", sender, key)))
	if err := name(w.wallets[0].SignText(payout.Text("town", sender, key)), 0); !errors.Is(err, payout.ErrSignature) {
		t.Errorf("a signature of a wallet: %v", err)
	}
	if err := name(signature, evm); !errors.Is(err, payout.ErrAddress) {
		t.Errorf("a key that is paid on an Ethereum-style chain by itself: %v", err)
	}
	if err := name(signature, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.withdraw(0, payout.Own, 100); !errors.Is(err, payout.ErrAddress) {
		t.Errorf("a key that is paid on an Ethereum-style chain: %v", err)
	}
	if _, err := (messages{w.Keeper}).Withdraw(w.ctx, &payoutpb.MsgWithdraw{Sender: sender, EvmChain: keys.EVM,
		Denom: payout.Own, Amount: "100"}); err != nil {
		t.Fatal(err)
	}
	for range 23 {
		w.block(0)
	}
	r, err := Queries{w.Keeper}.Claims(w.ctx, &payoutpb.QueryClaimsRequest{EvmChain: keys.EVM,
		Address: key.Address().String()})
	if err != nil || len(r.Claims) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	var p payout.Proof
	if err := canon.Unmarshal(r.Claims[0], &p); err != nil {
		t.Fatal(err)
	}
	s, _, err := payout.Claiming("town", keys, r.Epoch, p, secret)
	if err != nil || s.Total != "100" || !bytes.Equal(s.Root[:], r.Root) || s.Address != key.String() {
		t.Errorf("%+v, %v", s, err)
	}
}
