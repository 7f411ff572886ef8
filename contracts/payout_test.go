package contracts_test

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"github.com/starling-network/starling/protocol/payout"
)

func call(to *common.Address, data []byte) ethereum.CallMsg {
	return ethereum.CallMsg{To: to, Data: data}
}

func secret(i int) payout.Secret { return payout.NewSecret(fmt.Appendf(nil, "validator %d", i)) }

// setOf is a set of validators with powers; the first has secret(first).
func setOf(number uint64, first int, powers ...uint64) payout.Set {
	s := payout.Set{Number: number}
	for i, p := range powers {
		s.Members = append(s.Members, payout.Member{Validator: []byte{byte(first + i)}, Key: secret(first + i).Public(),
			Power: p})
		s.Total += p
	}
	return s
}

// signed is a certificate of a set, without those that are absent.
func signed(t testing.TB, s payout.Set, message payout.Digest, absent ...int) payout.Certificate {
	t.Helper()
	signatures := make([][]byte, len(s.Members))
	for i, m := range s.Members {
		if slices.Contains(absent, i) {
			continue
		}
		var err error
		if signatures[i], err = secret(int(m.Validator[0])).Sign(message); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Certify(signatures)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func root(t testing.TB, epoch uint64, r payout.Digest, c payout.Certificate) []byte {
	t.Helper()
	data, err := payout.CallRoot(epoch, r, c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func handovers(t testing.TB, list ...payout.Handover) []byte {
	t.Helper()
	data, err := payout.CallHandovers(list)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// next is the handover from a set to the next one.
func next(t testing.TB, from, to payout.Set, absent ...int) payout.Handover {
	t.Helper()
	digest, err := to.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return payout.Handover{Number: to.Number, Set: digest,
		Certificate: signed(t, from, payout.HandoverMessage(network, to.Number, digest), absent...)}
}

// rootOf is the signed root of claims.
func (w *world) rootOf(s payout.Set, epoch uint64, claims payout.Claims, absent ...int) []byte {
	w.Helper()
	r := claims.Tree().Root()
	return root(w, epoch, r, signed(w, s, payout.RootMessage(network, chain, w.contract, epoch, r), absent...))
}

func (w *world) account(n int) payout.Address {
	d := payout.Keccak([]byte{byte(n)})
	return payout.Address(d[:20])
}

// claims are a claim for each of n accounts.
func (w *world) claims(token payout.Address, n int, total int64) payout.Claims {
	var list payout.Claims
	for i := range n {
		list = append(list, payout.Claim{Account: w.account(i), Token: token, Total: big.NewInt(total + int64(i))})
	}
	list.Sort()
	return list
}

func proven(list payout.Claims, which ...int) (out []payout.Proof) {
	t := list.Tree()
	for _, i := range which {
		out = append(out, list.Proof(t, i))
	}
	return out
}

func until(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestGas measures the calls, with 21 validators of which up to 7 are absent, in go-ethereum: they are
// within the limits, and in docs/payouts.md.
func TestGas(t *testing.T) {
	s := setOf(1, 0, slices.Repeat([]uint64{10}, 21)...)
	w := newWorld(t).open(s)
	zen := w.zen()
	claims := w.claims(zen, 201, 1_000_000)
	costs := map[string]uint64{}
	costs["the first root"] = w.must("root", 1, &w.contract, w.rootOf(s, 1, claims))
	w.must("root", 1, &w.contract, w.rootOf(s, 2, claims))
	costs["root, all sign"] = w.must("root", 1, &w.contract, w.rootOf(s, 3, claims))
	costs["root, 7 of 21 absent"] = w.must("root", 1, &w.contract, w.rootOf(s, 4, claims, 0, 3, 4, 8, 9, 15, 20))
	costs["claim"] = w.must("claim", 2, &w.contract, payout.CallClaims(proven(claims, 0)))
	hundred := until(101)[1:]
	costs["100 claims, each"] = w.must("claims", 2, &w.contract, payout.CallClaims(proven(claims, hundred...))) / 100
	again := w.claims(zen, 201, 2_000_000)
	w.must("root", 1, &w.contract, w.rootOf(s, 5, again))
	costs["claim again"] = w.must("claim", 2, &w.contract, payout.CallClaims(proven(again, 0)))
	n := setOf(2, 0, slices.Repeat([]uint64{11}, 21)...)
	costs["handover"] = w.must("handover", 3, &w.contract, handovers(t, next(t, s, n)))
	for name, limit := range map[string]uint64{"the first root": 250_000, "root, all sign": 250_000,
		"root, 7 of 21 absent": 250_000, "claim": 110_000,
		"100 claims, each": 60_000, "claim again": 110_000, "handover": 250_000} {
		t.Logf("%s: %d gas", name, costs[name])
		if costs[name] > limit {
			t.Errorf("%s: %d gas, more than %d", name, costs[name], limit)
		}
	}
	have := w.ask(w.contract, w.abi, "claimed", common.Address(claims[0].Account), common.Address(zen))[0].(*big.Int)
	if have.Cmp(again[0].Total) != 0 {
		t.Errorf("%s claimed, not %s", have, again[0].Total)
	}
}

// Fifteen messages that validators did not sign for this contract at this time, each refused.
func TestForgedMessagesAreRefused(t *testing.T) {
	s, n := setOf(1, 0, 40, 30, 20, 10), setOf(2, 4, 40, 30, 20, 10)
	w := newWorld(t).open(s)
	zen := w.zen()
	claims := w.claims(zen, 5, 100)
	r := claims.Tree().Root()
	message := payout.RootMessage(network, chain, w.contract, 2, r)
	good := signed(t, s, message)
	change := func(f func(*payout.Certificate)) payout.Certificate {
		c := good
		c.Absent = slices.Clone(good.Absent)
		f(&c)
		return c
	}
	weak := signed(t, s, message, 0) // 60 of 100
	other := setOf(1, 9, 40, 30, 20, 10)
	rooted := func(m payout.Digest) []byte { return root(t, 2, r, signed(t, s, m)) }
	minority := payout.Set{Number: 1, Members: s.Members[:1], Total: 40} // a set that one validator makes up
	forged := []struct {
		name string
		data []byte
	}{
		{"a root for another EVM chain", rooted(payout.RootMessage(network, 1, w.contract, 2, r))},
		{"a root for another contract", rooted(payout.RootMessage(network, chain, zen, 2, r))},
		{"a root of another network", rooted(payout.RootMessage(payout.Network("other"), chain, w.contract, 2, r))},
		{"a root of another epoch", rooted(payout.RootMessage(network, chain, w.contract, 3, r))},
		{"another root", rooted(payout.RootMessage(network, chain, w.contract, 2, payout.Digest{1}))},
		{"a root by a set of others", root(t, 2, r, signed(t, other, message))},
		{"a root by a set that one validator made up", root(t, 2, r, signed(t, minority, message))},
		{"a root by less than two thirds", root(t, 2, r, weak)},
		{"a root by less than two thirds, with the absent left out", root(t, 2, r, func() payout.Certificate {
			c := weak
			c.Absent = nil
			return c
		}())},
		{"a root with more power than the set has", root(t, 2, r, change(func(c *payout.Certificate) { c.Power = 1 << 60 }))},
		{"a root with a lower total", root(t, 2, r, change(func(c *payout.Certificate) { c.Total = 1 }))},
		{"a root with a member absent twice", root(t, 2, r, func() payout.Certificate {
			c := signed(t, s, message, 3)
			c.Absent = append(c.Absent, c.Absent[0])
			return c
		}())},
		{"a root with a member of another power", root(t, 2, r, func() payout.Certificate {
			c := signed(t, s, message, 0)
			c.Absent[0].Power = 1
			return c
		}())},
		{"a handover as a root", root(t, 2, r, signed(t, s, payout.HandoverMessage(network, 2, r)))},
		{"a handover with another number", handovers(t, func() payout.Handover {
			h := next(t, s, n)
			h.Certificate = signed(t, s, payout.HandoverMessage(network, 3, h.Set))
			return h
		}())},
		{"a handover that the next set signs itself", handovers(t, func() payout.Handover {
			h := next(t, s, n)
			h.Certificate = signed(t, n, payout.HandoverMessage(network, 2, h.Set))
			return h
		}())},
		{"a handover of another network", handovers(t, func() payout.Handover {
			h := next(t, s, n)
			h.Certificate = signed(t, s, payout.HandoverMessage(payout.Network("other"), 2, h.Set))
			return h
		}())},
		{"a signature of zero", func() []byte {
			data := root(t, 2, r, good)
			at := bytes.LastIndex(data, payoutPoint(t, good.Signature))
			return slices.Concat(data[:at], make([]byte, 128), data[at+128:])
		}()},
	}
	for i, f := range forged {
		w.refused(fmt.Sprintf("forged %02d: %s", i+1, f.name), 4, &w.contract, f.data)
	}
	w.must("the right root", 4, &w.contract, root(t, 2, r, good))
	changed := func(f func(*payout.Proof)) []byte {
		p := proven(claims, 0)
		f(&p[0])
		return payout.CallClaims(p)
	}
	for name, data := range map[string][]byte{
		"the same root again":      root(t, 2, r, good),
		"an epoch before":          w.rootOf(s, 1, claims),
		"a claim of another":       changed(func(p *payout.Proof) { p.Account = w.account(9) }),
		"a claim of more":          changed(func(p *payout.Proof) { p.Total = big.NewInt(1 << 40).Bytes() }),
		"a claim of another token": changed(func(p *payout.Proof) { p.Token = w.account(3) }),
	} {
		w.refused(name, 4, &w.contract, data)
	}
	later := w.claims(zen, 5, 200)
	w.must("the next root", 4, &w.contract, w.rootOf(s, 5, later))
	w.must("a claim in the epoch before", 4, &w.contract, payout.CallClaims(proven(claims, 0)))
	w.must("a claim", 4, &w.contract, payout.CallClaims(proven(later, 0, 1)))
	w.must("the root after", 4, &w.contract, w.rootOf(s, 6, later))
	w.must("one more root", 4, &w.contract, w.rootOf(s, 7, w.claims(zen, 6, 300)))
	w.refused("a claim in an old epoch", 4, &w.contract, payout.CallClaims(proven(claims, 2)))
	w.must("a handover", 4, &w.contract, handovers(t, next(t, s, n, 3)))
	w.elsewhere(t, w.claims(zen, 6, 300))
}

// payoutPoint is a signature as contracts read it.
func payoutPoint(t *testing.T, compressed []byte) []byte {
	t.Helper()
	c := payout.Certificate{Key: secret(0).Public(), Signature: compressed}
	data, err := payout.CallRoot(0, payout.Digest{}, c)
	if err != nil {
		t.Fatal(err)
	}
	return data[len(data)-128:]
}

// A contract that slept for 30 sets goes from one to the next in a chain of handovers, sent by an account that never
// had to do with it, and no set can be skipped.
func TestAContractThatSlept(t *testing.T) {
	var sets []payout.Set
	for i := range 31 {
		sets = append(sets, setOf(uint64(i+1), i, 30, 30, 30, 10))
	}
	w := newWorld(t).open(sets[0])
	var chain []payout.Handover
	for i := 1; i < len(sets); i++ {
		chain = append(chain, next(t, sets[i-1], sets[i], 3))
	}
	w.refused("a handover too far", 5, &w.contract, handovers(t, chain[1]))
	w.refused("handovers in another order", 5, &w.contract, handovers(t, chain[1], chain[0]))
	w.must("the first handovers", 5, &w.contract, handovers(t, chain[:5]...))
	w.refused("a handover again", 5, &w.contract, handovers(t, chain[4]))
	claims := w.claims(w.zen(), 3, 7)
	w.refused("a root by a later set", 5, &w.contract, w.rootOf(sets[30], 30, claims))
	w.must("the other handovers", 5, &w.contract, handovers(t, chain[5:]...))
	w.refused("a root by an earlier set", 5, &w.contract, w.rootOf(sets[29], 30, claims))
	w.must("a root", 5, &w.contract, w.rootOf(sets[30], 30, claims))
	if n := w.ask(w.contract, w.abi, "setNumber")[0].(uint64); n != 31 {
		t.Errorf("the contract is at set %d", n)
	}
}

// Every account calls every function that changes something: no call but a claim of a signed total moves tokens, and
// the contract has no other such functions.
func TestNoAccountMovesFunds(t *testing.T) {
	s := setOf(1, 0, 10)
	w := newWorld(t).open(s)
	zen := w.zen()
	claims := w.claims(zen, 2, 1000)
	w.must("root", 0, &w.contract, w.rootOf(s, 1, claims))
	w.must("claim", 0, &w.contract, payout.CallClaims(proven(claims, 0)))
	token, _ := w.odd(0) // tokens that the contract holds
	oddABI, _ := odd(t)
	mint, err := oddABI.Pack("mint", common.Address(w.contract), big.NewInt(500))
	if err != nil {
		t.Fatal(err)
	}
	w.must("mint", 0, &token, mint)
	var changing []string
	for name, m := range w.abi.Methods {
		if !m.IsConstant() {
			changing = append(changing, name)
		}
	}
	slices.Sort(changing)
	if got := strings.Join(changing, " "); got != "claim deposit handover submitRoot" {
		t.Errorf("functions that change something: %s", got)
	}
	for i, wallet := range w.Wallets {
		me := common.Address(wallet.Address())
		w.refused("a root without signatures", i, &w.contract, root(t, 2, payout.Digest{1}, signed(t, setOf(1, 50, 10),
			payout.Digest{})))
		w.must("a claim that is paid", i, &w.contract, payout.CallClaims(proven(claims, 0)))
		w.refused("a deposit without tokens", i, &w.contract, payout.CallDeposit(token, big.NewInt(1),
			make([]byte, 20)))
		for _, method := range []string{"mint", "burn"} {
			selector := payout.Keccak([]byte(method + "(address,uint256)"))
			w.refused(method, i, &zen, slices.Concat(selector[:4], make([]byte, 12), me[:], make([]byte, 31), []byte{1}))
		}
	}
	if left := w.ask(token, oddABI, "balanceOf", common.Address(w.contract))[0].(*big.Int); left.Int64() != 500 {
		t.Errorf("the contract holds %s of 500", left)
	}
}

// odd creates a token that breaks the rules in one way.
func (w *world) odd(way int) (at payout.Address, name string) {
	w.Helper()
	_, code := odd(w)
	return w.create(append(slices.Clone(code), append(make([]byte, 31), byte(way))...)), fmt.Sprint("way ", way)
}

// Deposits of odd tokens are counted right or refused.
func TestDepositsOfOddTokens(t *testing.T) {
	s := setOf(1, 0, 10)
	w := newWorld(t).open(s)
	to := bytes.Repeat([]byte{7}, 20)
	a, _ := odd(t)
	for way, want := range []bool{true, false, false, false} {
		token, name := w.odd(way)
		mint, err := a.Pack("mint", common.Address(w.Wallets[1].Address()), big.NewInt(1000))
		if err != nil {
			t.Fatal(err)
		}
		w.must("mint", 1, &token, mint)
		if p := w.send("deposit "+name, 1, &w.contract, payout.CallDeposit(token, big.NewInt(400), to)); p.OK != want {
			t.Errorf("a deposit of a token, %s: accepted %v", name, p.OK)
		}
		claims := w.claims(token, 2, 100)
		if epoch := uint64(way + 1); way < 2 {
			w.must("root", 0, &w.contract, w.rootOf(s, epoch, claims))
			if p := w.send("claim "+name, 0, &w.contract, payout.CallClaims(proven(claims, 0))); p.OK != want {
				t.Errorf("a claim of a token, %s: paid %v", name, p.OK)
			}
		}
	}
	none := w.account(1)
	w.refused("a deposit of no token", 1, &w.contract, payout.CallDeposit(none, big.NewInt(1), to))
	zen := w.zen()
	mine := payout.Claims{{Account: w.Wallets[1].Address(), Token: zen, Total: big.NewInt(100)}}
	w.must("root", 0, &w.contract, w.rootOf(s, 9, mine))
	w.must("claim", 0, &w.contract, payout.CallClaims(proven(mine, 0)))
	w.must("deposit ZEN", 1, &w.contract, payout.CallDeposit(zen, big.NewInt(60), to))
	w.refused("deposit more ZEN", 1, &w.contract, payout.CallDeposit(zen, big.NewInt(60), to))
	w.refused("deposit to no account", 1, &w.contract, payout.CallDeposit(zen, big.NewInt(10), make([]byte, 20)))
	if n := w.ask(w.contract, w.abi, "deposits")[0].(uint64); n != 2 {
		t.Errorf("%d deposits", n)
	}
}
