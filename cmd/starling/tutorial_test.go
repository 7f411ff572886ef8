package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
)

// blocks are the ```sh blocks of a page, in order.
func blocks(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, part := range strings.Split(string(text), "\n```") {
		if code, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			script.WriteString(code + "\n")
		}
	}
	return script.String()
}

// onPath makes the test binary the program starling of a child, and this repository's client its Python's.
func onPath(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := "#!/bin/sh\n" + asProgram + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "starling"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	sdk, err := filepath.Abs(filepath.Join("..", "..", "sdk", "python"))
	if err != nil {
		t.Fatal(err)
	}
	inputs.Of(t, sdk)
	return append(os.Environ(), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1", "STARLING_TOKEN=",
		"PATH="+dir+":"+os.Getenv("PATH"))
}

// played is what the commands of a page left.
type played struct {
	t   *testing.T
	dir string
	env []string
}

// play runs a tutorial as it stands, in an empty folder. Tutorials wait for blocks more than they compute: they run in
// parallel.
func play(t *testing.T, page string, programs ...string) played {
	t.Helper()
	t.Parallel()
	for _, program := range append(programs, "bash") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the tutorial needs " + program)
		}
	}
	p := played{t, t.TempDir(), onPath(t)}
	script := "set -euo pipefail\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n" +
		blocks(t, filepath.Join("..", "..", "docs", "tutorials", page))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = p.dir, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

// read is a file that the commands wrote.
func (p played) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// decode reads a file of JSON that the commands wrote.
func (p played) decode(name string, v any) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.read(name)), v); err != nil {
		p.t.Fatal(err, p.read(name))
	}
}

func TestServeTutorial(t *testing.T) {
	onlyLong(t)
	p := play(t, "serve.md", "curl")
	var first struct{ Choices []struct{ Text string } }
	if p.decode("first.json", &first); len(first.Choices) != 1 {
		t.Fatal(p.read("first.json"))
	}
	var streamed string
	for _, e := range strings.Split(p.read("stream.txt"), "\n\n") {
		var part struct{ Choices []struct{ Text string } }
		if data, ok := strings.CutPrefix(e, "data: "); ok && data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &part); err != nil {
				t.Error(err)
			}
			streamed += part.Choices[0].Text
		}
	}
	if streamed != first.Choices[0].Text || !strings.Contains(p.read("stream.txt"), "data: [DONE]") {
		t.Errorf("the stream gave %q, the whole answer %q", streamed, first.Choices[0].Text)
	}
	if card := p.read("out/tiny/README.md"); !strings.Contains(card, "license: apache-2.0") ||
		!strings.Contains(card, "## Contributors") {
		t.Errorf("the card:\n%s", card)
	}
	for name, want := range map[string]string{"chat.json": `"role":"assistant"`, "metrics.csv": "kind,round,step,loss",
		"out/tiny/trainer_state.json": `"eval_loss"`} {
		if !strings.Contains(p.read(name), want) {
			t.Errorf("%s does not say %s:\n%s", name, want, p.read(name))
		}
	}
	var summary struct {
		Loss float64 `json:"final_eval_loss"`
	}
	p.decode("out/tiny/summary.json", &summary)
	eval := exec.CommandContext(t.Context(), "starling", "model", "eval", "out/tiny", "-o", "json")
	eval.Dir, eval.Env = p.dir, p.env
	eval.Path = filepath.Join(strings.SplitN(strings.TrimPrefix(p.env[len(p.env)-1], "PATH="), ":", 2)[0], "starling")
	eval.Err = nil
	var got struct{ Loss float64 }
	raw, err := eval.Output()
	if err != nil || json.Unmarshal(raw, &got) != nil || got.Loss != summary.Loss {
		t.Errorf("eval says %s, training %v (%v)", raw, summary.Loss, err)
	}
	if boards, err := filepath.Glob(filepath.Join(p.dir, "tb", "*tfevents*")); err != nil || len(boards) != 1 {
		t.Error(boards, err)
	}
}

