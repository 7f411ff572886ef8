package adversary

import (
	"maps"
	"slices"
)

// named are the acts that a researcher can ask for by name, and what each is.
var named = map[string]struct {
	act   Act
	about string
}{
	"skips": {Skips{}, "a worker that skips its training"},
	"trains-less": {TrainsLess{Steps: 1}, "a worker that takes one inner step of every unit and commits as if it " +
		"had taken them all"},
	"wrong-data": {WrongData{}, "a worker that trains on other examples than its own"},
	"wrong-rate": {WrongRate{Factor: 2}, "a worker that trains with twice the learning rate"},
	"copies":     {Copies{}, "a worker that commits to what another worker of the round has committed to"},
	"copies-changed": {CopiesChanged{}, "a worker that presents the work of the next unit as its own, with a change " +
		"that hides it"},
	"flips-bit": {FlipsBit{Step: 1}, "a worker that trains as it should, but for one bit of one weight after " +
		"the first step"},
	"poisons": {Poisons{Factor: -10}, "a worker that trains as it should and shares an update that leads away " +
		"from what it found, ten times over"},
	"equivocates": {Equivocates{}, "a worker that commits twice to every unit"},
	"forges": {ForgesCheckpoint{Round: 1, By: 1},
		"a member that attests to a checkpoint of its own making after the second round, and serves it"},
	"silent":     {GoesSilent{}, "a worker that does nothing more once it has committed to a unit"},
	"misattests": {Misattests{}, "a member that attests to another checkpoint than the updates lead to"},
	"stamps":     {Stamps{}, "a verifier that passes whatever it is to audit, without a look"},
	"rescales": {Rescales{After: 2, Factor: 0.5},
		"a worker that is honest for two rounds, and from then on sends half of what the last outer step changed, without " +
			"training"},
	"denies": {Denies{}, "a verifier that says of all tolerant work that it is outside the tolerance"},
	"idle":   {Idle{}, "a verifier that looks at what is drawn for it, and at nothing else in its spare time"},
	"tampers-state": {TampersState{}, "a worker that lies about what its units hand on: its updates are led astray " +
		"a round later"},
	"starts-anew": {StartsAnew{}, "a worker of replicas that begins its units from the checkpoint, and not from " +
		"where they came to; elsewhere it is honest"},
	"copies-seal": {CopiesSeal{}, "a verifier that passes whatever it is to audit with the seal of another verifier"},
	"fakes-slices": {FakesSlices{}, "a member that makes up the slices of a checkpoint that are drawn for it; " +
		"elsewhere it is honest"},
	"shirks-slices": {ShirksSlices{}, "a member that computes no slice of a checkpoint that is drawn for it; " +
		"elsewhere it is honest"},
	"fakes": {Tells{faking}, "a worker that takes one inner step of every unit, and tells its accomplices so"},
	"shields": {Shields{}, "a verifier that passes what its accomplices have faked, with a seal that it can " +
		"open, and audits everybody else"},
	"pumps": {Tells{Lies{Segment: First, Step: Last, Operator: First, Part: First}},
		"a worker that commits to a wrong state on the way to the right update, and tells its accomplices so"},
	"springs": {Springs{After: 3}, "a verifier that convicts its accomplices three rounds after they lied, so " +
		"that what was built on that is done in vain"},
	"hides-divergence": {HidesDivergence{}, "a worker that commits to an update of zeros where its unit diverged"},
	"withholds-slice":  {WithholdsPiece{}, "a worker that serves its updates but for their first slice"},
	"other-stack": {Vendor{Bits: 6}, "a worker whose results differ in their lowest six bits, as those of another " +
		"numerical stack do"},
	"accuses": {Accuses{Segment: 1, Manner: ToTheLeaf}, "a verifier that disputes right work, to the last move"},
}

// Named returns the act with a name.
func Named(name string) (Act, bool) {
	n, ok := named[name]
	return n.act, ok
}

// About says in words what the act with a name is, or "".
func About(name string) string { return named[name].about }

// Names lists the names that Named knows, in order. "accuses", "copies-seal", "denies", "idle", "shields", "springs"
// and "stamps" are for verifiers.
func Names() []string { return slices.Sorted(maps.Keys(named)) }
