package hosting

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
)

const chain = "starling-1"

// keyOf is the key that signs the vouchers of a payer.
func keyOf(payer string) ed25519.PrivateKey {
	seed := canon.Sum("test", []byte(payer))
	return ed25519.NewKeyFromSeed(seed[:])
}

func public(payer string) []byte { return keyOf(payer).Public().(ed25519.PublicKey) }

func model() Model {
	return Model{ID: 1, Owner: "owner", Name: "tiny", Files: canon.Leaf([]byte("files")),
		Weights: canon.Leaf([]byte("weights")), Job: "job", PartPPM: 333_333, Licence: "Apache-2.0"}
}

func place() Place {
	return Place{Model: 1, Provider: "provider", URL: "http://127.0.0.1:1", Prices: Prices{Denom: "ausdc", Input: 10,
		Output: 1000}, Bond: million + 1}
}

func TestModels(t *testing.T) {
	if err := model().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Model){
		"no name":            func(m *Model) { m.Name = "" },
		"a long name":        func(m *Model) { m.Name = strings.Repeat("x", MaxName+1) },
		"a name in no text":  func(m *Model) { m.Name = "\xff" },
		"a control":          func(m *Model) { m.Name = "a\nb" },
		"a long licence":     func(m *Model) { m.Licence = strings.Repeat("x", MaxLicence+1) },
		"a licence of bytes": func(m *Model) { m.Licence = "\xff" },
		"a long job":         func(m *Model) { m.Job = strings.Repeat("x", MaxName+1) },
		"no files":           func(m *Model) { m.Files = canon.Digest{} },
		"no weights":         func(m *Model) { m.Weights = canon.Digest{} },
		"more than all":      func(m *Model) { m.PartPPM = million + 1 },
	} {
		m := model()
		spoil(&m)
		if err := m.Validate(); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An adapter is of a whole model with other weights.
func TestBases(t *testing.T) {
	base, of := model(), model()
	of.ID, of.Base, of.Weights = 2, base.ID, canon.Leaf([]byte("adapted"))
	if err := of.Over(base); err != nil {
		t.Error(err)
	}
	if err := model().Over(base); !errors.Is(err, ErrModel) {
		t.Errorf("an adapter with the weights of its base: %v", err)
	}
	if err := base.Over(of); !errors.Is(err, ErrModel) {
		t.Errorf("an adapter of an adapter: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	rules := DefaultParams()
	if err := place().Offered(rules); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*Place)
		want  error
	}{
		"no URL":      {func(p *Place) { p.URL = "" }, ErrPlace},
		"a long URL":  {func(p *Place) { p.URL = strings.Repeat("x", MaxURL+1) }, ErrPlace},
		"a price":     {func(p *Place) { p.Prices.Input = MaxAmount }, ErrPlace},
		"a price out": {func(p *Place) { p.Prices.Output = MaxAmount }, ErrPlace},
		"a bond":      {func(p *Place) { p.Bond = MaxAmount }, ErrPlace},
		"no bond":     {func(p *Place) { p.Bond = rules.MinBond - 1 }, ErrBond},
	} {
		p := place()
		c.spoil(&p)
		if err := p.Offered(rules); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := place()
	to := p
	to.URL, to.Prices.Output, to.Bond = "http://127.0.0.1:2", 5, p.Bond+7
	changed, more, err := p.Update(to)
	if err != nil || more != 7 || changed.URL != to.URL || changed.Prices.Output != 5 {
		t.Errorf("%+v, %d, %v", changed, more, err)
	}
	to.Prices.Denom = ""
	if _, _, err := p.Update(to); !errors.Is(err, ErrPlace) {
		t.Errorf("another coin: %v", err)
	}
	to = p
	to.Bond--
	if _, _, err := p.Update(to); !errors.Is(err, ErrBond) {
		t.Errorf("a smaller bond: %v", err)
	}
	left, err := p.Leave(rules, 10)
	if err != nil || left.Until != 10+int64(rules.Unbonding) || left.Unbonded(left.Until) || !left.Unbonded(left.Until+1) {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := left.Leave(rules, 11); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, _, err := left.Update(p); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, _, err := left.OpenChannel(1, "payer", public("payer"), 1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	lied, payments, err := left.Convict("accuser")
	if err != nil || len(payments) != 2 || payments[0] != (Payment{"accuser", million / 2}) ||
		payments[1] != (Payment{"", million/2 + 1}) || lied.Held() != 0 || lied.Unbonded(math.MaxInt64) {
		t.Errorf("%+v, %+v, %v", lied, payments, err)
	}
	if _, _, err := lied.Convict("accuser"); !errors.Is(err, ErrClosed) {
		t.Errorf("a bond is taken twice: %v", err)
	}
}

func TestParams(t *testing.T) {
	if err := DefaultParams().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Params){
		"a fee":      func(p *Params) { p.FeePPM = million + 1 },
		"no time":    func(p *Params) { p.Close = minClose - 1 },
		"unbonding":  func(p *Params) { p.Unbonding = p.Close - 1 },
		"for ever":   func(p *Params) { p.Unbonding = maxBlocks + 1 },
		"a high sum": func(p *Params) { p.MinBond = MaxAmount },
	} {
		p := DefaultParams()
		spoil(&p)
		if err := p.Validate(); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCosts(t *testing.T) {
	for _, c := range []struct {
		prices         Prices
		prompt, answer uint64
		want           uint64
	}{
		{Prices{Input: 10, Output: 1000}, 1000, 1000, 2}, // 1.01, rounded up
		{Prices{Input: 1_000_000, Output: 3_000_000}, 7, 2, 13},
		{Prices{}, math.MaxUint64, math.MaxUint64, 0},
		{Prices{Input: 1}, 0, 5, 0},
		{Prices{Input: 1}, 1, 5, 1},
		{Prices{Input: MaxAmount - 1, Output: MaxAmount - 1}, math.MaxUint64, math.MaxUint64, MaxAmount},
		{Prices{Input: MaxAmount - 1}, 1 << 30, 0, MaxAmount},
	} {
		if got := c.prices.Cost(c.prompt, c.answer); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A voucher that is forged, replayed, shrunken, beyond the coins of its channel, of another channel or of another
// network pays nothing.
func TestVouchers(t *testing.T) {
	p, c, err := place().OpenChannel(7, "payer", public("payer"), 1000)
	if err != nil || p.Channels != 1 {
		t.Fatal(err)
	}
	rules, m := DefaultParams(), model()
	good := Voucher{Chain: chain, Channel: 7, Amount: 400}.Sign(keyOf("payer"))
	c, s, err := c.Redeem(rules, m, "provider", chain, good, 300)
	if err != nil || s != (Split{Fee: 15, Part: 94, Provider: 191}) || c.Redeemed != 300 {
		t.Fatalf("%+v %+v %v", c, s, err)
	}
	sign := func(change func(*Voucher)) Voucher {
		v := Voucher{Chain: chain, Channel: 7, Amount: 500}
		change(&v)
		return v.Sign(keyOf("payer"))
	}
	for name, x := range map[string]struct {
		v      Voucher
		sender string
		total  uint64
		want   error
	}{
		"another sender":   {good, "payer", 400, ErrParty},
		"another network":  {sign(func(v *Voucher) { v.Chain = "starling-2" }), "provider", 500, ErrChain},
		"another channel":  {sign(func(v *Voucher) { v.Channel = 8 }), "provider", 500, ErrForged},
		"another key":      {Voucher{Chain: chain, Channel: 7, Amount: 500}.Sign(keyOf("other")), "provider", 500, ErrForged},
		"a larger amount":  {Voucher{chain, 7, 500, good.Signature}, "provider", 500, ErrForged},
		"no signature":     {Voucher{chain, 7, 500, nil}, "provider", 500, ErrForged},
		"what is redeemed": {sign(func(v *Voucher) { v.Amount = 300 }), "provider", 300, ErrSpent},
		"shrunken":         {sign(func(v *Voucher) { v.Amount = 299 }), "provider", 299, ErrSpent},
		"beyond":           {sign(func(v *Voucher) { v.Amount = 1001 }), "provider", 1001, ErrBeyond},
		"above it":         {good, "provider", 401, ErrSpent},
		"the same total":   {good, "provider", 300, ErrSpent},
		"less":             {good, "provider", 1, ErrSpent},
	} {
		if after, s, err := c.Redeem(rules, m, x.sender, chain, x.v, x.total); !errors.Is(err, x.want) || s != (Split{}) ||
			after.Redeemed != 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, x := range map[string]struct {
		payer  string
		key    []byte
		amount uint64
		want   error
	}{
		"the provider": {"provider", public("payer"), 5, ErrParty},
		"no account":   {"", public("payer"), 5, ErrParty},
		"no key":       {"payer", nil, 5, ErrChannel},
		"nothing":      {"payer", public("payer"), 0, ErrChannel},
		"too much":     {"payer", public("payer"), MaxAmount, ErrChannel},
	} {
		if _, _, err := place().OpenChannel(1, x.payer, x.key, x.amount); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Fund("provider", 5); !errors.Is(err, ErrParty) {
		t.Error(err)
	}
	if _, err := c.Fund("payer", MaxAmount-1000); !errors.Is(err, ErrChannel) {
		t.Error(err)
	}
	if _, _, err := c.Close(rules, "other", 5); !errors.Is(err, ErrParty) {
		t.Error(err)
	}
	closing, over, err := c.Close(rules, "payer", 5)
	if err != nil || over || closing.Until != 605 || closing.Expired(605) || !closing.Expired(606) {
		t.Errorf("%+v %v %v", closing, over, err)
	}
	if _, err := closing.Fund("payer", 5); !errors.Is(err, ErrChannel) {
		t.Error(err)
	}
	if _, _, err := closing.Close(rules, "payer", 6); !errors.Is(err, ErrChannel) {
		t.Error(err)
	}
}

// world is a network with three payers and two providers, in two coins: the coins of all, and those that are held.
type world struct {
	r        *rand.Rand
	rules    Params
	model    Model
	height   int64
	places   map[string]*Place
	channels map[uint64]*Channel
	next     uint64
	coins    map[string]int64 // of accounts, by coin and name
	held     map[string]int64 // by coin
	signed   map[uint64]uint64
	taken    uint64
}

func (w *world) move(coin, from, to string, n uint64) {
	if from == "held" {
		w.held[coin] -= int64(n)
	} else {
		w.coins[coin+from] -= int64(n)
	}
	if to == "held" {
		w.held[coin] += int64(n)
	} else {
		w.coins[coin+to] += int64(n)
	}
}

func (w *world) settle(c *Channel) {
	p := w.places[c.Provider]
	after, payments := p.Settle(w.rules, *c, w.height)
	*p = after
	for _, x := range payments {
		w.move(c.Denom, "held", x.To, x.Amount)
	}
	delete(w.channels, c.ID)
}

func (w *world) any() *Channel {
	for id := uint64(0); id <= w.next; id++ {
		if c := w.channels[(id+uint64(w.r.Int63()))%(w.next+1)]; c != nil {
			return c
		}
	}
	return nil
}

// step plays any move, also ones that the rules refuse.
func (w *world) step() {
	provider, payer := []string{"p", "q"}[w.r.Intn(2)], []string{"a", "b", "c"}[w.r.Intn(3)]
	denom := map[string]string{"p": "", "q": "usdc"}[provider]
	amount := uint64(1 + w.r.Intn(2000))
	switch n := w.r.Intn(12); {
	case n < 2:
		p := w.places[provider]
		to := Place{Model: 1, Provider: provider, URL: "u", Prices: Prices{Denom: denom, Input: amount, Output: amount},
			Bond: w.rules.MinBond + amount}
		if p == nil {
			if to.Offered(w.rules) == nil {
				w.move("", provider, "held", to.Bond)
				w.places[provider] = &to
			}
		} else if after, more, err := p.Update(to); err == nil {
			w.move("", provider, "held", more)
			*p = after
		}
	case n < 4:
		if p := w.places[provider]; p != nil {
			if after, c, err := p.OpenChannel(w.next+1, payer, public(payer), amount); err == nil {
				w.next++
				*p, w.channels[w.next] = after, &c
				w.move(c.Denom, payer, "held", amount)
			}
		}
	case n < 8:
		w.pay(w.any(), amount)
	case n == 8:
		if c := w.any(); c != nil {
			sender := []string{c.Payer, c.Provider, "x"}[w.r.Intn(3)]
			if after, over, err := c.Close(w.rules, sender, w.height); err == nil && over {
				w.settle(c)
			} else if err == nil {
				*c = after
			}
		}
	case n == 9:
		if p := w.places[provider]; p != nil && w.r.Intn(4) == 0 {
			if after, err := p.Leave(w.rules, w.height); err == nil {
				*p = after
			}
		}
	case n == 10:
		if p := w.places[provider]; p != nil && w.r.Intn(20) == 0 {
			if after, payments, err := p.Convict("accuser"); err == nil {
				for _, x := range payments {
					w.move("", "held", x.To, x.Amount)
				}
				*p = after
			}
		}
	default:
		w.height += int64(1 + w.r.Intn(5))
		for _, c := range w.channels {
			if c.Expired(w.height) {
				w.settle(c)
			}
		}
		for name, p := range w.places {
			if p.Unbonded(w.height) {
				w.move("", "held", name, p.Held())
				delete(w.places, name)
			}
		}
	}
}

// pay lets a payer sign for one more request, or fund, and a provider redeem any total, also too much.
func (w *world) pay(c *Channel, amount uint64) {
	if c == nil {
		return
	}
	if w.r.Intn(3) == 0 {
		if after, err := c.Fund(c.Payer, amount); err == nil {
			w.move(c.Denom, c.Payer, "held", amount)
			*c = after
		}
		return
	}
	if up := max(w.signed[c.ID], c.Redeemed) + uint64(w.r.Intn(200)); up <= c.Locked {
		w.signed[c.ID] = up
	}
	v := Voucher{Chain: chain, Channel: c.ID, Amount: w.signed[c.ID]}.Sign(keyOf(c.Payer))
	if w.r.Intn(8) == 0 {
		v.Amount += 100 // as a provider would like it
	}
	total := v.Amount - min(v.Amount, uint64(w.r.Intn(50)))
	had := c.Redeemed
	after, s, err := c.Redeem(w.rules, w.model, c.Provider, chain, v, total)
	if err != nil {
		return
	}
	*c = after
	w.taken += total - had
	w.move(c.Denom, "held", "", s.Fee)
	w.move(c.Denom, "held", "shares", s.Part)
	w.move(c.Denom, "held", c.Provider, s.Provider)
}

// In any order of moves no coin of any kind appears or is lost, a bond and a channel are held as long as they are open,
// and a provider never redeems more than the payer signed for: an honest payer, who signs for one request more than was
// answered, loses at most the price of that request.
func TestCoinsAreConserved(t *testing.T) {
	taken := uint64(0)
	for seed := range int64(40) {
		w := &world{r: rand.New(rand.NewSource(seed)), rules: Params{FeePPM: 51_234, Close: 5, Unbonding: 9, MinBond: 1000},
			model: model(), places: map[string]*Place{}, channels: map[uint64]*Channel{}, coins: map[string]int64{},
			held: map[string]int64{}, signed: map[uint64]uint64{}}
		for range 2000 {
			w.step()
			owed := map[string]int64{}
			counts := map[string]uint32{}
			for id, c := range w.channels {
				owed[c.Denom] += int64(c.Held())
				counts[c.Provider]++
				if c.Redeemed > w.signed[id] || c.Redeemed > c.Locked {
					t.Fatalf("seed %d: %d redeemed, %d signed, %d locked", seed, c.Redeemed, w.signed[id], c.Locked)
				}
			}
			for name, p := range w.places {
				owed[""] += int64(p.Held())
				if p.Channels != counts[name] {
					t.Fatalf("seed %d: %s has %d channels of %d", seed, name, counts[name], p.Channels)
				}
			}
			for _, coin := range []string{"", "usdc"} {
				sum := w.held[coin]
				for _, who := range []string{"a", "b", "c", "p", "q", "", "shares", "accuser"} {
					sum += w.coins[coin+who]
				}
				if w.held[coin] != owed[coin] || sum != 0 {
					t.Fatalf("seed %d: %d of %q are held, %d owed, all %d", seed, w.held[coin], coin, owed[coin], sum)
				}
			}
		}
		taken += w.taken
	}
	if taken < 10_000 {
		t.Errorf("%d grains were redeemed", taken)
	}
}

// The split of any amount is exact.
func FuzzSplit(f *testing.F) {
	f.Add(uint64(1), uint32(50_000), uint32(333_333))
	f.Fuzz(func(t *testing.T, amount uint64, fee, part uint32) {
		amount = amount%(MaxAmount-1) + 1
		m := model()
		m.PartPPM = part % (million + 1)
		c := Channel{ID: 1, Provider: "p", Payer: "a", Key: public("a"), Locked: amount}
		v := Voucher{Chain: chain, Channel: 1, Amount: amount}.Sign(keyOf("a"))
		_, s, err := c.Redeem(Params{FeePPM: fee % (million + 1)}, m, "p", chain, v, amount)
		if err != nil || s.Fee+s.Part+s.Provider != amount || s.Fee > amount || s.Part > amount {
			t.Errorf("%d: %+v, %v", amount, s, err)
		}
	})
}

// A voucher has one message, and a changed field another.
func TestMessages(t *testing.T) {
	v := Voucher{Chain: chain, Channel: 1, Amount: 2}
	for _, other := range []Voucher{{Chain: "x", Channel: 1, Amount: 2}, {Chain: chain, Channel: 2, Amount: 2},
		{Chain: chain, Channel: 1, Amount: 3}} {
		if bytes.Equal(v.Message(), other.Message()) {
			t.Errorf("%+v", other)
		}
	}
	if !bytes.Equal(v.Message(), v.Sign(keyOf("a")).Message()) {
		t.Error("the signature is signed")
	}
}
