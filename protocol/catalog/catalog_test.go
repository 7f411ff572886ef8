package catalog

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/reward"
)

func terms() Terms {
	return Terms{Kind: Model, Title: "a model", Licence: Licence{Name: "Apache-2.0"}, Files: canon.Sum("files"),
		Royalty: 50_000, Digests: []canon.Digest{canon.Sum("a"), canon.Sum("b")}}
}

func TestTerms(t *testing.T) {
	if err := terms().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Terms){
		"no kind":                    func(t *Terms) { t.Kind = "" },
		"no title":                   func(t *Terms) { t.Title = "" },
		"a long title":               func(t *Terms) { t.Title = strings.Repeat("x", MaxTitle+1) },
		"a title in no text":         func(t *Terms) { t.Title = "\xff" },
		"no licence":                 func(t *Terms) { t.Licence.Name = "" },
		"a licence with a space":     func(t *Terms) { t.Licence.Name = "all rights reserved" },
		"a licence without its text": func(t *Terms) { t.Licence.Name = "LicenseRef-mine" },
		"a licence without a name":   func(t *Terms) { t.Licence = Licence{"LicenseRef-", canon.Sum("text")} },
		"a text of a known licence":  func(t *Terms) { t.Licence.Text = canon.Sum("text") },
		"no files":                   func(t *Terms) { t.Files = canon.Digest{} },
		"data that a job trained":    func(t *Terms) { t.Kind, t.Job = Data, "job" },
		"a long name of a job":       func(t *Terms) { t.Job = strings.Repeat("x", maxJob+1) },
		"more than half":             func(t *Terms) { t.Royalty = MaxRoyalty + 1 },
		"a digest twice":             func(t *Terms) { t.Digests[1] = t.Digests[0] },
		"no digest":                  func(t *Terms) { t.Digests[1] = canon.Digest{} },
		"too many digests":           func(t *Terms) { t.Digests = make([]canon.Digest, MaxDigests+1) },
	} {
		c := terms()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrListing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mine := terms()
	if mine.Licence = (Licence{"LicenseRef-mine", canon.Sum("text")}); mine.Validate() != nil {
		t.Error("a licence with a text of its own is refused")
	}
}

// A pool has the name of its listing only, and no job can have it.
func TestNumber(t *testing.T) {
	for pool, want := range map[string]uint64{"listing/7": 7, "listing/07": 0, "listing/0": 0, "listing/": 0, "job-7": 0,
		"listing/-1": 0, "listing/18446744073709551616": 0, (Listing{ID: 12}).Pool(): 12,
		(Listing{ID: 12, Terms: Terms{Job: "job"}}).Pool(): 0} {
		if id, ok := Number(pool); ok != (want > 0) || ok && id != want {
			t.Errorf("%s: %d, %v", pool, id, ok)
		}
	}
}

func of(id uint64, royalty uint32) Listing {
	return Listing{ID: id, Terms: Terms{Royalty: royalty}}
}

// The terms of the parents that an order names come first, and none is diluted by one that is named later.
func TestParents(t *testing.T) {
	known := Recognise([]Listing{of(9, 300_000), of(2, 500_000), of(9, 300_000), of(4, 400_000)})
	want := []Parent{{2, 500_000, true}, {4, 400_000, true}, {9, 100_000, true}}
	if !slices.Equal(known, want) {
		t.Errorf("known: %+v", known)
	}
	if _, err := Made(known, []Listing{of(3, 1)}); !errors.Is(err, ErrParents) {
		t.Errorf("more than the whole revenue: %v", err)
	}
	if made, err := Made(known, []Listing{of(4, 400_000), of(1, 0)}); err != nil ||
		!slices.Equal(made, append(want, Parent{1, 0, false})) {
		t.Errorf("named again: %+v, %v", made, err)
	}
	if _, err := Made(nil, []Listing{of(1, 0), of(1, 0)}); !errors.Is(err, ErrParents) {
		t.Errorf("twice: %v", err)
	}
	var many []Listing
	for id := range uint64(MaxParents + 1) {
		many = append(many, of(id+1, 1))
	}
	if _, err := Made(nil, many); !errors.Is(err, ErrParents) {
		t.Errorf("too many: %v", err)
	}
}