func TestProvideTutorial(t *testing.T) {
	onlyLong(t)
	p := play(t, "provide.md")
	var earned struct {
		Account  string
		Received uint64 `json:"received_uzen"`
		Lost     uint64 `json:"lost_uzen"`
		Estimate struct {
			Day struct {
				High uint64 `json:"high_uzen"`
			}
		}
	}
	if p.decode("earnings.json", &earned); earned.Received == 0 || earned.Lost != 0 || earned.Estimate.Day.High == 0 {
		t.Errorf("the worker earned nothing, or lost, or could estimate nothing: %+v", earned)
	}
	var history struct {
		Transactions []struct {
			Messages []string
			Received uint64 `json:"received_uzen"`
			Spent    uint64 `json:"spent_uzen"`
		}
	}
	p.decode("history.json", &history)
	h := history.Transactions
	if n := len(h); n < 2 || h[1].Received != 125_100_000 || h[0].Spent < 125_000_000 {
		t.Errorf("it was not given coins and then staked: %+v", h)
	}
	var account struct {
		Earning bool
		Stake   uint64 `json:"stake_uzen"`
		Balance uint64 `json:"balance_uzen"`
	}
	if p.decode("account.json", &account); !account.Earning || account.Stake != earned.Received || account.Balance != 0 {
		t.Errorf("it earned %d uzen without coins: %+v", earned.Received, account)
	}
}

// Three machines work for one account. One is revoked while it works: it gets no further unit, and loses nothing. The
// pay of all is in the account.
func TestFleetTutorial(t *testing.T) {
	onlyLong(t)
	p := play(t, "fleet.md")
	type listed struct {
		Machines []struct {
			Machine, State string
			Stake          uint64 `json:"stake_uzen"`
			Slashed        uint64 `json:"slashed_uzen"`
			Earned         uint64 `json:"earned_uzen"`
		}
	}
	var then, now listed
	p.decode("revoked.json", &then)
	p.decode("fleet.json", &now)
	stolen, earned := strings.TrimSpace(p.read("stolen")), uint64(0)
	if len(now.Machines) != 3 || len(then.Machines) != 3 {
		t.Fatalf("the fleet: %+v, then %+v", then, now)
	}
	for i, m := range now.Machines {
		earned += m.Earned
		want := "drained"
		if m.Machine == stolen {
			if want = "revoked"; then.Machines[i].State != "answering" && then.Machines[i].State != want {
				t.Errorf("after its revocation it is %+v", then.Machines[i])
			}
		} else if m.Earned == 0 {
			t.Errorf("it earned nothing: %+v", m)
		}
		if m.State != want || m.Stake != 50_000_000 || m.Slashed != 0 {
			t.Errorf("at the end: %+v, want %s", m, want)
		}
	}
	var host struct {
		Workers []struct {
			Name    string
			Running bool
			Runs    []string
		}
	}
	if p.decode("host.json", &host); len(host.Workers) != 2 || host.Workers[0].Name != "one" || !host.Workers[0].Running ||
		len(host.Workers[1].Runs) == 0 {
		t.Errorf("the host: %+v", host)
	}
	var account struct {
		Balance uint64 `json:"balance_uzen"`
	}
	// 400 ZEN less three stakes and fees, and the pay
	if p.decode("account.json", &account); account.Balance > 250_000_000+earned ||
		account.Balance < 249_000_000+earned {
		t.Errorf("the account has %d uzen, and its machines earned %d", account.Balance, earned)
	}
}

