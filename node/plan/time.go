package plan

import (
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/heldout"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
)

// Work is how long this machine takes for the parts of a whole run, in seconds.
type Work struct {
	Units      float64 `json:"units"`      // of workers
	Audits     float64 `json:"audits"`     // units that verifiers execute again
	Evaluation float64 `json:"evaluation"` // of checkpoints
	Bytes      float64 `json:"bytes"`      // hashing, packing, storing and combining states, updates and checkpoints
	Chain      float64 `json:"chain"`      // waiting for blocks
	Challenges float64 `json:"challenges"` // of the last round: the time that it may be challenged in
}

// Seconds is the sum of all parts.
func (w Work) Seconds() float64 {
	return w.Units + w.Audits + w.Evaluation + w.Bytes + w.Chain + w.Challenges
}

// blocksOfRound are the blocks that a round of an embedded network waits for: those of its commitments and of its
// attestation, in which the next round is assigned, and half a block before each of them. Audits, seals and their draws
// take place in the rounds that follow. blockSeconds is the time of one (node/localnet).
const (
	blocksOfRound = 3
	blockSeconds  = 0.2
	startSeconds  = 3 // of the chain and the hosts, and the end

	// challengeUnits is how long the last round may be challenged, in units of a worker of middle speed
	// (crew.Crew.ChallengeBlocks).
	challengeUnits = 2.5
)

// Passes over bytes, besides hashing.
const (
	passesOfUnit  = 6 // over the parameters: the state copied, the update made, transformed, packed, and stored
	passesOfParty = 4 // over each update that a party decodes and combines

	// aroundBytes is how often the time of hashing and copying is taken in all. The rest are files, drafts, encryption,
	// the checks of bytes that are received, and the collector. It was measured on models of 10 M and 88 M parameters
	// (docs/performance.md).
	aroundBytes = 6
)

// work computes the parts from the times of a step and of an evaluated batch.
func (p *Plan) work(b *prepare.CompiledJob, o market.Order) Work {
	s, z, byteTime := b.Spec.Unsplit(), b.Size(), timeOfByte()
	rounds, perRound := float64(s.Rounds), float64(s.StepsBefore(s.Units))
	checks := audits(o.Terms.AuditPPM, int(s.Rounds)) // of each unit of the rounds
	w := Work{Units: rounds * perRound * p.StepTime, Chain: startSeconds + rounds*blocksOfRound*blockSeconds}
	w.Audits = w.Units * checks / rounds
	_, threads := prepare.Turns(b)
	inTurn := float64(evaluations(b)-1) * float64(min(threads, kernel.Cores)) / float64(kernel.Cores)
	// others are at work meanwhile, but for the last
	w.Evaluation = (1 + inTurn) * float64(evaluated(b)) * p.evalTime

	params, state, parties := float64(z.Parameters()), float64(z.State()), float64(p.parties)
	units, checkpoint := float64(s.Units), params*float64(1+p.outerState)
	unit := (1+float64(s.Segments()))*state*byteTime.root + passesOfUnit*params*byteTime.move
	check := unit + state*(2*byteTime.root+byteTime.move) // a seal, and the state put aside
	loaded := checkpoint * (byteTime.root + byteTime.name + 2*byteTime.move)
	made := units*passesOfParty*params*byteTime.move + loaded
	w.Bytes = rounds*units*unit + checks*units*check + rounds*(parties*made+loaded) + (1+parties)*loaded
	w.Bytes *= aroundBytes / float64(kernel.Cores)
	// Workers of one machine compute in turn, so that each takes the time of all.
	w.Challenges = max(float64(o.Terms.Deadlines.Challenge)*blockSeconds, challengeUnits*(w.Units+w.Bytes)/rounds)
	return w
}

// audits is how often a unit is expected to be executed again, in all rounds together: of a worker that no run has
// seen.
func audits(floorPPM uint32, rounds int) (n float64) {
	passed := 0.0
	for range rounds {
		rate := float64(audit.Rate(floorPPM, uint32(passed))) / audit.Certain
		n, passed = n+rate, passed+rate
	}
	return n
}

// evaluations is how many checkpoints are evaluated.
func evaluations(b *prepare.CompiledJob) (n int) {
	every, rounds := max(1, b.Job.Eval.EverySteps), int(b.Spec.Rounds)
	for round := range rounds + 1 {
		if round*int(b.Spec.Steps)%every == 0 || round == rounds {
			n++
		}
	}
	return n
}

// evaluated is how many batches an evaluation computes: each for every model of a swarm.
func evaluated(b *prepare.CompiledJob) int {
	return len(heldout.Batches(b)) * int(max(1, b.Spec.Exchange.Policies))
}

// tryEvaluation measures the evaluation of one batch.
func (p *Plan) tryEvaluation(b *prepare.CompiledJob) error {
	held := heldout.Batches(b)
	if len(held) == 0 {
		return nil
	}
	_, threads := prepare.Turns(b)
	exec, err := cpu.Compile(b.Eval, threads)
	if err != nil {
		return err
	}
	defer exec.Release()
	in := b.EvalInputs(b.Genesis)
	in["tokens"] = tensor.FromI32(held[0], b.EvalBatch, int(b.Spec.Length)+1)
	p.evalTime, err = shortest(threads, func() error {
		_, err := exec.Run(in)
		return err
	}, nil)
	return err
}

// byteTimes are the seconds that a byte takes one thread.
type byteTimes struct{ root, name, move float64 }

// timeOfByte measures them on this machine.
func timeOfByte() (t byteTimes) {
	const n = 8 << 20
	x := tensor.New(tensor.Make(tensor.Float32, n/4))
	took := func(do func()) float64 {
		seconds, _ := shortest(1, func() error { do(); return nil }, nil)
		return seconds / n
	}
	t.root = took(func() { x.Root() })
	t.name = took(func() { blob.Of(x.Bytes()) })
	t.move = took(func() { x.Clone() })
	return t
}
