package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/internal/porttest"
)

// A looper is a client of training loops.
type looper struct {
	t          *testing.T
	url, token string
	model      string
	refusal    string // of the last request; "": it was answered
}

// post makes a request.
func (l *looper) post(address string, body map[string]any) (answer map[string]any) {
	l.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.url+"/api/v1/"+address, bytes.NewReader(text))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("X-API-Key", l.token)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer got.Body.Close()
	if text, err = io.ReadAll(got.Body); err != nil {
		l.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		l.t.Fatalf("%s: %v: %s", address, err, text)
	}
	l.refusal, _ = answer["code"].(string)
	return answer
}

// result waits for what was promised.
func (l *looper) result(answer map[string]any) map[string]any {
	l.t.Helper()
	for answer["status"] == "pending" || answer["type"] == "try_again" {
		answer = l.post("retrieve_future", map[string]any{"request_id": answer["request_id"]})
	}
	return answer
}

func (l *looper) create() {
	l.t.Helper()
	session := l.post("create_session", map[string]any{})["session_id"]
	made := l.result(l.post("create_model", map[string]any{"session_id": session, "base_model": "base",
		"lora_config": map[string]any{"rank": 4, "seed": 7}}))
	l.model, _ = made["model_id"].(string)
	if l.model == "" {
		l.t.Fatal(made)
	}
}

// asks sends a batch and a step, under numbers that follow from that of the step.
func (l *looper) asks(step int) (pass, taken map[string]any) {
	l.t.Helper()
	var tokens, targets []int
	for k := range 12 {
		tokens, targets = append(tokens, (step*17+k*5)%256), append(targets, (step*17+k*5+5)%256)
	}
	pass = l.post("forward_backward", map[string]any{"model_id": l.model, "seq_id": 2 * step,
		"forward_backward_input": map[string]any{"loss_fn": "cross_entropy", "data": []any{map[string]any{
			"model_input":    map[string]any{"chunks": []any{map[string]any{"tokens": tokens}}},
			"loss_fn_inputs": map[string]any{"target_tokens": map[string]any{"data": targets}}}}}})
	return pass, l.post("optim_step", map[string]any{"model_id": l.model, "seq_id": 2*step + 1,
		"adam_params": map[string]any{"learning_rate": 0.02}})
}

// TestGatewayLeadsLoops: a program leads a training loop at the address of a gateway, which is killed between two steps
// and within one. The program sees none of that but a connection that broke; every step is taken once, the limit of
// the token holds, and the run is computed again to the bit.
func TestGatewayLeadsLoops(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	dir := t.TempDir()
	base, out := filepath.Join(dir, "base"), filepath.Join(dir, "out")
	jobtest.WriteBase(t, base)
	net, port := filepath.Join(dir, "net"), porttest.Ports(t, 40)
	up(t, net, "--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port))
	network, home := fmt.Sprintf("http://127.0.0.1:%d", port+1), filepath.Join(net, "consumer")
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef read,submit limit=40\n"+
		"fedcba9876543210 read,submit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	serve := func() *ordering {
		return serves(t, "gateway: ", []string{"gateway", out, "--data", dir, "--network", network, "--home", home,
			"--token-file", tokens, "--loops", base, "--loop-context", "16", "--loop-rows", "2", "--loop-threads", "1",
			"--loop-workers", "2", "--loop-verifiers", "1", "--loop-audits", "1"})
	}
	s := serve()
	l := &looper{t: t, url: s.url, token: "0123456789abcdef"}
	l.create()
	var last map[string]any
	round := func() float64 {
		t.Helper()
		metrics, _ := last["metrics"].(map[string]any)
		if metrics == nil {
			t.Fatalf("a step is answered with %v", last)
		}
		return metrics["round"].(float64)
	}
	for step := range 2 {
		_, taken := l.asks(step)
		last = l.result(taken)
	}
	if got := round(); got != 2 {
		t.Fatalf("after 2 steps the run has %v", got)
	}
	s.kill()
	s = serve()
	l.url = s.url
	_, taken := l.asks(2)
	if last = l.result(taken); round() != 3 {
		t.Fatalf("after a restart the run has %v rounds", round())
	}
	pass, taken := l.asks(3)
	s.kill()
	s = serve()
	l.url = s.url
	if got := l.result(pass); got["metrics"] == nil {
		t.Errorf("a pass that was promised before the end is %v", got)
	}
	last = l.result(taken)
	if _, again := l.asks(3); again["request_id"] != taken["request_id"] || round() != 4 {
		t.Errorf("the step is %v and, sent again, %v; the run has %v rounds", taken["request_id"], again["request_id"],
			round())
	}
	other := &looper{t: t, url: s.url, token: "fedcba9876543210", model: l.model}
	if other.asks(4); other.refusal != "MODEL_UNKNOWN" {
		t.Errorf("another token leads the model: %q", other.refusal)
	}
	first := l.model
	l.create() // a second run is beyond the limit
	_, taken = l.asks(5)
	if got := l.result(taken); got["code"] != "SPENDING_LIMIT" {
		t.Errorf("a run beyond the limit of the token is answered with %v", got)
	}
	runs, err := filepath.Glob(filepath.Join(home, "loops", "loop-*", "loop.json"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("the runs are %v, %v", runs, err)
	}
	run := filepath.Dir(runs[0])
	var verified struct {
		Rounds []int  `json:"rounds"`
		Job    string `json:"job"`
	}
	does(t, &verified, "job", "verify", run, "--network", network)
	if len(verified.Rounds) != 4 || verified.Job != filepath.Base(run) {
		t.Errorf("verified %+v", verified)
	}
	var shown struct {
		ID, Name string
		Loss     float64
		Step     int
		State    string
	}
	does(t, &shown, "job", "get", filepath.Base(run), "--dir", filepath.Dir(run))
	if shown.Step != 4 || shown.Loss <= 0 || shown.State != "running" {
		t.Errorf("the curve of the run is %+v", shown)
	}
	if code, _, stderr := starling(t, "sim", run); code != 2 || !strings.Contains(stderr, "CLIENT_LEADS") {
		t.Errorf("a simulation of it gives exit %d: %s", code, stderr)
	}
	l.model = first
	if got := l.result(l.post("unload_model", map[string]any{"model_id": first})); got["model_id"] != first {
		t.Errorf("%v", got)
	}
	s.kill()
	// the data of two rounds in each other's place are found
	text, err := os.ReadFile(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	fed := record["fed"].([]any)
	fed[0], fed[1] = fed[1], fed[0]
	if text, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runs[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := starling(t, "job", "verify", run, "--network", network); code != 10 ||
		!strings.Contains(stderr, "VERIFICATION_FAILED") {
		t.Errorf("exchanged data give exit %d: %s", code, stderr)
	}
}
