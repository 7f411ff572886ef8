package federated

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/secagg"
)

const weights = 6

var job, opening = canon.Sum("job"), Announcement{Round: 3, Model: canon.Sum("model")}

// owner is one of a round, with its values.
type owner struct {
	*Member
	key    ed25519.PrivateKey
	name   ed25519.PublicKey
	first  []byte
	values []uint32
}

func owners(t testing.TB, n int, c Conditions) (all []*owner) {
	t.Helper()
	for i := range n {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, 32))
		o := &owner{key: key, name: key.Public().(ed25519.PublicKey)}
		for k := range weights {
			o.values = append(o.values, uint32(i*10+k)-7)
		}
		o.values = append(o.values, fixedpoint.Unit)
		var err error
		if o.Member, o.first, err = NewMember(job, opening, c, key, prg.Key{byte(i)}, slices.Clone(o.values)); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// play plays a round in which owner i leaves before phase gone[i] if it is there.
func play(t *testing.T, all []*owner, cohort int, gone map[int]Phase) (*Round, error) {
	t.Helper()
	r, err := NewRound(job, opening, Conditions{Cohort: cohort, Encrypted: all[0].encrypt}, weights)
	if err != nil {
		t.Fatal(err)
	}
	message := map[int][]byte{}
	for i, o := range all {
		message[i] = o.first
	}
	for _, p := range Phases {
		for i, o := range all {
			if gone[i] == p {
				delete(message, i)
			}
			if m, has := message[i]; has {
				if err := r.Take(p, o.name, m); err != nil {
					t.Fatal(err)
				}
				if err := r.Take(p, o.name, m); err != nil {
					t.Errorf("the same message again: %v", err)
				}
				if _, ready, err := r.Reply(p, o.name); ready || err != nil {
					t.Errorf("a reply before the end of phase %s: %t, %v", p, ready, err)
				}
			}
		}
		if err := r.Close(); err != nil {
			return r, err
		}
		for i := range message {
			reply, ready, err := r.Reply(p, all[i].name)
			if err != nil || !ready {
				t.Fatalf("phase %s: %t, %v", p, ready, err)
			}
			if p == Secrets {
				continue
			}
			if message[i], err = all[i].Answer(p, reply); err != nil {
				t.Fatal(err)
			}
			if len(message[i]) > r.Largest(p.next()) || len(reply) > p.LargestReply() {
				t.Errorf("phase %s: %d bytes after a reply of %d", p, len(message[i]), len(reply))
			}
		}
	}
	return r, nil
}

func sumOf(all []*owner, but ...int) []uint32 {
	sum := make([]uint32, weights+1)
	for i, o := range all {
		for k, v := range o.values {
			if !slices.Contains(but, i) {
				sum[k] += v
			}
		}
	}
	return sum
}

// The sum is that of the owners whose vectors came, whichever owner leaves before whichever phase.
func TestRoundWithDropouts(t *testing.T) {
	for _, p := range append([]Phase{""}, Phases...) {
		all := owners(t, 5, Conditions{Cohort: 3})
		r, err := play(t, all, 3, map[int]Phase{1: p})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		want := sumOf(all)
		if p == Keys || p == Shares || p == Vectors {
			want = sumOf(all, 1)
		}
		if !slices.Equal(r.Sum(), want) || r.Phase() != Over {
			t.Errorf("without owner 1 from %q: %v, wanted %v", p, r.Sum(), want)
		}
		if p != "" && p != Keys && r.Dropouts[p] != 1 {
			t.Errorf("dropouts %v, wanted 1 in %s", r.Dropouts, p)
		}
	}
}

func TestTooFewHaveNoSum(t *testing.T) {
	all := owners(t, 5, Conditions{Cohort: 3})
	if r, err := play(t, all, 3, map[int]Phase{1: Vectors, 2: Vectors}); !errors.Is(err, secagg.ErrProtocol) ||
		r.Sum() != nil {
		t.Errorf("a sum of 3 of 5: %v", err)
	}
	if _, err := play(t, owners(t, 2, Conditions{Cohort: 3}), 3, nil); err == nil {
		t.Error("a round of two")
	}
}

