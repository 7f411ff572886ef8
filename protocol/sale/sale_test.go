package sale

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
)

// goods are files of a few leaves with their key, sealed by an honest seller.
type goods struct {
	key, mask     []byte
	plain, sealed *canon.Tree
	leaves        [][]byte // encrypted
	content       Content
}

// wares seals leaves with one key. The digests of the leaves in lies are of other bytes.
func wares(t testing.TB, n int, lies ...int) goods {
	t.Helper()
	return waresBy(t, OneKey, n, lies...)
}

func waresBy(t testing.TB, s Scheme, n int, lies ...int) goods {
	t.Helper()
	g := goods{key: bytes.Repeat([]byte{7}, KeyBytes), mask: bytes.Repeat([]byte{9}, KeyBytes)}
	x, err := s.NewCipher(g.key)
	if err != nil {
		t.Fatal(err)
	}
	var plain, sealed []canon.Digest
	size := 0
	for i := range n {
		leaf := bytes.Repeat([]byte{byte(i)}, LeafBytes-i)
		size += len(leaf)
		digest := canon.Leaf(leaf)
		if slices.Contains(lies, i) {
			digest = canon.Leaf([]byte("other bytes"))
		}
		x.Leaf(uint64(i), leaf, leaf)
		g.leaves = append(g.leaves, leaf)
		plain, sealed = append(plain, digest), append(sealed, canon.Leaf(leaf))
	}
	g.plain, g.sealed = canon.NewTree(plain), canon.NewTree(sealed)
	g.content = Content{Plain: g.plain.Root(), Sealed: g.sealed.Root(), Leaves: uint64(n), Bytes: uint64(size),
		Key: s.KeyDigest(g.key), Index: canon.Leaf([]byte("index")), Scheme: s}
	return g
}

// evidence about a leaf.
func (g goods) evidence(t testing.TB, i int) Evidence {
	t.Helper()
	plain, err := g.plain.Node(0, i)
	path, err2 := g.plain.Proof(i)
	sealed, err3 := g.sealed.Proof(i)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return Evidence{Index: uint64(i), Leaf: g.leaves[i], Plain: plain, Path: path, Sealed: sealed}
}

func (g goods) offer() Offer {
	return Offer{ID: 1, Seller: "seller", Terms: Terms{Name: "model", Content: g.content, Price: 100, Bond: 31, Answer: 20,
		Complaint: 20, Seal: make([]byte, SealKeyBytes), Locations: []string{"http://127.0.0.1:1/"}}}
}

func (g goods) order(buyer string) Order {
	return Order{Buyer: buyer, Mask: MaskDigest(g.mask), Box: make([]byte, MaskBoxBytes)}
}

func TestEvidence(t *testing.T) {
	for _, s := range []Scheme{OneKey, LeafKeys} {
		testEvidence(t, waresBy(t, s, 40), waresBy(t, s, 40, 17))
	}
	if _, err := ParseEvidence(make([]byte, MaxEvidence+1)); !errors.Is(err, ErrEvidence) {
		t.Error(err)
	}
	deep := canon.Proof{}
	for range canon.Height(MaxLeaves) {
		deep = append(deep, make([]canon.Digest, canon.Fanout-1))
	}
	if n := len(canon.MustMarshal(Evidence{Leaf: make([]byte, LeafBytes), Path: deep, Sealed: deep})); n > MaxEvidence {
		t.Errorf("the largest evidence has %d bytes", n)
	}
}