// The first account that orders with a digest, or lists it, may list it, unless another one ordered with it before.
func TestClaims(t *testing.T) {
	anns := Claim{}.Ordered("ann")
	listed, err := anns.List("ann", 3)
	if err != nil || listed.Ordered("bob") != listed {
		t.Errorf("%+v, %v", listed, err)
	}
	for name, c := range map[string]Claim{"another's": anns, "common": anns.Ordered("bob"), "listed": listed} {
		owner := "ann"
		if name == "another's" {
			owner = "bob"
		}
		if _, err := c.List(owner, 4); !errors.Is(err, ErrClaimed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if anns.Ordered("ann") != anns {
		t.Error("a second order of one account changes the claim")
	}
	if _, err := (Claim{}).List("ann", 1); err != nil {
		t.Error(err)
	}
}

// world is a network of works, whose revenue is counted twice: by the pools of x/reward, and by exact fractions of each
// payment.
type world struct {
	t      *testing.T
	works  []Listing
	models map[string]reward.Model
	due    map[string]uint64            // by pool: what the rule says that it got
	shares map[string]map[string]uint64 // by pool and holder
	marks  map[[2]string]reward.Holder
	paid   uint64
	got    uint64
}

func (w *world) of(id uint64) (Work, error) {
	if id == 0 || id > uint64(len(w.works)) {
		return Work{}, fmt.Errorf("no listing %d", id)
	}
	l := w.works[id-1]
	return Work{l.Pool(), l.Parents}, nil
}

// list adds a work that is made from earlier ones.
func (w *world) list(r *rand.Rand) {
	l := Listing{ID: uint64(len(w.works) + 1), Terms: Terms{Royalty: r.Uint32N(MaxRoyalty + 1)}}
	switch r.IntN(4) {
	case 0:
		l.Terms.Royalty = MaxRoyalty
	case 1:
		l.Terms.Royalty /= 8
	}
	var named []Listing
	for range r.IntN(MaxParents + 1) {
		if p := r.IntN(len(w.works) + 1); p < len(w.works) && !slices.ContainsFunc(named,
			func(l Listing) bool { return l.ID == w.works[p].ID }) {
			named = append(named, w.works[p])
		}
	}
	for len(named) > 0 {
		parents, err := Made(nil, named)
		if err == nil {
			l.Parents = parents
			break
		}
		named = named[1:]
	}
	w.works = append(w.works, l)
	pool := l.Pool()
	w.models[pool] = reward.Model{Job: pool}
	w.shares[pool] = map[string]uint64{"ann": reward.Shares}
}

func share(amount uint64, ppm uint32) uint64 {
	x := new(big.Int).Mul(new(big.Int).SetUint64(amount), big.NewInt(int64(ppm)))
	return x.Quo(x, big.NewInt(1_000_000)).Uint64()
}

// expect adds what each pool must get, computed by recursion with its own arithmetic.
func (w *world) expect(id, amount uint64, depth int) {
	l := w.works[id-1]
	left := amount
	for _, p := range l.Parents {
		if depth == 2 {
			break
		}
		part := share(amount, p.Royalty)
		left -= part
		w.expect(p.Listing, part, depth+1)
	}
	w.due[l.Pool()] += left
}

// pay pays revenue of a work. Half of the amounts are dust, and some are near the largest.
func (w *world) pay(r *rand.Rand) {
	id, amount := r.Uint64N(uint64(len(w.works)))+1, r.Uint64N(50)+1
	switch r.IntN(4) {
	case 0:
		amount = r.Uint64N(1 << 30)
	case 1:
		amount = 1<<53 - 1 - r.Uint64N(3)
	}
	work, err := w.of(id)
	if err != nil {
		w.t.Fatal(err)
	}
	payments, err := Split(amount, work, w.of)
	if err != nil || len(payments) > MaxPayments || payments[0].Pool != work.Pool {
		w.t.Fatalf("%+v, %v", payments, err)
	}
	sum := uint64(0)
	for _, p := range payments {
		sum += p.Amount
		m := w.models[p.Pool]
		if !m.Takes(p.Amount) {
			w.t.Fatalf("%s takes no %d", p.Pool, p.Amount)
		}
		w.models[p.Pool] = m.Pay(p.Amount)
	}
	if sum != amount {
		w.t.Fatalf("%d of %d are paid", sum, amount)
	}
	w.paid += amount
	w.expect(id, amount, 0)
}

func (w *world) accrue(pool, who string) {
	key := [2]string{pool, who}
	w.marks[key] = w.marks[key].Accrue(w.models[pool], w.shares[pool][who])
}

// move gives shares away, or claims.
func (w *world) move(r *rand.Rand) {
	holders := []string{"ann", "bob", "cyd"}
	pool := w.works[r.IntN(len(w.works))].Pool()
	from, to := holders[r.IntN(3)], holders[r.IntN(3)]
	if r.IntN(2) == 0 {
		key := [2]string{pool, from}
		m, h, receipt := w.models[pool].Claim(from, w.marks[key], w.shares[pool][from], 1)
		w.models[pool], w.marks[key] = m, h
		w.got += receipt.Amount
		return
	}
	w.accrue(pool, from)
	w.accrue(pool, to)
	n := w.shares[pool][from]
	if n > 0 {
		n = r.Uint64N(n) + 1
	}
	w.shares[pool][from] -= n
	w.shares[pool][to] += n
}

// Over random works and payments no grain is made or lost, each pool has what the rule says, and holders can claim all
// but what is too little to divide.
func TestRoyaltiesAreConserved(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 185))
		w := &world{t: t, models: map[string]reward.Model{}, due: map[string]uint64{},
			shares: map[string]map[string]uint64{}, marks: map[[2]string]reward.Holder{}}
		w.list(r)
		for range 400 {
			switch n := r.IntN(20); {
			case n < 2 && len(w.works) < 40:
				w.list(r)
			case n < 12:
				w.pay(r)
			default:
				w.move(r)
			}
		}
		held, due, carried := uint64(0), uint64(0), uint64(0)
		for pool, m := range w.models {
			held += m.Held
			due += w.due[pool]
			if want := m.PerShare*reward.Shares + m.Carry; want != w.due[pool] {
				t.Fatalf("seed %d: %s got %d, the rule says %d", seed, pool, want, w.due[pool])
			}
			for who, n := range w.shares[pool] {
				var rec reward.Receipt
				m, _, rec = m.Claim(who, w.marks[[2]string{pool, who}], n, 1)
				w.got += rec.Amount
			}
			if m.Held != m.Carry {
				t.Fatalf("seed %d: %s keeps %d, and cannot divide %d", seed, pool, m.Held, m.Carry)
			}
			carried += m.Carry
		}
		if due != w.paid || w.got+carried != w.paid || held < carried {
			t.Fatalf("seed %d: %d paid, %d due, %d claimed, %d carried", seed, w.paid, due, w.got, carried)
		}
	}
}

