package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// A story is one way to break the rules, and what comes of it.
type story struct {
	name     string
	acts     map[string]adversary.Attack
	withhold []int
	auditPPM uint32   // 0: everything
	drawn    bool     // audits end at drawn segments
	slashed  []string // exactly these
	unpaid   []string // exactly these earn nothing
	out      []string // exactly these have to leave
	perhaps  string   // is slashed and leaves, too, if its seal is asked for before the question is settled otherwise
	fined    string   // may be slashed, too
	spoiled  bool     // the model is not that of honest work
	reason   string   // why those leave who have to; "": any
	long     bool     // played with -long only
}

// unrepentant is a liar whose process confesses nothing.
type unrepentant struct{ adversary.Attack }

// Install implements adversary.Attack.
func (u unrepentant) Install(c adversary.Setup) adversary.Step {
	step := u.Attack.Install(c)
	return func(e role.Event) []role.Action {
		return slices.DeleteFunc(step(e), func(a role.Action) bool { _, confesses := a.(role.Confess); return confesses })
	}
}

const (
	w1 = "worker-1"
	v1 = "verifier-1"
)

func one(name string, a adversary.Attack) map[string]adversary.Attack {
	return map[string]adversary.Attack{name: a}
}

// variant is a story that is played with -long only: it differs little from one that is always played.
func variant(s story) story { s.long = true; return s }

func stories() []story {
	caught := func(name, who string, a adversary.Attack) story {
		return story{name: name, acts: one(who, a), slashed: []string{who}, unpaid: []string{who}, out: []string{who}}
	}
	accuses := func(segment uint32, m verifiers.DisputeStrategy) adversary.Attack {
		return verifiers.ChallengesFalsely{Segment: segment, Manner: m}
	}
	list := []story{
		{name: "all are honest"},
		caught("skips its work", w1, adversary.Skips{}),
		variant(caught("trains fewer steps", w1, adversary.TrainsLess{Steps: 4})),
		variant(caught("trains no step", w1, adversary.TrainsLess{})),
		variant(caught("trains on other data", w1, adversary.WrongData{})),
		variant(caught("trains at another rate", w1, adversary.WrongRate{Factor: 2})),
		variant(caught("computes in another version of the numerics", w1, adversary.OtherNumerics{})),
		// The worker can serve no update of its own: no member can use its commitment, and its units are assigned to others
		// before they are audited.
		caught("copies a commitment", w1, adversary.Copies{}),
		variant(caught("copies an update and changes it", w1, adversary.CopiesChanged{})),
		variant(caught("flips a bit after the first step", w1, adversary.FlipsBit{Step: 1, Tensor: 0, Bit: 5})),
		variant(caught("flips a bit after the last step", w1, adversary.FlipsBit{Step: 6, Tensor: 1, Bit: 0})),
		variant(caught("flips a bit of a moment", w1, adversary.FlipsBit{Step: 3, Tensor: 40, Bit: 12})),
		variant(caught("poisons its update", w1, adversary.Poisons{Factor: -10})),
		caught("says that its units diverge", w1, adversary.ClaimsDivergence{}),
		variant(caught("makes malformed moves", w1, adversary.Malforms{})),
		variant(caught("makes oversize moves", w1, adversary.Oversizes{})),
		// The worker serves another update than it committed to: no member can use it, and its units are assigned to others
		// before they are audited.
		caught("equivocates, the lie first, and stands by it", w1, unrepentant{adversary.Equivocates{}}),
		// Its process finds that the commitment is wrong, and says so before audits can be drawn: that costs the units,
		// and no stake. A third in a row ends its membership, so nothing is gained by it.
		{name: "equivocates, the lie first, and confesses", long: true, acts: one(w1, adversary.Equivocates{}),
			unpaid: []string{w1}, out: []string{w1}, reason: reason.Confessed},
		{name: "equivocates, the truth first", long: true, acts: one(w1, adversary.Equivocates{TrueFirst: true})},
		{name: "commits and goes silent", acts: one(w1, adversary.GoesSilent{}), unpaid: []string{w1}, out: []string{w1}},
		{name: "attests to another checkpoint", acts: one(w1, adversary.Misattests{}), out: []string{w1}},
		// It forfeits what it earned honestly in rounds that are not final.
		{name: "cheats once it is trusted", auditPPM: 10_000,
			acts:    one(w1, adversary.DelayedAttack{Round: 2, Then: adversary.Skips{}}),
			slashed: []string{w1}, unpaid: []string{w1}, out: []string{w1}},
		{name: "all are honest, and segments are drawn", long: true, drawn: true},
		{name: "skips its work, and segments are drawn", drawn: true, acts: one(w1, adversary.Skips{}),
			slashed: []string{w1}, unpaid: []string{w1}, out: []string{w1}},
		{name: "passes without a look, and segments are drawn", long: true,
			drawn: true, acts: one(v1, verifiers.RubberStamps{}),
			unpaid: []string{v1}, out: []string{v1}, fined: v1},
		// It is slashed only if a fault was planted in what it passes.
		{name: "passes without a look", acts: one(v1, verifiers.RubberStamps{}), unpaid: []string{v1}, out: []string{v1},
			fined: v1},
		{name: "passes with another's seal", long: true, acts: one(v1, verifiers.CopiesSeal{Of: "any"}), unpaid: []string{v1},
			out: []string{v1}, fined: v1},
		caught("accuses, and binds", v1, accuses(1, verifiers.ToTheLeaf)),
		variant(caught("accuses, and invents", v1, accuses(2, verifiers.Inventing))),
		variant(caught("accuses the start", v1, accuses(0, verifiers.ToTheLeaf))),
		variant(caught("accuses the update", v1, accuses(3, verifiers.ToTheLeaf))),
		variant(caught("accuses, and says nothing more", v1, accuses(1, verifiers.Silently))),
		variant(caught("accuses with a malformed payload", v1, accuses(1, verifiers.Malformed))),
		variant(caught("accuses with an oversize payload", v1, accuses(1, verifiers.Oversized))),
		{name: "a verifier shields a worker, and another audits it", slashed: []string{w1}, unpaid: []string{w1},
			out: []string{w1}, perhaps: v1,
			acts: map[string]adversary.Attack{
				w1: adversary.Skips{},
				v1: verifiers.Colludes{With: []string{keyOf(w1).Address()}},
			}},
		{name: "a validator withholds its part of the beacon", long: true, withhold: []int{1}},
		{name: "two of three validators withhold theirs", long: true, withhold: []int{0, 2}},
	}
	for _, segment := range []adversary.Location{adversary.First, adversary.Last} {
		for _, step := range []adversary.Location{adversary.First, adversary.Last} {
			for _, operator := range []adversary.Location{adversary.First, adversary.Last, adversary.Nowhere} {
				for _, part := range []adversary.Location{adversary.First, adversary.Last} {
					if operator == adversary.Nowhere && part == adversary.Last {
						continue
					}
					l := adversary.Lies{Segment: segment, Step: step, Operator: operator, Part: part}
					s := caught(fmt.Sprintf("lies at segment %v, step %v, operator %v, part %v", segment, step, operator, part), w1, l)
					// Always played are the end of the range, and a lie that no operator explains.
					s.long = !(segment == adversary.Last && step == segment && operator == step && part == operator ||
						operator == adversary.Nowhere && segment == adversary.Last && step == adversary.First)
					list = append(list, s)
				}
			}
		}
	}
	return list
}

