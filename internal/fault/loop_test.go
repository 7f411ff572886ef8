package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/internal/jobtest"
)

// tuner is a client of starling model tune.
type tuner struct {
	t     *testing.T
	base  string
	model string
}

// tunes starts starling model tune over the small base model of tests, and creates a model that it trains.
func (n *network) tunes(p *process, dir string, more ...string) *tuner {
	n.t.Helper()
	p.args = slices.Concat([]string{"model", "tune", dir, "--name", "base", "--out", n.t.TempDir(), "--listen",
		"127.0.0.1:0", "--context", "16", "--threads", "1", "-o", "json"}, more)
	p.start(0)
	var said struct {
		Base string `json:"base_url"`
	}
	n.blocks("the address of the server", func(int64) bool {
		return json.Unmarshal(bytes.Clone(p.stdout.Bytes()), &said) == nil
	})
	c := &tuner{t: n.t.(*testing.T), base: said.Base + "/api/v1/"}
	session := c.ask("create_session", nil)["session_id"]
	c.model = c.ask("create_model", map[string]any{"session_id": session, "base_model": "base",
		"lora_config": map[string]any{"rank": 4, "seed": 7}})["model_id"].(string)
	return c
}

// post makes a request, and returns its answer.
func (c *tuner) post(address string, body map[string]any) (answer map[string]any) {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.Post(c.base+address, "application/json", bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || r.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %d, %v, %v", address, r.StatusCode, err, answer)
	}
	return answer
}

// ask makes a request and waits for its result.
func (c *tuner) ask(address string, body map[string]any) map[string]any {
	c.t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	return c.result(c.post(address, body))
}

func (c *tuner) result(answer map[string]any) map[string]any {
	c.t.Helper()
	for answer["status"] == "pending" || answer["type"] == "try_again" {
		answer = c.post("retrieve_future", map[string]any{"request_id": answer["request_id"]})
	}
	if answer["error"] != nil {
		c.t.Fatal(answer)
	}
	return answer
}

// step has the model learn a batch, and returns the metrics of the pass and of the step.
func (c *tuner) step(seed int) (pass, step map[string]any) {
	c.t.Helper()
	var data []any
	for row := range 4 {
		var tokens, targets []int
		for k := range 12 {
			tokens, targets = append(tokens, (seed+row*17+k*5)%256), append(targets, (seed+row*17+k*5+5)%256)
		}
		data = append(data, map[string]any{"model_input": map[string]any{"chunks": []any{map[string]any{"tokens": tokens}}},
			"loss_fn_inputs": map[string]any{"target_tokens": map[string]any{"data": targets}}})
	}
	first := c.post("forward_backward", map[string]any{"model_id": c.model,
		"forward_backward_input": map[string]any{"data": data, "loss_fn": "cross_entropy"}})
	second := c.post("optim_step", map[string]any{"model_id": c.model,
		"adam_params": map[string]any{"learning_rate": 0.02}})
	pass, _ = c.result(first)["metrics"].(map[string]any)
	step, _ = c.result(second)["metrics"].(map[string]any)
	return pass, step
}

// TestLoops leads a loop over the Tinker API, on a network with a worker that skips its work. The steps are those of
// the same loop on one machine, the liar loses stake and no other account does, and steps take few blocks.
func TestLoops(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("skips")
	n.invite(liars)
	dir := filepath.Join(t.TempDir(), "base")
	jobtest.WriteBase(t, dir)
	own := &process{t: n.t, name: "own"}
	n.all = append(n.all, own)
	alone := n.tunes(own, dir)
	c := n.tunes(n.consumer, dir, "--network", n.rpc[0], "--home", filepath.Join(n.dir, "consumer"), "--rows", "4",
		"--workers", fmt.Sprint(workers+1), "--audits", "1", "--idle", "600")
	var again, steps int
	for began := time.Now(); again == 0 && time.Since(began) < limit || steps < 5; steps++ {
		at := time.Now()
		want, _ := alone.step(steps % 50)
		got, metrics := c.step(steps % 50)
		again += int(metrics["steps_done_again"].(float64))
		t.Logf("step %d: loss %v, alone %v, %v in %v", steps, got["loss:sum"], want["loss:sum"], metrics,
			time.Since(at).Round(time.Millisecond))
	}
	want, _ := alone.step(3)
	got, metrics := c.step(3)
	if d := math.Abs(got["loss:sum"].(float64) - want["loss:sum"].(float64)); !(d < 0.01) {
		t.Errorf("after %d steps the loss is %v, and %v on one machine", steps, got["loss:sum"], want["loss:sum"])
	}
	t.Logf("%d steps, %d of them again; the last one %v", steps, again, metrics)
	path := c.ask("save_weights_for_sampler", map[string]any{"model_id": c.model, "path": "last"})["path"]
	drawn := c.ask("asample", map[string]any{"model_path": path, "num_samples": 2,
		"prompt":          map[string]any{"chunks": []any{map[string]any{"tokens": []int{1, 2, 3}}}},
		"sampling_params": map[string]any{"max_tokens": 4, "seed": 1}})["sequences"].([]any)
	if len(drawn) != 2 {
		t.Errorf("samples: %v", drawn)
	}
	c.ask("unload_model", map[string]any{"model_id": c.model})
	participants, err := n.chain.Registry.Participants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range participants {
		lied := slices.ContainsFunc(liars, func(l liar) bool { return l.address == p.ID })
		if lied != (p.Slashed > 0) {
			t.Errorf("%s, which lied %v, lost %d uzen", p.ID, lied, p.Slashed)
		}
	}
}
