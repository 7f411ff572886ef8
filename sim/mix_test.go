package sim

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/protocol/reward"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
)

var (
	seeds = flag.Uint64("seeds", 20, "random mixes that TestMix plays")
	seed  = flag.Uint64("seed", 1, "the first of them")
)

// Whatever happens, the honest keep their stake, money is conserved, nobody is paid twice, and the lineage is signed;
// with everything audited by the honest, the model is the one that the job determines.
func TestMix(t *testing.T) { mixes(t, Mixer{}, *seeds) }

// And so on other terms that a job file can ask for.
func TestVariedMix(t *testing.T) { mixes(t, Mixer{Varied: true}, (*seeds+2)/3) }

func mixes(t *testing.T, like Mixer, seeds uint64) {
	var (
		g       errgroup.Group
		next    atomic.Uint64
		all     sync.Mutex
		lies    int
		slashed int
		spoiled int
		played  uint64
	)
	for range min(uint64(runtime.GOMAXPROCS(0)), seeds) {
		g.Go(func() error {
			m := like
			for {
				s := next.Add(1) - 1
				if s >= seeds {
					return nil
				}
				s += *seed
				c, err := m.Draw(s)
				if err != nil {
					return err
				}
				if testing.Verbose() && seeds == 1 {
					c.Log = func(line string) { t.Log(line) }
				}
				o, err := PlayMix(c)
				if err == nil && len(o.Wronged) > 0 {
					err = fmt.Errorf("%v kept the rules, and lost stake", o.Wronged)
				}
				if err != nil {
					t.Errorf("%v\nworkers %d, verifiers %d, slices %d, audits %d ppm (drawn segments: %v), acts %#v, faults %v, "+
						"comes %v, goes %v, link %+v\nreplay: go test ./sim -run '%s$' -v -seeds 1 -seed %d",
						err, c.Workers, c.Verifiers, c.Slices, c.AuditPPM, c.Drawn, c.Acts, c.Faults, c.Joins, c.Leaves, c.Link, t.Name(),
						s)
				}
				all.Lock()
				lies, slashed, played = lies+len(c.Acts), slashed+len(o.Slashed), played+1
				if err == nil && !o.Honest {
					spoiled++
				}
				if played%10 == 0 {
					fmt.Printf("%d seeds: %d adversaries, %d slashed, %d models spoiled by what was not audited\n", played, lies,
						slashed, spoiled)
				}
				all.Unlock()
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d seeds: %d adversaries, %d slashed, %d models spoiled by what was not audited", played, lies, slashed,
		spoiled)
}

func TestSameSeedSameTrace(t *testing.T) {
	for _, s := range []uint64{3, 4} {
		var first string
		for i := range 2 {
			w, err := New(must(new(Mixer).Draw(s))(t))
			if err != nil {
				t.Fatal(err)
			}
			d, err := w.Play()
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = d.String()
			} else if d.String() != first {
				t.Errorf("seed %d gives the traces %s and %s", s, first, d)
			}
		}
	}
}

// Canaries: what a checker must not let pass.
func TestCheckersSeeWhatIsWrong(t *testing.T) {
	play := func(t *testing.T, c Config, check Checker, spoil func(w *Network)) {
		w, err := New(c, check)
		if err != nil {
			t.Fatal(err)
		}
		spoil(w)
		if _, err = w.Play(); err == nil {
			t.Error("nothing was found")
		}
		t.Log(err)
	}
	nothing := func(*Network) {}
	broken := small(t)
	broken.Acts = one(w1, adversary.FlipsBit{Step: 4, Tensor: 2, Bit: 3})
	t.Run("a machine that computes wrong is slashed", func(t *testing.T) { play(t, broken, HonestNotSlashed{}, nothing) })
	blind := small(t)
	blind.Verifiers, blind.Acts = 1, map[string]adversary.Attack{w1: adversary.Poisons{Factor: -1},
		"verifier-0": verifiers.Colludes{With: []string{keyOf(w1).Address()}}}
	t.Run("a lie that nobody audits is in the model",
		func(t *testing.T) { play(t, blind, &Lineage{Honest: true}, nothing) })
	// With one who has no seat and looks in its spare time the same two lose.
	seen := blind
	order := seen.order()
	seen.Order, seen.Joins = &order, []Newcomer{{Name: "stranger", Role: crew.Verifier, At: 8 * time.Second}}
	t.Run("two who are one lose to a stranger that watches", func(t *testing.T) {
		w, err := New(seen, &Lineage{Honest: true}, CoinsConserved{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Play(); err != nil {
			t.Error(err)
		}
		s, err := w.State()
		if err != nil {
			t.Fatal(err)
		}
		liar, _ := s.Member(w.ID(w1))
		if stranger := w.ID("stranger"); liar.Why != reason.Verdict || !s.Guest(stranger) || s.Phase != progress.Done {
			t.Errorf("the run ends as %s, the liar as %+v, the stranger is a guest: %t", s.Phase, liar, s.Guest(stranger))
		}
	})
	// And so with two verifiers of the network, which look at nothing but what is drawn for them.
	asked := blind
	wanted := asked.order()
	asked.Order, asked.Joins, asked.Acts = &wanted, nil, maps.Clone(blind.Acts)
	for _, name := range []string{"first", "second"} {
		asked.Joins = append(asked.Joins, Newcomer{Name: name, Role: crew.Verifier, At: 8 * time.Second})
		asked.Acts[name] = verifiers.Idle{}
	}
	t.Run("two who are one lose to those whom the network draws", func(t *testing.T) {
		w, err := New(asked, CoinsConserved{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Play(); err != nil {
			t.Error(err)
		}
		s, err := w.State()
		if err != nil {
			t.Fatal(err)
		}
		if liar, _ := s.Member(w.ID(w1)); liar.Why != reason.Verdict || s.Phase != progress.Done || !s.Guest(w.ID("first")) &&
			!s.Guest(w.ID("second")) {
			t.Errorf("the run ends as %s, the liar as %+v", s.Phase, liar)
		}
	})
	t.Run("an account that nobody knows has coins", func(t *testing.T) {
		play(t, small(t), CoinsConserved{}, func(w *Network) { w.minted -= funds })
	})
	t.Run("a unit is paid twice", func(t *testing.T) {
		twice := &PaidOnce{commits: map[duty]int{{who: "a"}: 1, {who: "b"}: 1}}
		if err := twice.once([]reward.Receipt{{Kind: reward.Work, Amount: 1, Who: "a"},
			{Seq: 1, Kind: reward.Work, Amount: 1, Who: "b"}}); err == nil {
			t.Error("nothing was found")
		}
	})
}
