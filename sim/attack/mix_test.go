package attack

import (
	"cmp"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/sim"
)

var (
	seeds = flag.Uint64("seeds", 0, "random mixes that TestMix plays; 0: 2 of them, 10 with -long")
	seed  = flag.Uint64("seed", 1, "the first of them")
)

// In every mix the honest keep their stake, money is conserved, no work is paid twice, and the lineage is signed;
// with everything audited by the honest, the model is the one that the job determines.
func TestMix(t *testing.T) { mixes(t, Mixer{}, played()) }

// And so on other terms that a job file can ask for.
func TestVariedMix(t *testing.T) { mixes(t, Mixer{Varied: true}, (played()+2)/3) }

// played is how many mixes are played.
func played() uint64 {
	if *seeds == 0 && *long {
		return 10
	}
	return cmp.Or(*seeds, 2)
}

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
						"comes %v, goes %v, pauses %v, link %+v\nreplay: go test ./sim/attack -run '%s$' -v -seeds 1 -seed %d",
						err, c.Workers, c.Verifiers, c.Slices, c.AuditPPM, c.Drawn, c.Acts, c.Faults, c.Joins, c.Leaves, c.Pauses, c.Link,
						t.Name(),
						s)
				}
				all.Lock()
				lies, slashed, played = lies+len(c.Acts), slashed+len(o.Slashed), played+1
				if err == nil && !o.Honest {
					spoiled++
				}
				if played%10 == 0 {
					fmt.Printf("%d seeds: %d adversaries, %d slashed, %d models spoiled by unaudited work\n", played, lies,
						slashed, spoiled)
				}
				all.Unlock()
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d seeds: %d adversaries, %d slashed, %d models spoiled by unaudited work", played, lies, slashed,
		spoiled)
}

// A mix that is played again, with a job of its own, gives the trace that it gave before.
func TestSameSeedSameTrace(t *testing.T) {
	onlyLong(t)
	const seed = 3
	var traces [2]string
	for i := range traces {
		w := must(sim.New(must(new(Mixer).Draw(seed))(t)))(t)
		traces[i] = must(w.Play())(t).String()
	}
	if traces[0] != traces[1] {
		t.Errorf("seed %d gives the traces %s and %s", seed, traces[0], traces[1])
	}
}
