// Package catalog names the adversaries that a researcher can ask for, and says what each is. Others are for tests
// alone, which make them as they need them.
package catalog

import (
	"maps"
	"slices"

	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/rollouts"
	"github.com/starling-network/starling/role/adversary/stages"
	"github.com/starling-network/starling/role/adversary/updates"
	"github.com/starling-network/starling/role/adversary/verifiers"
)

// named are the acts that a researcher can ask for by name, and what each is.
var named = map[string]struct {
	act   adversary.Attack
	about string
}{
	"skips": {adversary.Skips{}, "a worker that skips its training"},
	"trains-less": {adversary.TrainsLess{Steps: 1},
		"a worker that takes one inner step of every unit and commits as if it " +
			"had taken them all"},
	"wrong-data": {adversary.WrongData{}, "a worker that trains on other examples than its own"},
	"other-numerics": {adversary.OtherNumerics{}, "a worker that computes its units in another version of the numerics " +
		"than that of the job"},
	"wrong-rate": {adversary.WrongRate{Factor: 2}, "a worker that trains with twice the learning rate"},
	"copies":     {adversary.Copies{}, "a worker that sends the commitment of another worker of the round as its own"},
	"copies-changed": {adversary.CopiesChanged{},
		"a worker that presents the work of the next unit as its own, with a change " +
			"that hides it"},
	"flips-bit": {adversary.FlipsBit{Step: 1}, "a worker that trains as it should, but for one bit of one weight after " +
		"the first step"},
	"poisons": {adversary.Poisons{Factor: -10}, "a worker that trains as it should and shares an update that points " +
		"away from its result, ten times as long"},
	"equivocates": {adversary.Equivocates{}, "a worker that commits twice to every unit"},
	"forges": {adversary.ForgesCheckpoint{Round: 1, By: 1},
		"a member that attests to a checkpoint of its own making after the second round, and serves it"},
	"silent":     {adversary.GoesSilent{}, "a worker that does nothing more once it has committed to a unit"},
	"misattests": {adversary.Misattests{}, "a member that attests to another checkpoint than the updates lead to"},
	"stamps":     {verifiers.RubberStamps{}, "a verifier that passes whatever it is to audit, without a look"},
	"rescales": {adversary.Rescales{After: 2, Factor: 0.5},
		"a worker that is honest for two rounds, and from then on sends half of the change of the last outer step, without " +
			"training"},
	"denies": {verifiers.Denies{}, "a verifier that says of all tolerant work that it is outside the tolerance"},
	"idle":   {verifiers.Idle{}, "a verifier that looks at what is drawn for it, and at nothing else in its spare time"},
	"tampers-state": {adversary.CorruptsCarriedState{},
		"a worker that commits to a false state for its next units: their updates are wrong " +
			"a round later"},
	"ignores-state": {adversary.IgnoresCarriedState{},
		"a worker of replicas that begins its units from the checkpoint, and not from " +
			"the state that they carry; elsewhere it is honest"},
	"copies-seal": {verifiers.CopiesSeal{},
		"a verifier that passes whatever it is to audit with the seal of another verifier"},
	"fakes-slices": {adversary.FakesSlices{}, "a member that makes up the slices of a checkpoint that are drawn for it; " +
		"elsewhere it is honest"},
	"shirks-slices": {
		adversary.SkipsReduction{},
		"a member that computes no slice of a checkpoint that is drawn for it; " +
			"elsewhere it is honest",
	},
	"fakes": {adversary.Tells{Then: adversary.Faking},
		"a worker that takes one inner step of every unit, and tells its accomplices so"},
	"shields": {adversary.Shields{}, "a verifier that passes what its accomplices have faked, with a seal that it can " +
		"open, and audits everybody else"},
	"pumps": {adversary.Tells{Then: adversary.Lies{Segment: adversary.First, Step: adversary.Last,
		Operator: adversary.First, Part: adversary.First}},
		"a worker that commits to a wrong state on the way to the right update, and tells its accomplices so"},
	"springs": {adversary.Springs{After: 3}, "a verifier that convicts its accomplices three rounds after they lied, so " +
		"that the rounds built on that are lost"},
	"hides-divergence": {adversary.HidesDivergence{},
		"a worker that commits to an update of zeros where its unit diverged"},
	"hoards": {updates.Hoards{},
		"a worker that serves its updates to no party, and computes those of others itself"},
	"withholds-slice": {adversary.WithholdsPiece{}, "a worker that serves its updates but for their first slice"},
	"other-stack": {adversary.NondeterministicStack{Bits: 6},
		"a worker whose results differ in their lowest six bits, as those of another " +
			"numerical stack do"},
	"forges-rollouts": {rollouts.Forges{How: rollouts.EditsToken},
		"a worker that changes a token of the answers that it draws for others to learn from; elsewhere it is honest"},
	"forges-rewards": {rollouts.Forges{How: rollouts.EditsReward},
		"a worker that raises a reward of the answers that it draws for others to learn from; elsewhere it is honest"},
	"ends-rollouts-early": {rollouts.Forges{How: rollouts.EndsEarly}, "a worker that draws the first token of each " +
		"answer that others learn from, and none after it; elsewhere it is honest"},
	"draws-by-other-seed": {rollouts.Forges{How: rollouts.OtherSeed},
		"a worker that draws answers for others with other noise, of other prompts; elsewhere it is honest"},
	"chooses-prompts": {rollouts.Forges{How: rollouts.ChosenPrompt},
		"a worker that draws answers to the prompts of another unit; elsewhere it is honest"},
	"copies-rollouts": {rollouts.Forges{How: rollouts.CopiesOther},
		"a worker that shares answers of another unit as its own; elsewhere it is honest"},
	"draws-by-old-policy": {rollouts.Forges{How: rollouts.StalePolicy},
		"a worker that draws answers for others with the first checkpoint that it had; elsewhere it is honest"},
	"draws-by-other-policy": {rollouts.Forges{How: rollouts.OtherPolicy},
		"a worker that draws answers for others with changed weights; elsewhere it is honest"},
	"draws-in-few-bits": {rollouts.Forges{How: rollouts.FewerBits},
		"a worker that draws answers for others with weights of eight bits; elsewhere it is honest"},
	"begins-with-right-answers": {rollouts.Forges{How: rollouts.GoldPrefix}, "a worker that begins the answers that " +
		"others learn from with the first token of the right one; elsewhere it is honest"},
	"learns-from-own-rollouts": {rollouts.Forges{How: rollouts.OwnAnswers},
		"a worker that learns from its own answers where those of others are shared with it; elsewhere it is honest"},
	"withholds-rollouts": {rollouts.Withholds{},
		"a worker that draws answers as it should, and does not serve them; elsewhere it is honest"},
	"lies-forward": {stages.Lies{Phase: order.Forward},
		"a worker that computes a wrong forward of the stages that it holds, and sends it on; elsewhere it skips its " +
			"training"},
	"lies-backward": {stages.Lies{Phase: order.Backward},
		"a worker that computes wrong gradients of the stages that it holds, and sends them on; elsewhere it skips its " +
			"training"},
	"hides-link": {stages.Hides{},
		"a worker that computes a wrong forward where an accomplice holds a stage next to its own, and serves no value " +
			"that the two exchange, nor does the accomplice; elsewhere it is honest"},
	"accuses": {verifiers.ChallengesFalsely{Segment: 1, Manner: verifiers.ToTheLeaf},
		"a verifier that disputes right work, to the last move"},
}

// Named returns the act with a name.
func Named(name string) (adversary.Attack, bool) {
	n, ok := named[name]
	return n.act, ok
}

// About says in words what the act with a name is, or "".
func About(name string) string { return named[name].about }

// Names lists the names that Named knows, in order. "accuses", "copies-seal", "denies", "idle", "shields", "springs"
// and "stamps" are for verifiers.
func Names() []string { return slices.Sorted(maps.Keys(named)) }