// An owner that knows others answers nothing where too few of them take part.
func TestKnownOwners(t *testing.T) {
	all := owners(t, 5, Conditions{Cohort: 3})
	known := [][]byte{all[0].name, all[1].name, bytes.Repeat([]byte{9}, 32)}
	wary := owners(t, 5, Conditions{Cohort: 3, Known: known})[0]
	r, _ := NewRound(job, opening, Conditions{Cohort: 3}, weights)
	for _, o := range all {
		if err := r.Take(Keys, o.name, o.first); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	reply, _, _ := r.Reply(Keys, wary.name)
	if _, err := wary.Answer(Keys, reply); err == nil {
		t.Error("it shared secrets with owners that it does not know")
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	all := owners(t, 4, Conditions{Cohort: 3})
	r, _ := NewRound(job, opening, Conditions{Cohort: 3}, weights)
	wrong := func(p Phase, o *owner, b []byte) {
		t.Helper()
		if err := r.Take(p, o.name, b); err == nil {
			t.Errorf("%x was taken in phase %s", b[:min(8, len(b))], p)
		}
	}
	wrong(Keys, all[0], []byte("garbage"))
	wrong(Keys, all[0], all[1].first)
	wrong(Shares, all[0], all[0].first)
	wrong(Keys, all[0], make([]byte, 1<<20))
	for _, o := range all[:3] {
		if err := r.Take(Keys, o.name, o.first); err != nil {
			t.Fatal(err)
		}
	}
	wrong(Keys, all[0], all[1].first) // a second, other message
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	wrong(Keys, all[3], all[3].first)   // late
	wrong(Shares, all[3], all[3].first) // not of the roster
	if _, _, err := r.Reply(Keys, all[3].name); err == nil {
		t.Error("a reply to an owner that did not answer")
	}
	if len(r.Faults) == 0 {
		t.Error("no fault is listed")
	}
}

// Noise of all owners has the stated variance, or more, and is not added to the weight.
func TestNoise(t *testing.T) {
	const multiplier = 0.01
	var square float64
	n := 0
	for round := range uint32(60) {
		all := owners(t, 5, Conditions{Cohort: 3, Noise: multiplier})
		for i, o := range all { // another seed in each round
			o.seed = prg.Key{byte(i), byte(round), 1}
		}
		r, err := play(t, all, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		plain := sumOf(all)
		for k, v := range r.Sum()[:weights] {
			d := float64(int32(v-plain[k])) / fixedpoint.Unit
			square, n = square+d*d, n+1
		}
		if r.Sum()[weights] != plain[weights] {
			t.Fatal("the weight has noise")
		}
	}
	// of 5 owners, 3 are counted on, and 5 add noise
	if got, want := math.Sqrt(square/float64(n)), multiplier*math.Sqrt(5./3); math.Abs(got/want-1) > 0.15 {
		t.Errorf("standard deviation %v, wanted %v", got, want)
	}
}

func TestScaleFits(t *testing.T) {
	for n := secagg.MinCohort; n <= secagg.MaxClients; n++ {
		s := float64(scale(MaxNoise, n))
		if s < 1 || s > 1<<24 {
			t.Errorf("%d owners: scale %v", n, s)
		}
		if most := float64(n)*fixedpoint.Unit + 8*s*math.Sqrt(float64(n)); most >= 1<<31 {
			t.Errorf("%d owners: %v does not fit", n, most)
		}
	}
	if scale(0, 5) != 0 {
		t.Error("noise where none is asked for")
	}
}

func TestDrawn(t *testing.T) {
	n := 0
	for i := range 1000 {
		name := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 16)).Public().(ed25519.PublicKey)
		if Drawn(job, opening, name, 0.3) {
			n++
		}
		if !Drawn(job, opening, name, 1) || Drawn(job, opening, name, 0) {
			t.Fatal("all, or none")
		}
	}
	if n < 250 || n > 350 {
		t.Errorf("%d of 1000 are drawn, wanted 300", n)
	}
}

func TestEpsilon(t *testing.T) {
	// the vector of algorithms without sampling: q 1, sigma 10, 100 rounds
	if e := Epsilon(OfOwner, 1e-5, Spent{Noise: 10, Rounds: 100}); math.Abs(e-4.7527) > 1e-4 {
		t.Errorf("epsilon %v", e)
	}
	both := Epsilon(OfOwner, 1e-5, Spent{Noise: 10, Rounds: 40}, Spent{Noise: 10, Rounds: 60})
	if math.Abs(both-4.7527) > 1e-4 {
		t.Errorf("two jobs: %v", both)
	}
	if e := Epsilon(OfOwner, 1e-5, Spent{Rounds: 1}); !math.IsInf(e, 1) {
		t.Errorf("without noise: %v", e)
	}
	if e := Epsilon(OfOwner, 1e-5, Spent{}); e != 0 {
		t.Errorf("nothing: %v", e)
	}
}

func TestOffer(t *testing.T) {
	o := &Offer{File: []byte("kind: FederatedJob"), Overrides: []string{"seed=1"}, Entries: 5, Program: canon.Sum("p")}
	got, err := DecodeOffer(canon.MustMarshal(o))
	if err != nil || got.Job() != o.Job() {
		t.Fatal(err)
	}
	for _, bad := range []Offer{{Entries: 0}, {Entries: secagg.MaxEntries}, {Entries: 1, File: make([]byte, MaxFile+1)},
		{Entries: 1, Overrides: make([]string, MaxOverrides+1)}, {Entries: 1, Overrides: []string{string(make([]byte,
			MaxOverride+1))}}} {
		if _, err := DecodeOffer(canon.MustMarshal(&bad)); !errors.Is(err, ErrMessage) {
			t.Errorf("%d bytes, %d overrides: %v", len(bad.File), len(bad.Overrides), err)
		}
	}
}

// A sum is implausible if it is longer than clipped updates can be, or has other weights.
func TestPlausible(t *testing.T) {
	for _, c := range []struct {
		name  string
		first uint32 // first value and weight of owner 0
		w     uint32
		equal bool
		ok    bool
	}{
		{"honest", 5, fixedpoint.Unit, true, true},
		{"as long as the norm", fixedpoint.Unit, fixedpoint.Unit, true, true},
		{"hundredfold", 100 * fixedpoint.Unit, fixedpoint.Unit, true, false},
		{"hundredfold backwards", 1<<32 - 100*fixedpoint.Unit, fixedpoint.Unit, true, false},
		{"a smaller weight", 5, fixedpoint.Unit / 2, true, false},
		{"a smaller weight by examples", 5, fixedpoint.Unit / 2, false, true},
		{"a larger weight", 5, 50 * fixedpoint.Unit, false, false},
	} {
		all := owners(t, 5, Conditions{Cohort: 3})
		all[0].Member.values[0], all[0].Member.values[weights] = c.first, c.w
		r, err := play(t, all, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Plausible(0, c.equal); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for range 20 { // noise alone is never refused
		r, err := play(t, owners(t, 5, Conditions{Cohort: 3, Noise: 2}), 3, nil)
		if err == nil {
			err = r.Plausible(2, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzMessages decodes bytes as each message of a coordinator, and as each message of an owner.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{0x80})
	f.Add(canon.MustMarshal(&Offer{Entries: 1}))
	f.Add(canon.MustMarshal(opening))
	f.Add(owners(f, 1, Conditions{Cohort: 3})[0].first)
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := DecodeOffer(b); err == nil {
			_ = o.Job()
		}
		_, _ = DecodeAnnouncement(b)
		all := owners(t, 3, Conditions{Cohort: 3})
		r, _ := NewRound(job, opening, Conditions{Cohort: 3}, weights)
		_ = r.Take(Keys, all[0].name, b)
		for _, o := range all {
			_ = r.Take(Keys, o.name, o.first)
		}
		if err := r.Close(); err != nil {
			return
		}
		_ = r.Take(Shares, all[0].name, b)
		for _, p := range Phases {
			_, _ = all[0].Answer(p, b)
		}
	})
}