func testEvidence(t *testing.T, honest, liar goods) {
	t.Helper()
	other := bytes.Repeat([]byte{8}, KeyBytes)
	for name, c := range map[string]struct {
		goods  goods
		key    []byte
		change func(*Evidence)
		shows  bool
	}{
		"a leaf that is not its digest": {goods: liar, key: liar.key, shows: true},
		"another key than the seller's": {goods: honest, key: other, shows: true},
		"bytes that are no key":         {goods: honest, key: bytes.Repeat([]byte{255}, KeyBytes), shows: true},
		"another key, without a leaf": {goods: honest, key: other, shows: true,
			change: func(e *Evidence) { *e = Evidence{} }},
		"a leaf that is its digest": {goods: honest, key: honest.key},
		"no leaf":                   {goods: liar, key: liar.key, change: func(e *Evidence) { e.Leaf = nil }},
		"a leaf that was not offered": {goods: honest, key: honest.key,
			change: func(e *Evidence) { e.Leaf = []byte("x") }},
		"a digest that was not offered": {goods: honest, key: honest.key, change: func(e *Evidence) { e.Plain[0]++ }},
		"the path of another leaf":      {goods: liar, key: liar.key, change: func(e *Evidence) { e.Index = 18 }},
		"a leaf beyond the last":        {goods: liar, key: liar.key, change: func(e *Evidence) { e.Index = 1 << 63 }},
		"a leaf that is longer than any other": {goods: liar, key: liar.key,
			change: func(e *Evidence) { e.Leaf = make([]byte, LeafBytes+1) }},
	} {
		e := c.goods.evidence(t, 17)
		if c.change != nil {
			c.change(&e)
		}
		parsed, err := ParseEvidence(canon.MustMarshal(e))
		if err != nil {
			t.Fatal(err)
		}
		err = parsed.Shows(c.goods.content, c.key)
		if (err == nil) != c.shows || err != nil && !errors.Is(err, ErrEvidence) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Leaves are drawn by a beacon that comes after the offer, and each of them as often as another.
func TestDrawnLeaves(t *testing.T) {
	g := waresBy(t, LeafKeys, 40)
	o := g.offer()
	if !o.Draws() || o.Drawn(3) != nil {
		t.Errorf("before the beacon: %v", o.Drawn(3))
	}
	draw := o.Draw(canon.Leaf([]byte("beacon")))
	o.Drawing = draw[:]
	counts := make([]int, 40)
	for _, leaf := range o.Drawn(4000) {
		counts[leaf]++
	}
	if least, most := slices.Min(counts), slices.Max(counts); o.Draws() || least < 60 || most > 145 {
		t.Errorf("of 4000 draws from 40 leaves one has %d and one %d", least, most)
	}
	if !slices.Equal(o.Drawn(7), o.Drawn(9)[:7]) {
		t.Error("more leaves are others")
	}
	next := o
	if next.ID++; next.Draw(canon.Leaf([]byte("beacon"))) == draw {
		t.Error("two offers have one draw")
	}
	if o.Terms.Content.Scheme = OneKey; o.Draws() {
		t.Error("leaves of files with one key are drawn")
	}
}

// Both schemes decrypt what they encrypt, and the key of a leaf opens this leaf alone.
func TestCiphers(t *testing.T) {
	plain := []byte("weights of a model, twice: weights of a model")
	for _, s := range []Scheme{OneKey, LeafKeys} {
		x, err := s.NewCipher(bytes.Repeat([]byte{7}, KeyBytes))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, i := range []uint64{0, 1, 2, 1 << 33} {
			leaf := make([]byte, len(plain))
			if x.Leaf(i, leaf, plain); seen[string(leaf)] {
				t.Errorf("scheme %d: leaf %d is encrypted as another", s, i)
			}
			seen[string(leaf)] = true
			if s == LeafKeys {
				k, again := x.key.Leaf(i), make([]byte, len(plain))
				if OpenLeaf(k[:], again, leaf); !bytes.Equal(again, plain) {
					t.Errorf("leaf %d does not open", i)
				}
			}
			if x.Leaf(i, leaf, leaf); !bytes.Equal(leaf, plain) {
				t.Errorf("scheme %d: leaf %d does not decrypt", s, i)
			}
		}
		if _, err := s.NewCipher(make([]byte, KeyBytes-1)); err == nil {
			t.Errorf("scheme %d: a short key", s)
		}
	}
	if above := bytes.Repeat([]byte{255}, KeyBytes); !LeafKeys.KeyDigest(above).IsZero() {
		t.Error("bytes that are no key have a digest")
	}
}

func TestTerms(t *testing.T) {
	if err := wares(t, 3).offer().Terms.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Terms){
		"no name":            func(t *Terms) { t.Name = "" },
		"a long name":        func(t *Terms) { t.Name = strings.Repeat("x", MaxName+1) },
		"a name in no text":  func(t *Terms) { t.Name = "\xff" },
		"a job in no text":   func(t *Terms) { t.Job = "\xff" },
		"no leaf":            func(t *Terms) { t.Content.Leaves = 0 },
		"too many leaves":    func(t *Terms) { t.Content.Leaves = MaxLeaves + 1 },
		"too many bytes":     func(t *Terms) { t.Content.Bytes = 3*LeafBytes + 1 },
		"no plain root":      func(t *Terms) { t.Content.Plain = canon.Digest{} },
		"an unknown scheme":  func(t *Terms) { t.Content.Scheme = LeafKeys + 1 },
		"no index":           func(t *Terms) { t.Content.Index = canon.Digest{} },
		"no price":           func(t *Terms) { t.Price = 0 },
		"a price too high":   func(t *Terms) { t.Price = MaxAmount },
		"a bond too high":    func(t *Terms) { t.Bond = MaxAmount },
		"too short a window": func(t *Terms) { t.Answer = MinWindow - 1 },
		"too long a window":  func(t *Terms) { t.Complaint = MaxWindow + 1 },
		"a window too short for the files": func(t *Terms) {
			t.Content.Leaves = LeavesBlock
			t.Complaint = MinWindow
		},
		"no public key":        func(t *Terms) { t.Seal = nil },
		"a part of no listing": func(t *Terms) { t.SellerPart = 1 },
		"more than all":        func(t *Terms) { t.Listing, t.SellerPart = 1, million+1 },
		"no location":          func(t *Terms) { t.Locations = nil },
		"an empty location":    func(t *Terms) { t.Locations = []string{""} },
		"too many locations":   func(t *Terms) { t.Locations = make([]string, MaxLocations+1) },
	} {
		terms := wares(t, 3).offer().Terms
		change(&terms)
		if err := terms.Validate(); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// world is a sale with two buyers, and the coins of all.
type world struct {
	offer    Offer
	orders   [2]Order
	height   int64
	coins    map[string]uint64
	held     uint64
	revealed [2]bool // the seller has answered with the right key
	trace    string
}

func (w world) clone() world {
	coins := map[string]uint64{}
	for k, v := range w.coins {
		coins[k] = v
	}
	w.coins = coins
	return w
}

func (w *world) pay(payments []Payment) {
	for _, p := range payments {
		w.coins[p.To] += p.Amount
		w.held -= p.Amount
	}
}

// moves are all that the seller, two buyers and the chain can do, also out of turn and for one another.
func moves(g goods, lied bool) map[string]func(*world) error {
	buyers := [2]string{"alice", "bob"}
	all := map[string]func(*world) error{
		"withdraw": func(w *world) error {
			o, payments, err := w.offer.Withdraw("seller")
			w.offer = o
			w.pay(payments)
			return err
		},
		"blocks": func(w *world) error {
			w.height += 21
			for i := range w.orders {
				o, r, payments := w.offer.Expire(w.orders[i], w.height)
				w.offer, w.orders[i] = o, r
				w.pay(payments)
			}
			return nil
		},
	}
	for i, name := range buyers {
		all["order of "+name] = func(w *world) error {
			if w.orders[i].ID > 0 {
				return ErrOrder
			}
			o, r, err := w.offer.Place(uint64(i+2), g.order(name), w.height)
			if err == nil {
				w.offer, w.orders[i] = o, r
				w.coins[name] -= o.Terms.Price
				w.held += o.Terms.Price
			}
			return err
		}
		answer := func(key []byte) func(w *world) error {
			return func(w *world) error {
				r, err := w.offer.Reply(w.orders[i], "seller", Unmask(key, g.mask), w.height)
				w.orders[i] = r
				w.revealed[i] = w.revealed[i] || err == nil && bytes.Equal(key, g.key)
				return err
			}
		}
		all["answer to "+name] = answer(g.key)
		if lied {
			all["false answer to "+name] = answer(g.mask)
		}
		all["rejection of "+name] = func(w *world) error {
			o, r, payments, err := w.offer.Reject(w.orders[i], "seller")
			w.offer, w.orders[i] = o, r
			w.pay(payments)
			return err
		}
		for leaf := range 2 {
			all[fmt.Sprintf("complaint of %s about %d", name, leaf)] = func(w *world) error {
				o, r, payments, err := w.offer.Complain(w.orders[i], name, g.mask, Evidence{Index: uint64(leaf),
					Leaf: g.leaves[leaf], Plain: must(g.plain.Node(0, leaf)), Path: must(g.plain.Proof(leaf)),
					Sealed: must(g.sealed.Proof(leaf))}, w.height)
				w.offer, w.orders[i] = o, r
				w.pay(payments)
				return err
			}
		}
	}
	return all
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// explore plays every sequence of moves up to a depth and checks each world.
func explore(t *testing.T, w world, all map[string]func(*world) error, depth int, check func(world)) (worlds int) {
	check(w)
	if depth == 0 {
		return 1
	}
	for name, move := range all {
		next := w.clone()
		if next.trace += name + "; "; move(&next) == nil {
			worlds += explore(t, next, all, depth-1, check)
		}
	}
	return worlds + 1
}

// In every order of moves no coin appears or is lost, and the honest side loses nothing: a seller that does not lie
// keeps its bond and has the price of each order to which it gave the key, once the windows are over; a buyer that
// complains about a lie has its price.
func TestTheHonestSideLosesNothing(t *testing.T) {
	for i := range 4 {
		lied, scheme := i%2 == 1, Scheme(i/2)
		g := waresBy(t, scheme, 2)
		if lied {
			g = waresBy(t, scheme, 2, 1)
		}
		w := world{offer: g.offer(), coins: map[string]uint64{"seller": 969, "alice": 1000, "bob": 1000}, held: 31}
		check := func(w world) {
			sum := w.held + w.coins["seller"] + w.coins["alice"] + w.coins["bob"] + w.coins[""]
			owed := w.offer.Held()
			for _, o := range w.orders {
				if o.Open() {
					owed += w.offer.Terms.Price
				}
			}
			if sum != 3000 || owed != w.held || w.offer.Sold > 2 {
				t.Fatalf("%s: %d coins, %d held, %d owed", w.trace, sum, w.held, owed)
			}
			for i, name := range []string{"alice", "bob"} {
				o := w.orders[i]
				switch {
				case !lied && (w.offer.Lied || o.Phase == Refunded):
					t.Fatalf("%s: the honest seller lied", w.trace)
				case !lied && w.revealed[i] && (o.Phase == Expired || o.Phase == Rejected):
					t.Fatalf("%s: the seller gave the key and was not paid", w.trace)
				case o.Phase == Refunded && w.coins[name] < 1000:
					t.Fatalf("%s: %s has %d", w.trace, name, w.coins[name])
				case (o.Phase == Expired || o.Phase == Rejected) && w.coins[name] < 1000:
					t.Fatalf("%s: %s has %d", w.trace, name, w.coins[name])
				case w.offer.Lied && o.Phase == Settled && !strings.Contains(w.trace, "blocks; "):
					t.Fatalf("%s: a liar was paid", w.trace)
				}
			}
		}
		if n := explore(t, w, moves(g, lied), 7, check); n < 1000 {
			t.Errorf("%d worlds", n)
		}
	}
}

func TestPartiesAndPhases(t *testing.T) {
	g := wares(t, 2, 1)
	o := g.offer()
	if _, _, err := o.Place(2, g.order("seller"), 1); !errors.Is(err, ErrParty) {
		t.Error(err)
	}
	if _, _, err := o.Place(2, Order{Buyer: "alice", Mask: MaskDigest(g.mask)}, 1); !errors.Is(err, ErrOrder) {
		t.Error(err)
	}
	o, r, err := o.Place(2, g.order("alice"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Reply(r, "bob", g.key, 2); !errors.Is(err, ErrParty) {
		t.Error(err)
	}
	if _, err := o.Reply(r, "seller", g.key[1:], 2); !errors.Is(err, ErrOrder) {
		t.Error(err)
	}
	if _, err := o.Reply(r, "seller", g.key, 22); !errors.Is(err, ErrPhase) {
		t.Errorf("a late answer: %v", err)
	}
	if _, _, _, err := o.Reject(r, "bob"); !errors.Is(err, ErrParty) {
		t.Errorf("a rejection by another: %v", err)
	}
	e := g.evidence(t, 1)
	if _, _, _, err := o.Complain(r, "alice", g.mask, e, 2); !errors.Is(err, ErrPhase) {
		t.Errorf("a complaint before the answer: %v", err)
	}
	answered, err := o.Reply(r, "seller", Unmask(g.key, g.mask), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := o.Complain(answered, "bob", g.mask, e, 3); !errors.Is(err, ErrParty) {
		t.Error(err)
	}
	if _, _, _, err := o.Complain(answered, "alice", g.key, e, 3); !errors.Is(err, ErrEvidence) {
		t.Errorf("another mask: %v", err)
	}
	if _, _, _, err := o.Complain(answered, "alice", g.mask, e, 23); !errors.Is(err, ErrPhase) {
		t.Errorf("a late complaint: %v", err)
	}
	o, refunded, payments, err := o.Complain(answered, "alice", g.mask, e, 22)
	if err != nil || refunded.Phase != Refunded || !o.Over() ||
		!slices.Equal(payments, []Payment{{"alice", 115}, {"", 16}}) {
		t.Errorf("%+v, %v, %v", refunded, payments, err)
	}
	if _, _, err := o.Place(3, g.order("bob"), 23); !errors.Is(err, ErrClosed) {
		t.Errorf("an order for the files of a liar: %v", err)
	}
}

// The price of files of a listing goes to the holders of shares, and the bond to the seller.
func TestHoldersGetThePriceOfAListing(t *testing.T) {
	g := wares(t, 2)
	o := g.offer()
	o.Terms.Listing, o.Terms.SellerPart = 3, 500_000
	if err := o.Terms.Validate(); err != nil {
		t.Error(err)
	}
	o, r, err := o.Place(2, g.order("alice"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = o.Reply(r, "seller", Unmask(g.key, g.mask), 2); err != nil {
		t.Fatal(err)
	}
	if o, _, err = o.Withdraw("seller"); err != nil {
		t.Fatal(err)
	}
	_, r, payments := o.Expire(r, r.Until+1)
	if r.Phase != Settled || !slices.Equal(payments, []Payment{{Holders, 100}, {"seller", 31}}) {
		t.Errorf("%s: %+v", r.Phase, payments)
	}
}

func FuzzParseEvidence(f *testing.F) {
	g := wares(f, 20, 3)
	f.Add(canon.MustMarshal(g.evidence(f, 3)))
	f.Add(canon.MustMarshal(Evidence{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ParseEvidence(data)
		if err != nil {
			return
		}
		if err := e.Shows(g.content, g.key); err == nil && (e.Index != 3 || !bytes.Equal(e.Leaf, g.leaves[3])) {
			t.Errorf("convicts by %+v", e)
		}
	})
}
