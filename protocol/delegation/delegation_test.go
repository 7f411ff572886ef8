package delegation

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/starling-network/starling/protocol/coin"
)

const zen = 1_000_000

// town plays a pool with its delegators, and the coins that moved.
type town struct {
	t      *testing.T
	pool   Pool
	parts  map[string]Delegation
	earned map[string]map[string]Earned
	purses map[string]Purse
	own    uint64
	height int64

	in, out, slashed uint64            // uzen of stakes
	paid, claimed    map[string]uint64 // grains of pay, by coin
}

func newTown(t *testing.T) *town {
	return &town{t: t, pool: Pool{ID: "worker", Commission: 100_000}, parts: map[string]Delegation{}, own: 1000 * zen,
		earned: map[string]map[string]Earned{}, purses: map[string]Purse{}, paid: map[string]uint64{},
		claimed: map[string]uint64{}}
}

func (w *town) part(id string) Delegation {
	d := w.parts[id]
	d.Pool, d.Delegator = w.pool.ID, id
	return d
}

// accrue credits a delegator in all coins, before its shares change.
func (w *town) accrue(id string) {
	d := w.part(id)
	if w.earned[id] == nil {
		w.earned[id] = map[string]Earned{}
	}
	for denom, u := range w.purses {
		w.earned[id][denom] = w.earned[id][denom].Accrue(u, d.Shares-d.Leaving)
	}
}

func (w *town) join(id string, amount uint64) error {
	p, d, err := w.pool.Join(w.part(id), amount, w.own, 3600, w.height)
	if err == nil {
		w.pool, w.parts[id] = p, d
		w.in += amount
	}
	return err
}

func (w *town) enter(id string) {
	if w.part(id).Joining == 0 { // only what joins is due
		return
	}
	w.accrue(id)
	p, d, back := w.pool.Enter(w.part(id), w.own, true)
	w.pool, w.parts[id] = p, d
	w.out += back
}

func (w *town) leave(id string, amount uint64) error {
	w.accrue(id)
	p, d, back, err := w.pool.Leave(w.part(id), amount, 20_000, w.height)
	if err == nil {
		w.pool, w.parts[id] = p, d
		w.out += back
	}
	return err
}

func (w *town) exit(id string) uint64 {
	if w.part(id).Leaving == 0 {
		return 0
	}
	w.accrue(id)
	p, d, amount := w.pool.Exit(w.part(id))
	w.pool, w.parts[id] = p, d
	w.out += amount
	return amount
}

func (w *town) slash(part, whole uint64) {
	p, amount := w.pool.Slash(part, whole)
	w.pool = p
	w.slashed += amount
}

func (w *town) pay(denom string, grains uint64) Split {
	s := w.pool.Divide(grains, w.own)
	if s.Delegators+s.Kept > grains {
		w.t.Fatalf("%+v of %d", s, grains)
	}
	if s.Delegators == 0 {
		return s
	}
	u, ok := w.purses[denom].Pay(s.Delegators, w.pool.Earning())
	if !ok {
		w.t.Fatalf("%+v takes no %d", w.purses[denom], s.Delegators)
	}
	w.purses[denom] = u
	w.paid[denom] += s.Delegators
	return s
}

func (w *town) claim(id, denom string) uint64 {
	w.accrue(id)
	d := w.part(id)
	u, e, due := w.purses[denom].Claim(w.earned[id][denom], d.Shares-d.Leaving)
	w.purses[denom], w.earned[id][denom] = u, e
	w.claimed[denom] += due
	return due
}

// check compares the pool with the coins that moved.
func (w *town) check() {
	w.t.Helper()
	if w.in != w.out+w.slashed+w.pool.Tokens+w.pool.Joining {
		w.t.Fatalf("in %d, out %d, slashed %d, pool %+v", w.in, w.out, w.slashed, w.pool)
	}
	var shares, leaving, joining, worth uint64
	n := uint32(0)
	for _, d := range w.parts {
		shares, leaving, joining = shares+d.Shares, leaving+d.Leaving, joining+d.Joining
		stays, leaves := w.pool.Worth(d)
		worth += stays + leaves
		if !d.Empty() {
			n++
		}
	}
	if shares != w.pool.Shares || leaving != w.pool.Leaving || joining != w.pool.Joining || n != w.pool.Delegators ||
		worth > w.pool.Tokens {
		w.t.Fatalf("%d shares, %d leave, %d uzen join, %d delegators, worth %d: %+v", shares, leaving, joining, n, worth,
			w.pool)
	}
	for denom, u := range w.purses {
		var due uint64
		for id, d := range w.parts {
			_, _, n := u.Claim(w.earned[id][denom], d.Shares-d.Leaving)
			due += n
		}
		if u.Held != w.paid[denom]-w.claimed[denom] || due > u.Held {
			w.t.Fatalf("%s: paid %d, claimed %d, due %d: %+v", denom, w.paid[denom], w.claimed[denom], due, u)
		}
	}
}