func TestRewardTutorial(t *testing.T) {
	onlyLong(t)
	p := play(t, "reward.md")
	var honest, liar struct {
		StateRoot   string  `json:"state_root"`
		First       float64 `json:"first_eval_loss"`
		Final       float64 `json:"final_eval_loss"`
		SlashedUzen uint64  `json:"slashed_uzen"`
	}
	var measured struct {
		Loss     float64
		Measured struct{ Accuracy, Reward float64 }
	}
	p.decode("reward.json", &honest)
	p.decode("liar.json", &liar)
	p.decode("measured.json", &measured)
	if honest.Final >= honest.First || honest.SlashedUzen != 0 || measured.Loss != honest.Final ||
		measured.Measured.Reward <= measured.Measured.Accuracy/2 {
		t.Errorf("%+v, measured %+v", honest, measured)
	}
	if liar.StateRoot != honest.StateRoot || liar.SlashedUzen == 0 {
		t.Errorf("with a liar %+v", liar)
	}
	if verified := p.read("verified.json"); !strings.Contains(verified, honest.StateRoot) {
		t.Error(verified)
	}
	var apart struct {
		StateRoot string             `json:"state_root"`
		Measured  map[string]float64 `json:"final_measured"`
	}
	p.decode("apart.json", &apart)
	if m := apart.Measured; m["staleness"] != 1 || m["reward"] <= 0 || m["drawn_reward"] <= 0 || m["answer_length"] <= 0 ||
		m["answer_length"] > 3 {
		t.Errorf("answers drawn apart: %+v", apart)
	}
	if verified := p.read("apart-verified.json"); !strings.Contains(verified, apart.StateRoot) {
		t.Error(verified)
	}
	if lines := p.read("staleness.jsonl"); !strings.Contains(lines, `"staleness":0`) ||
		!strings.Contains(lines, `"staleness":1`) {
		t.Error(lines)
	}
	swarmOf(t, p)
	apart.Measured = nil
	p.decode("game.json", &apart)
	if m := apart.Measured; m["drawn_resolve_reward"] < 0 || m["reward"] <= 0 {
		t.Errorf("a game: %+v", apart)
	}
	if _, has := apart.Measured["resolve_reward"]; !has {
		t.Errorf("a game: %+v", apart)
	}
	if verified := p.read("game-verified.json"); !strings.Contains(verified, apart.StateRoot) {
		t.Error(verified)
	}
	var critics struct {
		StateRoot   string `json:"state_root"`
		SlashedUzen uint64 `json:"slashed_uzen"`
	}
	p.decode("critics.json", &critics)
	if verified := p.read("critics-verified.json"); critics.SlashedUzen == 0 ||
		!strings.Contains(verified, critics.StateRoot) {
		t.Errorf("critics: %+v, verified %s", critics, verified)
	}
}

// swarmOf checks the swarm of the tutorial: the reward of each node, the choice of the best, and the liar.
func swarmOf(t *testing.T, p played) {
	t.Helper()
	var swarm, liar struct {
		StateRoot   string             `json:"state_root"`
		Measured    map[string]float64 `json:"final_measured"`
		SlashedUzen uint64             `json:"slashed_uzen"`
	}
	p.decode("swarm.json", &swarm)
	p.decode("swarm-liar.json", &liar)
	m := swarm.Measured
	best := fmt.Sprintf("node_%.0f_reward", m["best_node"])
	for k := range 4 {
		if x, has := m[fmt.Sprintf("node_%d_reward", k)]; !has || x > m[best] {
			t.Errorf("node %d: %v", k, m)
		}
	}
	if m["reward"] != m[best] || m["reward"] <= 0 || liar.StateRoot != swarm.StateRoot || liar.SlashedUzen == 0 {
		t.Errorf("a swarm %+v, with a liar %+v", swarm, liar)
	}
	if verified := p.read("swarm-verified.json"); !strings.Contains(verified, swarm.StateRoot) {
		t.Error(verified)
	}
	if lines := p.read("nodes.jsonl"); !strings.Contains(lines, `"node_3_reward"`) {
		t.Error(lines)
	}
}

func TestTrainTutorial(t *testing.T) {
	p := play(t, "train.md")
	var plan struct{ ID string }
	var honest, liar struct {
		Job          string
		StateRoot    string  `json:"state_root"`
		First        float64 `json:"first_eval_loss"`
		Final        float64 `json:"final_eval_loss"`
		SlashedUzen  uint64  `json:"slashed_uzen"`
		PaidUzen     uint64  `json:"paid_uzen"`
		RefundedUzen uint64  `json:"refunded_uzen"`
	}
	p.decode("plan.json", &plan)
	p.decode("honest.json", &honest)
	p.decode("liar.json", &liar)
	if !strings.HasPrefix(plan.ID, honest.Job+"-") || honest.Final >= honest.First || honest.PaidUzen == 0 ||
		honest.SlashedUzen != 0 {
		t.Errorf("plan %s, honest %+v", plan.ID, honest)
	}
	if liar.StateRoot != honest.StateRoot || liar.SlashedUzen == 0 {
		t.Errorf("with a liar %+v", liar)
	}
	for name, want := range map[string]string{"verified.json": honest.StateRoot, "receipts.json": `"kind":"slash"`,
		"out/tiny/report.html": "<html"} {
		if !strings.Contains(p.read(name), want) {
			t.Errorf("%s does not say %s", name, want)
		}
	}
}