func TestStories(t *testing.T) {
	config := small(t)
	for _, s := range stories() {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.test(t, config) })
	}
}

// A lie about the carried state of a unit is convicted like any other, whether the committed state is available or not;
// and so is every other lie in a job with carried state.
func TestStoriesOfCarriedState(t *testing.T) {
	caught := func(name, who string, a adversary.Attack) story {
		return story{name: name, acts: one(who, a), slashed: []string{who}, unpaid: []string{who}, out: []string{who}}
	}
	config := sized(t, workload.Carrying)
	for _, s := range []story{
		{name: "all are honest", long: true},
		variant(caught("lies about its state", w1, adversary.CorruptsCarriedState{})),
		caught("lies about its state, and withholds it", w1, adversary.CorruptsCarriedState{Withholds: true}),
		{name: "lies about its state, withholds it, and is seldom audited", long: true, auditPPM: 1,
			acts:    one(w1, adversary.DelayedAttack{Round: 1, Then: adversary.CorruptsCarriedState{Withholds: true}}),
			slashed: []string{w1}, unpaid: []string{w1}, out: []string{w1}},
		{name: "lies about its state, withholds it, and a verifier shields it", long: true, slashed: []string{w1},
			unpaid: []string{w1}, out: []string{w1}, perhaps: v1,
			acts: map[string]adversary.Attack{w1: adversary.CorruptsCarriedState{Withholds: true},
				v1: verifiers.Colludes{With: []string{keyOf(w1).Address()}}}},
		variant(caught("skips its work", w1, adversary.Skips{})),
		variant(caught("poisons its update", w1, adversary.Poisons{Factor: -10})),
		variant(caught("trains on other data", w1, adversary.WrongData{})),
		variant(caught("says that its units diverge", w1, adversary.ClaimsDivergence{})),
		variant(caught("accuses the update", v1, verifiers.ChallengesFalsely{Segment: 3, Manner: verifiers.ToTheLeaf})),
		caught("accuses the carried state", v1, verifiers.ChallengesFalsely{Segment: 4, Manner: verifiers.ToTheLeaf}),
		{name: "commits and goes silent", long: true,
			acts: one(w1, adversary.GoesSilent{}), unpaid: []string{w1}, out: []string{w1}},
		{name: "passes without a look", long: true,
			acts: one(v1, verifiers.RubberStamps{}), unpaid: []string{v1}, out: []string{v1},
			fined: v1},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.test(t, config) })
	}
}