// Delegators, slashes and payments in two coins make no coin and lose none, in any order, and the delegators are owed
// no more than there is.
func TestNoCoinIsMadeOrLost(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newTown(t)
		for range 150 {
			id, amount := strconv.Itoa(r.IntN(6)), r.Uint64N(200*zen)
			switch w.height++; r.IntN(9) {
			case 0, 1:
				_ = w.join(id, amount)
			case 2, 3:
				w.enter(id)
			case 4:
				_ = w.leave(id, amount*r.Uint64N(2))
			case 5:
				w.exit(id)
			case 6:
				if r.IntN(4) == 0 {
					w.slash(r.Uint64N(1+w.own), w.own)
				}
			case 7:
				w.pay([]string{"", "usdc"}[r.IntN(2)], r.Uint64N(1<<uint(1+r.IntN(50))))
			case 8:
				w.claim(id, []string{"", "usdc"}[r.IntN(2)])
			}
			w.check()
		}
		for id := range w.parts { // all leave: the pool holds nothing, and each purse less than a grain a payment
			_ = w.leave(id, 0)
			w.exit(id)
			w.claim(id, "")
			w.claim(id, "usdc")
		}
		w.check()
		if w.pool.Tokens != 0 || w.pool.Shares != 0 || w.pool.Joining != 0 || w.pool.Delegators != 0 ||
			w.purses[""].Held > 300 || w.purses["usdc"].Held > 300 {
			t.Fatalf("%+v, %+v", w.pool, w.purses)
		}
	}
}

// Stake that leaves is slashed until it is out, and a slash takes the same part of everyone.
func TestLeavingIsSlashed(t *testing.T) {
	w := newTown(t)
	for _, id := range []string{"a", "b"} {
		if err := w.join(id, 100*zen); err != nil {
			t.Fatal(err)
		}
		w.enter(id)
	}
	if err := w.leave("a", 0); err != nil {
		t.Fatal(err)
	}
	w.slash(w.own/4, w.own)
	if got := w.exit("a"); got != 75*zen {
		t.Errorf("%d", got)
	}
	if stays, _ := w.pool.Worth(w.parts["b"]); stays != 75*zen {
		t.Errorf("%d", stays)
	}
	w.check()
}

// Stake that joins is not paid before its blocks are over, and stake that leaves is not paid at all: a delegation that
// comes before a payment and leaves after it gets nothing of it.
func TestNoPayInPassing(t *testing.T) {
	w := newTown(t)
	if err := w.join("stays", 100*zen); err != nil {
		t.Fatal(err)
	}
	w.enter("stays")
	if err := w.join("passes", 300*zen); err != nil {
		t.Fatal(err)
	}
	w.pay("", 11*zen)
	if err := w.leave("passes", 0); err != nil {
		t.Fatal(err)
	}
	if got := w.claim("passes", ""); got != 0 {
		t.Errorf("%d", got)
	}
	if got := w.claim("stays", ""); got != 899_999 { // 11 x 100/1100, less a tenth, rounded down
		t.Errorf("%d", got)
	}
	w.check()
}

// The participant's own stake bounds what it may be delegated, and what of it counts when that stake falls.
func TestOwnStakeIsTheMeasure(t *testing.T) {
	w := newTown(t)
	if err := w.join("a", 500*zen+1); !errors.Is(err, ErrRoom) {
		t.Errorf("%v", err)
	}
	if err := w.join("a", 500*zen); err != nil {
		t.Fatal(err)
	}
	if err := w.join("b", Least); !errors.Is(err, ErrRoom) {
		t.Errorf("%v", err)
	}
	w.enter("a")
	if got := w.pool.Backing(w.own); got != 500*zen {
		t.Errorf("%d", got)
	}
	if got := w.pool.Backing(10 * zen); got != 5*zen {
		t.Errorf("%d", got)
	}
	if got := w.pool.Backing(0); got != 0 {
		t.Errorf("%d", got)
	}
	_, d, back := Pool{Joining: 5 * zen, Delegators: 1}.Enter(Delegation{Joining: 5 * zen}, zen, true)
	if back != 5*zen || !d.Empty() { // the participant took its stake back meanwhile
		t.Errorf("%d back, %+v", back, d)
	}
}

