package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// rolloutSteps is the number of steps of a unit that learns, and of units that draw for it.
const rolloutSteps = 4

// rollouts makes the jobs that follow ones of the shape of examples/grpo-async.yaml: two units of a round learn from
// the answers that eight units draw and reward, on eight workers. A reward model lies in judge.
func (n *network) rollouts(t *testing.T, generators, rounds int, reward string) {
	n.t.Helper()
	dir := n.t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	jobtest.WriteReward(t, filepath.Join(dir, "judge"), 16, 1)
	n.file = filepath.Join(dir, "job.yaml")
	for name, text := range map[string]string{
		"sums.jsonl": strings.Repeat(`{"prompt": "a + b = ", "completion": "cd."}`+"\n", 40),
		"job.yaml": `apiVersion: starling/v1
kind: TrainingJob
task: grpo
rollout: {group: 4, max_tokens: 4, staleness: 2}
reward: ` + reward + `
model: {base_model: ./base}
datasets: [{path: sums.jsonl}]
val_set_size: 0.2
sequence_len: 16
training: {max_steps: 8, global_batch_size: 8, learning_rate: 1.0e-2}
strategy: {method: fedavg, workers: 2, sync_steps: 4}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			n.t.Fatal(err)
		}
	}
	n.units = 2 // answers of a machine that is gone are not paid
	n.set = []string{"--set", fmt.Sprintf("strategy.sync_steps=%d", rolloutSteps),
		"--set", fmt.Sprintf("training.max_steps=%d", rounds*rolloutSteps),
		"--set", fmt.Sprintf("rollout.generators=%d", generators)}
}

// more starts further honest workers, and returns them.
func (n *network) more(count int) (list []*process) {
	n.t.Helper()
	for range count {
		p := &process{t: n.t, name: fmt.Sprintf("worker-%d", workers+1+n.invited[1])}
		n.invited[1]++
		n.all = append(n.all, p)
		p.args = []string{"worker", "up", "--home", filepath.Join(n.dir, p.name), "--threads", "1",
			"--network", n.rpc[len(n.all)%validators]}
		p.start(0)
		list = append(list, p)
	}
	for _, p := range list {
		p.ready()
	}
	return list
}

// TestRollouts kills three of eight workers, which draw answers for others to learn from, in the middle of a run, and
// does not start them again. The model has the bits of an undisturbed run.
func TestRollouts(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	n.second.start(0) // with it, more than two thirds of the members are left
	all := append(slices.Clone(n.workers), n.more(4)...)
	n.second.ready()
	const rounds = 10
	n.rollouts(t, 6, rounds, "{exact: 1}")
	j := n.order("rollouts", rounds)
	draws := func(s run.State) (list []*process) {
		for _, w := range all {
			for _, l := range s.Rounds() {
				if slices.ContainsFunc(l.Units, func(u *work.Unit) bool {
					return u.Draws && u.Worker == w.address && u.Status != work.Accepted
				}) && !slices.Contains(list, w) {
					list = append(list, w)
				}
			}
		}
		return list
	}
	s := j.until("three workers that draw", func(s run.State) bool { return s.Round >= 3 && len(draws(s)) >= 3 })
	for _, w := range draws(s)[:3] {
		w.kill()
		t.Logf("%s is killed in round %d", w.name, s.Round)
	}
	j.finish()
	if s := j.run(j.id); s.Phase != progress.Done {
		t.Errorf("phase %s: %s", s.Phase, s.Why)
	}
}

// TestForgedRollouts runs a worker that forges the answers that it draws, and one that raises a reward of its answers,
// where a reward model and a rule reward them. Both lose stake, and the model is the one that the job determines.
func TestForgedRollouts(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("forges-rollouts", "forges-rewards")
	n.invite(liars)
	const rounds = 6
	n.rollouts(t, 4, rounds, "[{kind: model, model: ./judge}, {kind: exact}]")
	n.sentenced(liars, rounds)
}

// TestOtherRolloutForgers runs workers that forge the answers that they draw in the other ways, four in a network. Each
// loses stake, and the model is the one that the job determines.
func TestOtherRolloutForgers(t *testing.T) {
	for name, acts := range map[string][]string{
		"policies": {"draws-by-other-policy", "draws-in-few-bits", "draws-by-old-policy", "draws-by-other-seed"},
		"answers":  {"ends-rollouts-early", "begins-with-right-answers", "chooses-prompts", "copies-rollouts"},
	} {
		t.Run(name, func(t *testing.T) {
			n := drawNetwork(t, false, nil)
			liars := convicts(acts...)
			n.invite(liars)
			const rounds = 6
			n.rollouts(t, 6, rounds, "{exact: 1, prefix: 1}")
			// an honest unit lowers the audit rate of its worker, and a policy is old after the first round alone
			n.set = append(n.set, "--set", "strategy.verification.fraction=1")
			n.sentenced(liars, rounds)
		})
	}
}

// TestWithheldRollouts runs a worker that does not serve the answers that it draws. It loses no stake, and the model is
// the one that the job determines. Whether it is paid depends on whether a verifier that drew its answers again serves
// them in time; sim.TestWithheldRollouts holds the rule.
func TestWithheldRollouts(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := []liar{{act: "withholds-rollouts", role: "worker"}}
	n.invite(liars)
	const rounds = 5
	n.rollouts(t, 3, rounds, "{exact: 1}")
	n.sentenced(liars, rounds)
}

// TestGameOfProcesses plays the game of examples/game.yaml, whose texts units of their own draw, with a worker that
// changes a token of them. It loses stake, and the model is the one that the job determines.
func TestGameOfProcesses(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("forges-rollouts")
	n.invite(liars)
	const rounds = 5
	n.rollouts(t, 3, rounds, "{exact: 1}")
	base := filepath.Join(filepath.Dir(n.file), "base")
	var err error
	if n.file, err = filepath.Abs("../../examples/game.yaml"); err != nil {
		t.Fatal(err)
	}
	n.set = append([]string{"--set", "model.base_model=" + base, "--set", "training.global_batch_size=8",
		"--set", "training.warmup_steps=1",
		"--set", "rollout={group: 4, max_tokens: 3, stop: y, stages: 3, reads: 2, staleness: 1}",
		"--set", `reward=[{kind: starlark, source: "def reward(p, a, f): return len([c for c in a.elems() if c < 'm'])"}]`},
		n.set...)
	n.sentenced(liars, rounds)
}

// TestSwarmOfProcesses runs a worker that learns from its own answers where it says that it learnt from those of
// others, and one that raises rewards of answers that it shares. Both lose stake, and the models are those that the
// job determines.
func TestSwarmOfProcesses(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("learns-from-own-rollouts", "forges-rewards")
	n.invite(liars)
	const rounds = 5
	const early = "def reward(p, a, f): return len([c for c in a.elems() if c < 'm'])"
	n.rollouts(t, 0, rounds, `[{kind: starlark, source: "`+early+`"}]`)
	n.units = 6 // each worker learns
	n.set = append([]string{"--set", "rollout={group: 4, max_tokens: 4, sharing: swarm, own: 2, shared: 2}",
		"--set", "strategy.workers=6", "--set", "training.global_batch_size=12",
		// a worker that draws as it should is soon audited less, and one that learns falsely might not be in five rounds
		"--set", "strategy.verification.fraction=1"}, n.set...)
	n.sentenced(liars, rounds)
}

// TestGeneratorOfProcesses runs a machine that offers to draw answers alone, and forges them, and honest workers in the
// other seats. It has no unit that learns, loses stake, and its receipts name its class.
func TestGeneratorOfProcesses(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := []liar{{act: "forges-rollouts", role: "worker", more: []string{"--role", "generator"}, slashed: true,
		out: true}}
	n.invite(liars)
	const rounds = 5
	n.rollouts(t, 3, rounds, "{exact: 1}")
	work := 0
	for _, r := range n.sentenced(liars, rounds) {
		if r.Who != liars[0].address || r.Kind != reward.Work {
			continue
		}
		work++
		if r.Unit < 2 || r.Role != crew.Generator {
			t.Errorf("a generator has a receipt as a %s for unit %d", r.Role, r.Unit)
		}
	}
	if work == 0 {
		t.Error("the generator had no unit")
	}
}

// TestCriticsOfOthers plays the games of a swarm in which a node criticises answers of other nodes and answers again
// (ADR 200), with a worker that plays about its own answers instead, and one that edits the answers that others
// criticise. Both lose stake, and the model is the one that the job determines.
func TestCriticsOfOthers(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("learns-from-own-rollouts", "forges-rollouts")
	n.invite(liars)
	const rounds = 5
	const early = "def reward(p, a, f): return len([c for c in a.elems() if c < 'm'])"
	n.rollouts(t, 0, rounds, `[{kind: starlark, source: "`+early+`"}]`)
	n.units = 6 // each worker learns
	n.set = append([]string{"--set", "rollout={group: 4, max_tokens: 3, stop: y, stages: 3, sharing: swarm, own: 2, " +
		"shared: 2, critics: others}", "--set", "sequence_len=32", "--set", "strategy.workers=6",
		"--set", "training.global_batch_size=12", "--set", "training.warmup_steps=1",
		"--set", "strategy.verification.fraction=1"}, n.set...) // as in TestSwarmOfProcesses
	n.sentenced(liars, rounds)
}

// sentenced orders the job of rollouts, checks its model, the sentences of the liars, and the books, and returns the
// receipts.
func (n *network) sentenced(liars []liar, rounds int) []reward.Receipt {
	n.t.Helper()
	j := n.order("forged", rounds)
	receipts := j.verdict(liars)
	j.books(receipts)
	n.t.Log(j.pace())
	return receipts
}