// In a job of replicas, a worker that begins its unit from another state lies, also where only segments are audited.
func TestStoriesOfReplicas(t *testing.T) {
	caught := func(name, who string, a adversary.Attack) story {
		return story{name: name, acts: one(who, a), slashed: []string{who}, unpaid: []string{who}, out: []string{who}}
	}
	config := sized(t, workload.Replicating)
	for _, s := range []story{
		{name: "all are honest"},
		{name: "all are honest, and audits go to a drawn segment", long: true, drawn: true},
		caught("ignores the carried state", w1, adversary.DelayedAttack{Round: 1, Then: adversary.IgnoresCarriedState{}}),
		variant(caught("lies about its state, and withholds it", w1, adversary.CorruptsCarriedState{Withholds: true})),
		variant(caught("poisons its update", w1, adversary.Poisons{Factor: -10})),
		variant(caught("trains on other data", w1, adversary.WrongData{})),
		caught("accuses the beginning", v1, verifiers.ChallengesFalsely{Segment: 0, Manner: verifiers.ToTheLeaf}),
		{name: "commits and goes silent", long: true,
			acts: one(w1, adversary.GoesSilent{}), unpaid: []string{w1}, out: []string{w1}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.test(t, config) })
	}
}

// Where moments are carried, a unit begins with the carried moments, also where only segments are audited.
func TestStoriesOfMoments(t *testing.T) {
	caught := func(name, who string, a adversary.Attack) story {
		return story{name: name, acts: one(who, a), slashed: []string{who}, unpaid: []string{who}, out: []string{who}}
	}
	config := sized(t, remembering)
	for _, s := range []story{
		{name: "all are honest, and audits go to a drawn segment", long: true, drawn: true},
		caught("ignores the carried state", w1, adversary.DelayedAttack{Round: 1, Then: adversary.IgnoresCarriedState{}}),
		variant(caught("lies about its state, and withholds it", w1, adversary.CorruptsCarriedState{Withholds: true})),
		caught("lies about a moment at its end", w1, adversary.FlipsBit{Step: 6, Tensor: math.MaxUint32, Bit: 9}),
		variant(caught("accuses the carried state", v1,
			verifiers.ChallengesFalsely{Segment: 4, Manner: verifiers.ToTheLeaf})),
		{name: "commits and goes silent", long: true,
			acts: one(w1, adversary.GoesSilent{}), unpaid: []string{w1}, out: []string{w1}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.test(t, config) })
	}
}

func (s story) test(t *testing.T, c Config) {
	c.Acts, c.Withhold, c.Drawn = s.acts, s.withhold, s.drawn
	if s.auditPPM > 0 {
		c.AuditPPM = s.auditPPM
	}
	guilty := slices.Collect(maps.Keys(s.acts))
	o := played(
		t,
		c,
		check.CoinsConserved{},
		&check.PaidOnce{Guilty: guilty},
		check.HonestNotSlashed{Guilty: guilty},
		&check.Lineage{Honest: !s.spoiled},
	)
	if o.Phase != progress.Done || o.Rounds != c.Job.Task.Spec.Rounds {
		t.Errorf("the run ends in phase %d after %d rounds: %s", o.Phase, o.Rounds, o.Why)
	}
	if o.Honest == s.spoiled {
		t.Errorf("the model is that of honest work: %v", o.Honest)
	}
	var unpaid []string
	for _, name := range c.Names() {
		if o.Earned[name] == 0 {
			unpaid = append(unpaid, name)
		}
	}
	for _, e := range []struct {
		what      string
		got, want []string
	}{
		{"slashed", slices.Sorted(maps.Keys(o.Slashed)), s.slashed}, {"not paid", unpaid, s.unpaid},
		{"out", slices.Sorted(maps.Keys(o.Out)), s.out},
	} {
		if e.what == "slashed" {
			e.got = slices.DeleteFunc(e.got, func(name string) bool { return name == s.fined })
		}
		if !slices.Contains(e.want, s.perhaps) {
			e.got = slices.DeleteFunc(e.got, func(name string) bool { return name == s.perhaps })
		}
		if !slices.Equal(e.got, e.want) {
			t.Errorf("%s: %v, want %v", e.what, e.got, e.want)
		}
	}
	for name, why := range o.Out {
		if s.reason != "" && why != s.reason {
			t.Errorf("%s is out: %s, want %s", name, why, s.reason)
		}
	}
}
