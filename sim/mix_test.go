package sim

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/adversary"
)

var (
	seeds = flag.Uint64("seeds", 200, "random mixes that TestMix plays")
	seed  = flag.Uint64("seed", 1, "the first of them")
)

// crooked lists adversaries that a mix draws from.
var crooked = map[run.Role][]adversary.Act{
	run.Worker: {
		adversary.Skips{}, adversary.TrainsLess{Steps: 3}, adversary.WrongData{}, adversary.WrongRate{Factor: 1.01}, adversary.Copies{},
		adversary.CopiesChanged{}, adversary.FlipsBit{Step: 2, Tensor: 3, Bit: 1}, adversary.Poisons{Factor: 3}, adversary.Equivocates{},
		adversary.Equivocates{TrueFirst: true}, adversary.GoesSilent{}, adversary.Malforms{}, adversary.Oversizes{}, adversary.Misattests{}, adversary.ClaimsDivergence{},
		adversary.Patient{Round: 1, Then: adversary.Skips{}}, adversary.Patient{Round: 2, Then: adversary.Poisons{Factor: 2}},
		adversary.Lies{Segment: adversary.First, Step: adversary.Last, Operator: adversary.First, Part: adversary.Last},
		adversary.Lies{Segment: adversary.Last, Step: adversary.First, Operator: adversary.Nowhere, Part: adversary.First},
	},
	run.Verifier: {
		adversary.Stamps{}, adversary.CopiesSeal{Of: "somebody"}, adversary.Accuses{Segment: 1}, adversary.Accuses{Segment: 2, Manner: adversary.Inventing},
		adversary.Accuses{Segment: 0, Manner: adversary.Malformed}, adversary.Accuses{Segment: 3, Manner: adversary.Silently},
		adversary.GoesSilent{}, adversary.Misattests{},
	},
}

// mix draws a network: its size, its links, what breaks, and who lies. Fewer than a third of the members lie, and an
// honest verifier is among them.
func mix(c Config, seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 1))
	between := func(low, high int) int { return low + r.IntN(high-low+1) }
	c.BlockTime, c.Deadline = 4*time.Second, 6
	c.Seed, c.Workers, c.Verifiers = seed, between(3, 6), between(2, 3)
	c.AuditPPM = []uint32{1_000_000, 200_000, 50_000}[r.IntN(3)]
	c.Link = Link{Latency: time.Duration(between(5, 300)) * time.Millisecond, Up: float64(between(1, 100)) * 1e5, Down: float64(between(1, 100)) * 1e5, Loss: r.Float64() * 0.05}
	c.Unit = time.Duration(between(500, 4000)) * time.Millisecond
	names := c.Names()
	c.Acts = map[string]adversary.Act{}
	for range between(0, (len(names)-1)/3) {
		i := r.IntN(len(names))
		role := run.Worker
		if i >= c.Workers {
			role = run.Verifier
			i = c.Workers // one of them may lie
		}
		c.Acts[names[i]] = crooked[role][r.IntN(len(crooked[role]))]
	}
	if r.IntN(4) == 0 {
		c.Withhold = []int{r.IntN(c.Validators)}
	}
	for range between(0, 3) {
		f := Fault{At: time.Duration(between(12, 120)) * time.Second, For: time.Duration(between(1, 8)) * time.Second, Who: names[r.IntN(len(names))]}
		if other := names[r.IntN(len(names))]; r.IntN(2) == 0 && other != f.Who {
			f.From = other
		}
		c.Faults = append(c.Faults, f)
	}
	if r.IntN(3) == 0 {
		c.Slices = uint32(between(1, 6))
		if len(c.Acts) > 0 && r.IntN(2) == 0 { // one of those who lie lies about slices
			liar := slices.Min(slices.Collect(maps.Keys(c.Acts)))
			c.Acts[liar] = []adversary.Act{adversary.ShirksSlices{}, adversary.ShirksSlices{Seals: true}, adversary.FakesSlices{}}[r.IntN(3)]
		}
	}
	if r.IntN(2) == 0 {
		churn(&c, r)
	}
	c.Drawn = r.IntN(4) == 0
	return c
}

// churn lets machines come and go: honest ones leave, new ones join, some are switched off for longer than anybody waits for
// them, or cut off from the chain, and come back. Enough stay that the run need not end.
func churn(c *Config, r *rand.Rand) {
	seconds := func(low, high int) time.Duration { return time.Duration(low+r.IntN(high-low+1)) * time.Second }
	c.Most, c.Goes = c.Workers+r.IntN(3), map[string]time.Duration{}
	for i := range r.IntN(3) {
		c.Comes = append(c.Comes, Newcomer{Name: fmt.Sprint("new-", i), Role: []run.Role{run.Worker, run.Worker, run.Verifier}[r.IntN(3)], At: seconds(4, 100)})
	}
	for _, name := range c.Names()[1:c.Workers] {
		if _, lies := c.Acts[name]; lies {
			continue
		}
		switch r.IntN(5) {
		case 0:
			c.Goes[name] = seconds(12, 120)
		case 1:
			c.Faults = append(c.Faults, Fault{At: seconds(12, 120), For: seconds(30, 150), Who: name})
		case 2:
			c.Faults = append(c.Faults, Fault{At: seconds(12, 120), For: seconds(5, 60), Who: name, From: Chain})
		}
	}
}