// The royalty of a grandparent is a part of that of the parent, and a third level gets nothing.
func TestTwoLevels(t *testing.T) {
	chain := []Listing{{ID: 1}}
	for id := range uint64(4) {
		chain = append(chain, Listing{ID: id + 2, Parents: []Parent{{Listing: id + 1, Royalty: MaxRoyalty}}})
	}
	w := world{works: chain}
	work, _ := w.of(5)
	got, err := Split(1001, work, w.of)
	want := []Payment{{"listing/5", 501}, {"listing/3", 250}, {"listing/4", 250}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	diamond := world{works: []Listing{{ID: 1}, {ID: 2, Parents: []Parent{{1, 100_000, false}}},
		{ID: 3, Parents: []Parent{{1, 200_000, false}}},
		{ID: 4, Parents: []Parent{{1, 50_000, false}, {2, 300_000, false}, {3, 300_000, false}}}}}
	work, _ = diamond.of(4)
	got, err = Split(1_000_000, work, diamond.of)
	want = []Payment{{"listing/4", 350_000}, {"listing/1", 50_000 + 30_000 + 60_000}, {"listing/2", 270_000},
		{"listing/3", 240_000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Split(1_000_000, Work{"x", []Parent{{9, 1, true}}}, diamond.of); err == nil {
		t.Error("a parent that does not exist")
	}
}

// Shares are sold and withdrawn once, and an offer that cannot be paid is refused.
func TestShareOffers(t *testing.T) {
	for _, o := range []ShareOffer{{Shares: 0, Price: 1}, {Shares: 1, Left: 1}, {Shares: reward.Shares + 1,
		Left: reward.Shares + 1, Price: 1}, {Shares: 5, Left: 4, Price: 1}, {Shares: 2, Left: 2, Price: 1 << 52},
		{Shares: 2, Left: 2, Price: 1 << 63}} {
		if err := o.Validate(); !errors.Is(err, ErrOffer) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	o := ShareOffer{ID: 1, Seller: "ann", Shares: 10, Left: 10, Price: 7}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if _, _, err := o.Buy("ann", 1); !errors.Is(err, ErrParty) {
		t.Error(err)
	}
	o, price, err := o.Buy("bob", 4)
	if err != nil || price != 28 || o.Left != 6 {
		t.Errorf("%+v, %d, %v", o, price, err)
	}
	for _, n := range []uint64{0, 7} {
		if _, _, err := o.Buy("bob", n); !errors.Is(err, ErrClosed) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if _, _, err := o.Withdraw("bob"); !errors.Is(err, ErrParty) {
		t.Error(err)
	}
	o, n, err := o.Withdraw("ann")
	if err != nil || n != 6 {
		t.Errorf("%d, %v", n, err)
	}
	if _, _, err := o.Withdraw("ann"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, _, err := o.Buy("bob", 1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// A listing of a stranger decodes to the same bytes, or is refused, and terms that are taken keep their limits.
func FuzzListing(f *testing.F) {
	f.Add(canon.MustMarshal(Listing{ID: 1, Owner: "ann", Terms: terms(), Parents: []Parent{{1, 2, true}}}))
	f.Add(canon.MustMarshal(ShareOffer{ID: 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l Listing
		if len(data) > 1<<16 || canon.Unmarshal(data, &l) != nil {
			return
		}
		if again := canon.MustMarshal(l); string(again) != string(data) {
			t.Errorf("%x is %x", data, again)
		}
		if l.Terms.Validate() == nil && (l.Terms.Royalty > MaxRoyalty || len(l.Terms.Title) > MaxTitle ||
			len(l.Terms.Digests) > MaxDigests) {
			t.Errorf("%+v is taken", l.Terms)
		}
		if id, ok := Number(l.Pool()); l.Terms.Job == "" && l.ID > 0 && (!ok || id != l.ID) {
			t.Errorf("%+v has the pool %s", l, l.Pool())
		}
	})
}