// A commission that rises holds when those who leave over it are out; a lower one at once.
func TestCommissionRisesLate(t *testing.T) {
	p, from, err := Pool{ID: "worker"}.Announce(false, 50_000, false, 20_000, 10)
	if err != nil || from != 10 || p.Commission != 50_000 {
		t.Fatalf("%+v from %d, %v", p, from, err)
	}
	p, from, _ = p.Announce(true, 400_000, false, 20_000, 11)
	if from != 20_011 || p.At(20_010).Commission != 50_000 || p.At(20_011).Commission != 400_000 {
		t.Errorf("%+v from %d", p, from)
	}
	if again, from, _ := p.Announce(true, 500_000, false, 20_000, 20_010); from != 40_010 ||
		again.At(20_011).Commission != 50_000 { // another rise waits again
		t.Errorf("%+v from %d", again, from)
	}
	if low, from, _ := p.Announce(true, 0, true, 20_000, 12); from != 12 || low.Commission != 0 || low.From != 0 {
		t.Errorf("%+v from %d", low, from)
	}
	if _, _, err := p.Announce(true, million+1, false, 1, 1); !errors.Is(err, ErrTerms) {
		t.Errorf("%v", err)
	}
}

// A pool that a slash emptied takes nothing more, and those in it can leave and claim what they earned.
func TestAnEmptiedPoolIsClosed(t *testing.T) {
	w := newTown(t)
	if err := w.join("a", 100*zen); err != nil {
		t.Fatal(err)
	}
	w.enter("a")
	w.pay("", 1100*zen)
	w.slash(1, 1)
	if err := w.join("b", 10*zen); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if s := w.pool.Divide(1000, w.own); s != (Split{}) {
		t.Errorf("%+v", s)
	}
	if err := w.leave("a", 0); err != nil {
		t.Fatal(err)
	}
	if got := w.exit("a"); got != 0 {
		t.Errorf("%d", got)
	}
	if got := w.claim("a", ""); got != 90*zen-1 { // rounded down
		t.Errorf("%d", got)
	}
	w.check()
	if err := w.join("b", 10*zen); err != nil { // none of the old shares is left
		t.Error(err)
	}
}

// Too little, too many, and none of an account's are refused.
func TestRefusals(t *testing.T) {
	p := Pool{ID: "worker", Delegators: MostDelegators}
	if _, _, err := p.Join(Delegation{}, Least-1, 1000*zen, 1, 1); !errors.Is(err, ErrDust) {
		t.Error(err)
	}
	if _, _, err := p.Join(Delegation{}, Least, 1000*zen, 1, 1); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
	if _, _, err := p.Join(Delegation{Shares: 1}, Least, 1000*zen, 1, 1); err != nil { // it is one of them
		t.Error(err)
	}
	if _, _, _, err := p.Leave(Delegation{}, 0, 1, 1); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	p.Tokens, p.Shares = 10*zen, 10*zen
	d := Delegation{Shares: 10 * zen}
	if _, _, _, err := p.Leave(d, 10*zen+1, 1, 1); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, _, _, err := p.Leave(d, 10*zen-1, 1, 1); !errors.Is(err, ErrDust) {
		t.Error(err)
	}
}

// The largest numbers neither wrap nor stop a settlement.
func TestLargestNumbers(t *testing.T) {
	const most = ^uint64(0)
	p := Pool{Tokens: 1 << 62, Shares: 1 << 62}
	if s := p.Divide(most, 1<<62); s.Delegators != most/2 {
		t.Errorf("%+v", s)
	}
	if s := p.Divide(most, most); s != (Split{}) { // own and delegated stake beyond 64 bits: none
		t.Errorf("%+v", s)
	}
	u, ok := Purse{Coin: coin.Coin{Denom: "x"}}.Pay(most, 1)
	if _, more := u.Pay(1, 1); !ok || more {
		t.Errorf("%v, %v", ok, more)
	}
	if _, ok := u.Pay(1, 0); ok {
		t.Error("paid to no shares")
	}
	if after, amount := p.Slash(most, most); amount != 1<<62 || after.Tokens != 0 {
		t.Errorf("%d, %+v", amount, after)
	}
	if _, amount := p.Slash(1, 0); amount != 0 {
		t.Errorf("%d", amount)
	}
}