// away are those who are switched off or cut off for longer than a move in a dispute may take: who accuses them falsely, or
// challenges a fault that they planted, wins by their silence. It is no more than the rules promise to who stays reachable.
func away(c Config) (names []string) {
	for _, f := range c.Faults {
		if f.For >= 20*time.Second {
			names = append(names, f.Who)
		}
	}
	return names
}

func playMix(c Config) (Outcome, error) {
	guilty, away := slices.Collect(maps.Keys(c.Acts)), away(c)
	w, err := New(c, Money{}, &Pay{Guilty: guilty, Away: away}, Justice{Guilty: guilty, Away: away}, &Lineage{Honest: c.AuditPPM == 1_000_000 && !c.Drawn})
	if err != nil {
		return Outcome{}, err
	}
	if _, err := w.Play(); err != nil {
		return Outcome{}, err
	}
	o, err := w.Outcome()
	if err == nil && o.Phase != run.Done {
		err = fmt.Errorf("the run ends in phase %d after %d rounds: %s", o.Phase, o.Rounds, o.Why)
	}
	return o, err
}

// Whatever happens, the honest keep their stake, money is conserved, nobody is paid twice, and the lineage is signed; with
// everything audited by the honest, the model is the one that the job determines.
func TestMix(t *testing.T) {
	base := small(t)
	base.MaxBlocks = 1000
	var lies, convicted, spoiled int
	for s := *seed; s < *seed+*seeds; s++ {
		c := mix(base, s)
		if s%3 == 0 { // units hand on a state, and one of those who lie may lie about that
			switch c.Job = sized(t, carrying).Job; s % 9 {
			case 0: // and begin from it
				c.Job, c.Slices = sized(t, replicating).Job, 0
			case 3: // and go on with it while it is sent
				c.Job, c.Slices = sized(t, [2]Size{overlapping, streaming}[s/2%2]).Job, 0
			}
			for _, who := range slices.Sorted(maps.Keys(c.Acts)) {
				if strings.HasPrefix(who, "worker") && s%2 == 0 {
					c.Acts[who] = adversary.TampersState{Withholds: s%4 == 0}
					break
				}
			}
		}
		if testing.Verbose() && *seeds == 1 {
			c.Log = func(line string) { t.Log(line) }
		}
		o, err := playMix(c)
		if err != nil {
			t.Errorf("%v\nworkers %d, verifiers %d, slices %d, audits %d ppm (drawn segments: %v), acts %#v, faults %v, comes %v, goes %v, link %+v\nreplay: go test ./sim -run 'TestMix$' -v -seeds 1 -seed %d",
				err, c.Workers, c.Verifiers, c.Slices, c.AuditPPM, c.Drawn, c.Acts, c.Faults, c.Comes, c.Goes, c.Link, s)
		}
		lies += len(c.Acts)
		convicted += len(o.Slashed)
		if err == nil && !o.Honest {
			spoiled++
		}
		if s%10 == 0 {
			fmt.Printf("seed %d: %d adversaries, %d slashed, %d models spoiled by what was not audited\n", s, lies, convicted, spoiled)
		}
	}
	t.Logf("%d seeds: %d adversaries, %d slashed, %d models spoiled by what was not audited", *seeds, lies, convicted, spoiled)
}

func TestSameSeedSameTrace(t *testing.T) {
	for _, s := range []uint64{3, 4} {
		var first string
		for i := range 2 {
			w, err := New(mix(small(t), s))
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
	play := func(t *testing.T, c Config, check Checker, spoil func(w *World)) {
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
	nothing := func(*World) {}
	broken := small(t)
	broken.Acts = one(w1, adversary.FlipsBit{Step: 4, Tensor: 2, Bit: 3})
	t.Run("a machine that computes wrong is slashed", func(t *testing.T) { play(t, broken, Justice{}, nothing) })
	blind := small(t)
	blind.Verifiers, blind.Acts = 1, map[string]adversary.Act{w1: adversary.Poisons{Factor: -1}, "verifier-0": adversary.Colludes{With: keyOf(w1).Address()}}
	t.Run("a lie that nobody audits is in the model", func(t *testing.T) { play(t, blind, &Lineage{Honest: true}, nothing) })
	t.Run("an account that nobody knows has coins", func(t *testing.T) {
		play(t, small(t), Money{}, func(w *World) { w.minted -= funds })
	})
	t.Run("a unit is paid twice", func(t *testing.T) {
		twice := &Pay{commits: map[duty]int{{who: "a"}: 1, {who: "b"}: 1}}
		if err := twice.once([]reward.Receipt{{Kind: reward.Work, Amount: 1, Who: "a"}, {Seq: 1, Kind: reward.Work, Amount: 1, Who: "b"}}); err == nil {
			t.Error("nothing was found")
		}
	})
}