func TestResearchTutorial(t *testing.T) {
	onlyLong(t)
	p := play(t, "research.md", "awk")
	type result struct {
		StateRoot string  `json:"state_root"`
		Loss      float64 `json:"final_eval_loss"`
		BytesUp   uint64  `json:"bytes_up"`
		Seconds   float64
		Slashed   uint64 `json:"slashed_uzen"`
	}
	var sweep struct{ Simulations []result }
	var trouble, again result
	p.decode("sweep.json", &sweep)
	p.decode("trouble.json", &trouble)
	p.decode("again.json", &again)
	lines := strings.Split(strings.TrimSpace(p.read("sweep.csv")), "\n")
	if len(sweep.Simulations) != 3 || len(lines) != 3 {
		t.Fatalf("%+v\n%v", sweep, lines)
	}
	for i, s := range sweep.Simulations { // what the tutorial adds up is what the simulation says
		want := fmt.Sprintf("%03d,%d,%.8g,%g,%d", i, 8>>i, s.Loss, s.Seconds, s.BytesUp)
		if lines[i] != want {
			t.Errorf("%s, wanted %s", lines[i], want)
		}
	}
	if trouble != again || trouble.Slashed == 0 || trouble.StateRoot != sweep.Simulations[2].StateRoot {
		t.Errorf("%+v\n%+v", trouble, again)
	}
}

// TestHospitalsTutorial trains on notes of five hospitals, each of which is a process.
func TestHospitalsTutorial(t *testing.T) {
	onlyLong(t)
	p := play(t, "hospitals.md", "python3")
	trained := p.read("train.txt")
	if strings.Count(trained, ": 1000 notes, 3 updates, epsilon of a note ") != 5 ||
		!strings.Contains(trained, "at delta 1e-05 for a note, None for a hospital") {
		t.Error(trained)
	}
	var first, last float64
	if _, err := fmt.Sscanf(trained[strings.Index(trained, "loss "):], "loss %f -> %f", &first, &last); err != nil ||
		!(last < first/2) {
		t.Errorf("loss %v -> %v, %v:\n%s", first, last, err, trained)
	}
	if again := p.read("again.txt"); !strings.HasPrefix(again, "1 job, epsilon of a note ") ||
		!strings.HasSuffix(again, "of the hospital None\nPRIVACY_BUDGET\n") {
		t.Error(again)
	}
	if text := p.read("classified.json"); !strings.Contains(text, "urgent") {
		t.Error(text)
	}
}

func TestPythonTutorial(t *testing.T) {
	onlyLong(t)
	p := play(t, "python.md", "python3")
	first, again := p.read("first.txt"), p.read("again.txt")
	if !strings.Contains(first, "step 8: ") || !strings.Contains(first, "\ndone ") || again != first {
		t.Errorf("%s\nand again\n%s", first, again)
	}
	if second := p.read("second.txt"); !strings.Contains(second, "long stopped cancelled") ||
		!strings.Contains(second, "did you mean max_steps?") {
		t.Error(second)
	}
	if entries, err := os.ReadDir(filepath.Join(p.dir, "out")); err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
	if fourth := p.read("fourth.txt"); fourth != "8 True True\n" {
		t.Errorf("the trainer: %s", fourth)
	}
	if third := p.read("third.txt"); third != "tiny done True\ntiny-2 done True\n" {
		t.Error(third)
	}
	if p.read("ordered-model/model.safetensors") != p.read("ordered/tiny/model.safetensors") {
		t.Error("the model of the ordered job is another than the exported one")
	}
	if p.read("model/model.safetensors") != p.read("out/tiny/model.safetensors") {
		t.Error("the model that was exported is another")
	}
}
