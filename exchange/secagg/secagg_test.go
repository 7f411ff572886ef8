package secagg

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/exchange/prg"
)

// cohort is a sum with its clients in one process; dead says in which phase a client drops out.
type cohort struct {
	t       *testing.T
	terms   Terms
	clients []*Client // by index of the roster
	values  [][]uint32
	server  *Server
	roster  Roster
}

func key(i int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
}

func begin(t *testing.T, n, entries int) *cohort {
	t.Helper()
	c := &cohort{t: t, terms: Terms{Session: canon.Sum("test", fmt.Append(nil, n)), Cohort: min(n, 5), Entries: entries}}
	var err error
	if c.server, err = NewServer(c.terms); err != nil {
		t.Fatal(err)
	}
	clients := map[string]*Client{}
	for i := range n {
		one, advert, err := NewClient(c.terms, key(i), prg.Key{byte(i), 7})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.server.Advertise(advert); err != nil {
			t.Fatal(err)
		}
		clients[string(advert.Name)] = one
	}
	if c.roster, err = c.server.CloseAdverts(); err != nil {
		t.Fatal(err)
	}
	for i, a := range c.roster {
		c.clients = append(c.clients, clients[string(a.Name)])
		v := make([]uint32, entries)
		for k := range v {
			v[k] = philox.Block(uint64(i), 1, uint64(k))[0]
		}
		c.values = append(c.values, v)
	}
	return c
}

func (c *cohort) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// share plays the second phase with the clients that alive holds.
func (c *cohort) share(alive func(i int) bool, change func(i int, d *Dealt)) {
	for i, one := range c.clients {
		if !alive(i) {
			continue
		}
		d, err := one.Share(c.roster)
		c.must(err)
		if change != nil {
			change(i, &d)
		}
		c.must(c.server.Deal(i, d))
	}
	c.must(c.server.CloseDeals())
}

func (c *cohort) mask(alive func(i int) bool) (survivors []int) {
	for i, one := range c.clients {
		if !alive(i) {
			continue
		}
		inbox, err := c.server.Inbox(i)
		c.must(err)
		b, err := one.Mask(inbox, slices.Clone(c.values[i]))
		c.must(err)
		c.must(c.server.Masked(i, b))
	}
	survivors, err := c.server.CloseMasked()
	c.must(err)
	return survivors
}

func (c *cohort) confirm(alive func(i int) bool, survivors []int) []Confirmation {
	for i, one := range c.clients {
		if alive(i) {
			s, err := one.Confirm(survivors)
			c.must(err)
			c.must(c.server.Confirm(s))
		}
	}
	by, err := c.server.CloseConfirm()
	c.must(err)
	return by
}

func (c *cohort) open(alive func(i int) bool, by []Confirmation, change func(i int, o []Opened)) (faults int) {
	for i, one := range c.clients {
		if !alive(i) {
			continue
		}
		o, err := one.Open(by)
		c.must(err)
		if change != nil {
			change(i, o)
		}
		if err := c.server.Open(i, o); err != nil {
			if _, ok := errors.AsType[*Fault](err); !ok {
				c.t.Fatal(err)
			}
			faults++
		}
	}
	return faults
}

func (c *cohort) plain(of []int) []uint32 {
	sum := make([]uint32, c.terms.Entries)
	for _, i := range of {
		for k, v := range c.values[i] {
			sum[k] += v
		}
	}
	return sum
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "play cohorts of 100 clients, as .ci/run does")

func anyone(int) bool { return true }

// TestSumIsExact plays cohorts with up to 30 % of the clients dropping out in each phase: the sum is that of the
// survivors, to the bit.
func TestSumIsExact(t *testing.T) {
	sizes := []int{5, 20}
	if *long {
		sizes = append(sizes, 100)
	}
	for _, n := range sizes {
		for phase := range 5 {
			t.Run(fmt.Sprintf("%d clients, phase %d", n, phase), func(t *testing.T) {
				c := begin(t, n, 33)
				gone := (n - Threshold(n)) // 1 of 5, 6 of 20, 33 of 100
				c.terms.Cohort = min(5, n-gone)
				for _, one := range c.clients {
					one.terms.Cohort = c.terms.Cohort
				}
				c.server.terms.Cohort = c.terms.Cohort
				from := func(p int) func(int) bool { return func(i int) bool { return phase != 0 && p < phase || i >= gone } }
				c.share(from(1), nil)
				survivors := c.mask(from(2))
				by := c.confirm(from(3), survivors)
				c.open(from(4), by, nil)
				sum, err := c.server.Sum()
				c.must(err)
				if !slices.Equal(sum, c.plain(survivors)) {
					t.Error("the sum is not that of the survivors")
				}
			})
		}
	}
}

// TestLiarsAreNamed: a third of the clients open wrong shares, and are found; the sum is right all the same.
func TestLiarsAreNamed(t *testing.T) {
	c := begin(t, 20, 9)
	c.share(anyone, nil)
	by := c.confirm(anyone, c.mask(anyone))
	faults := c.open(anyone, by, func(i int, o []Opened) {
		if i < 6 {
			o[0].Share[3] ^= 1
		}
	})
	sum, err := c.server.Sum()
	c.must(err)
	if faults != 6 || !slices.Equal(sum, c.plain(all(20))) {
		t.Errorf("%d faults", faults)
	}
}

// TestDealersOfWrongSharesAreNamed: shares of another seed, and shares that their digests contradict.
func TestDealersOfWrongSharesAreNamed(t *testing.T) {
	for name, change := range map[string]func(d *Dealt){
		"another seed": func(d *Dealt) { d.SelfSum[0] ^= 1 },
		"digests":      func(d *Dealt) { clear(d.Selves) },
		"ciphers": func(d *Dealt) {
			for _, s := range d.Sealed {
				clear(s)
			}
		},
	} {
		c := begin(t, 8, 9)
		c.share(anyone, func(i int, d *Dealt) {
			if i == 2 {
				change(d)
			}
		})
		by := c.confirm(anyone, c.mask(anyone))
		c.open(anyone, by, nil)
		_, err := c.server.Sum()
		if f, ok := errors.AsType[*Fault](err); !ok || !bytes.Equal(f.Name, c.roster[2].Name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServerIsRefusedBothSecrets: a server that tells clients different survivors gets no share: neither from one
// client twice, nor from clients that confirmed another set.
func TestServerIsRefusedBothSecrets(t *testing.T) {
	c := begin(t, 9, 4)
	c.share(anyone, nil)
	survivors := c.mask(anyone)
	without := survivors[1:] // as if client 0 had dropped out, whose vector the server has
	var with, less []Confirmation
	for i, one := range c.clients {
		set, list := survivors, &with
		if i > 4 {
			set, list = without, &less
		}
		s, err := one.Confirm(set)
		c.must(err)
		*list = append(*list, s)
		if _, err := one.Confirm(without); !errors.Is(err, ErrProtocol) {
			t.Errorf("client %d confirms twice: %v", i, err)
		}
	}
	for _, by := range [][]Confirmation{with, less, slices.Concat(with, less), nil} {
		for i, one := range c.clients {
			if o, err := one.Open(by); !errors.Is(err, ErrProtocol) {
				t.Errorf("client %d opens %v: %v", i, o, err)
			}
		}
	}
}

// TestNoBothOfOneClient: of each client, the shares that all others open are of one secret.
func TestNoBothOfOneClient(t *testing.T) {
	c := begin(t, 9, 4)
	c.share(anyone, nil)
	alive := func(i int) bool { return i > 1 }
	by := c.confirm(alive, c.mask(alive))
	for i := 2; i < 9; i++ {
		o, err := c.clients[i].Open(by)
		c.must(err)
		seen := map[int]bool{}
		for _, x := range o {
			if seen[x.Of] {
				t.Errorf("client %d opens two shares of %d", i, x.Of)
			}
			seen[x.Of] = true
		}
		if _, err := c.clients[i].Open(by); !errors.Is(err, ErrProtocol) {
			t.Errorf("client %d opens twice: %v", i, err)
		}
	}
}

// TestIsolation: a server that leaves too few others in the roster, the inbox, the survivors or the signatures, or
// fills the roster with names that a client does not know, gets no masked vector, or no share.
func TestIsolation(t *testing.T) {
	c := begin(t, 9, 4)
	one := func() *Client {
		x, _, err := NewClient(c.terms, c.clients[0].name, c.clients[0].seed)
		c.must(err)
		return x
	}
	if _, err := one().Share(c.roster[:3]); !errors.Is(err, ErrProtocol) {
		t.Errorf("a roster of 3: %v", err)
	}
	changed := slices.Clone(c.roster)
	changed[1].Mask = changed[2].Mask
	if _, err := one().Share(changed); !errors.Is(err, ErrProtocol) {
		t.Errorf("a changed key: %v", err)
	}
	stranger := one()
	for i := range 4 {
		stranger.terms.Known = append(stranger.terms.Known, c.roster[i].Name)
	}
	if _, err := stranger.Share(c.roster); !errors.Is(err, ErrProtocol) {
		t.Errorf("4 known names of 5: %v", err)
	}
	c.share(anyone, nil)
	inbox, err := c.server.Inbox(0)
	c.must(err)
	for _, b := range [][]Received{nil, inbox[:5], append(inbox[:7:7], inbox[0])} {
		if _, err := c.clients[0].Mask(b, make([]uint32, 4)); !errors.Is(err, ErrProtocol) {
			t.Errorf("an inbox of %d: %v", len(b), err)
		}
	}
	survivors := c.mask(anyone)
	for _, s := range [][]int{{0, 1, 2}, survivors[1:], {0, 0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6, 99}} {
		if _, err := c.clients[0].Confirm(s); !errors.Is(err, ErrProtocol) {
			t.Errorf("survivors %v: %v", s, err)
		}
	}
}

// TestReplays: messages of another session are worth nothing, and each message counts once.
func TestReplays(t *testing.T) {
	c := begin(t, 5, 4)
	other, err := NewServer(Terms{Session: canon.Sum("other"), Cohort: 5, Entries: 4})
	c.must(err)
	if err := other.Advertise(c.roster[0]); !errors.Is(err, ErrProtocol) {
		t.Errorf("an advert of another session: %v", err)
	}
	d, err := c.clients[0].Share(c.roster)
	c.must(err)
	c.must(c.server.Deal(0, d))
	if err := c.server.Deal(0, d); !errors.Is(err, ErrProtocol) {
		t.Errorf("shares twice: %v", err)
	}
	if _, err := c.clients[0].Share(c.roster); !errors.Is(err, ErrProtocol) {
		t.Errorf("a roster twice: %v", err)
	}
}

// TestMaskedVectorsLookRandom: whatever the vector of a client, its masked bytes are uniform (chi-square of 256 values;
// the limit is the 0.9999 quantile of 255 degrees of freedom).
func TestMaskedVectorsLookRandom(t *testing.T) {
	c := begin(t, 5, 1<<16)
	c.values[0] = make([]uint32, 1<<16)
	c.share(anyone, nil)
	inbox, err := c.server.Inbox(0)
	c.must(err)
	b, err := c.clients[0].Mask(inbox, c.values[0])
	c.must(err)
	var count [256]float64
	for _, x := range b {
		count[x]++
	}
	chi, want := 0.0, float64(len(b))/256
	for _, n := range count {
		chi += (n - want) * (n - want) / want
	}
	if chi > 347 {
		t.Errorf("chi-square %.1f", chi)
	}
}

// FuzzMessages decodes bytes as each message, and gives those that decode to a client and a server.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		terms := Terms{Session: canon.Sum("fuzz"), Cohort: 3, Entries: 2}
		s, err := NewServer(terms)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			_, a, _ := NewClient(terms, key(i), prg.Key{byte(i)})
			if err := s.Advertise(a); err != nil {
				t.Fatal(err)
			}
		}
		r, err := s.CloseAdverts()
		if err != nil {
			t.Fatal(err)
		}
		own := key(0).Public().(ed25519.PublicKey)
		index := slices.IndexFunc(r, func(a Advert) bool { return bytes.Equal(a.Name, own) })
		c, _, _ := NewClient(terms, key(0), prg.Key{0})
		var roster Roster
		if canon.Unmarshal(b, &roster) == nil {
			_, _ = c.Share(roster)
		}
		var d Dealt
		if canon.Unmarshal(b, &d) == nil {
			_ = s.Deal(index, d)
		}
		if _, err := c.Share(r); err != nil {
			t.Fatal(err)
		}
		var inbox []Received
		if canon.Unmarshal(b, &inbox) == nil {
			_, _ = c.Mask(inbox, make([]uint32, 2))
		}
		var survivors []int
		if canon.Unmarshal(b, &survivors) == nil {
			_, _ = c.Confirm(survivors)
		}
		var by []Confirmation
		if canon.Unmarshal(b, &by) == nil {
			_, _ = c.Open(by)
		}
	})
}
