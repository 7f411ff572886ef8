package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/node/layered/left"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/openai/strategy"
)

// layeredFolder is the folder of a model of three layers.
func layeredFolder(t *testing.T) string {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": 3, "hidden_size": 32,
		"num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 256, "vocab_size": 300,
		"initializer_range": 0.2})
	if err != nil {
		t.Fatal(err)
	}
	return modelFolder(t, c)
}

// told starts a process, and reads the JSON that it says first.
func told(t *testing.T, answer any, args ...string) *exec.Cmd {
	t.Helper()
	c := command(t, append(args, "-o", "json")...)
	c.Stderr = os.Stderr
	stdout, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // it may have been killed
	})
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(answer); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return c
}

// TestModelInStages serves a model of which each process has a third of the layers, and kills one of them in the middle
// of a text: a process with the same stage continues it with the bits of the whole model.
func TestModelInStages(t *testing.T) {
	model, dir := layeredFolder(t), filepath.Join(t.TempDir(), "parts")
	var split struct{ Folders []string }
	does(t, &split, "model", "split", model, "--stages", "3", "--out", dir)
	home := filepath.Join(t.TempDir(), "front")
	var front struct {
		PeerID string `json:"peer_id"`
	}
	does(t, &front, "worker", "identity", "--home", home)
	args := []string{"model", "serve", split.Folders[0], "--home", home, "--name", "m", "--listen", "127.0.0.1:0",
		"--no-log", "--recompute", "100"}
	var killed *exec.Cmd
	for _, folder := range []string{split.Folders[1], split.Folders[2], split.Folders[2], split.Folders[3]} {
		var holding struct{ Addrs []string }
		c := told(t, &holding, "model", "stage", folder, "--home", filepath.Join(t.TempDir(), "holder"), "--front",
			front.PeerID, "--listen", "/ip4/127.0.0.1/tcp/0")
		if killed == nil && folder == split.Folders[2] {
			killed = c
		}
		args = append(args, "--holder", holding.Addrs[0])
	}
	var served struct {
		Base string `json:"base_url"`
	}
	told(t, &served, args...)
	engine, err := serve.Open(model, serve.Options{Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	prompt := strings.Repeat("a stage of a model ", 5) // more than a piece
	var want strings.Builder
	if _, err := engine.Generate(t.Context(), openai.Request{Model: "m", Prompt: prompt, Max: 60, Temperature: 1, TopP: 1,
		Seed: 7, Likely: -1}, func(p openai.Piece) error {
		want.WriteString(p.Text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"model": "m", "prompt": prompt, "max_tokens": 60, "temperature": 1,
		"seed": 7, "stream": true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Post(served.Base+"/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var got strings.Builder
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		var e struct{ Choices []struct{ Text string } }
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		for _, c := range e.Choices {
			got.WriteString(c.Text)
		}
		if killed != nil && got.Len() > 0 {
			if err := killed.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed = nil
		}
	}
	if valid := string([]rune(want.String())); got.String() != valid || valid == "" {
		t.Errorf("in stages %q, the whole model writes %q", got.String(), valid)
	}
}

// TestModelWithoutStage serves a model that may be continued without its second stage, and kills the holder of that:
// answers say which stage is missing, until a holder is there again.
func TestModelWithoutStage(t *testing.T) {
	onlyLong(t)
	model, dir := layeredFolder(t), filepath.Join(t.TempDir(), "parts")
	if err := os.WriteFile(filepath.Join(model, left.File), left.Layers{{1}}.JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	var split struct {
		Folders []string
		Left    []int
	}
	does(t, &split, "model", "split", model, "--stages", "3", "--out", dir)
	if !slices.Equal(split.Left, []int{2}) {
		t.Fatal(split)
	}
	home := filepath.Join(t.TempDir(), "front")
	var front struct {
		PeerID string `json:"peer_id"`
	}
	does(t, &front, "worker", "identity", "--home", home)
	args := []string{"model", "serve", split.Folders[0], "--home", home, "--name", "m", "--listen", "127.0.0.1:0",
		"--no-log", "--skip-missing"}
	type holding struct{ Addrs []string }
	hold := func(stage int, listen string) (*exec.Cmd, string) {
		var h holding
		c := told(t, &h, "model", "stage", split.Folders[stage], "--home", filepath.Join(dir, "holder", strconv.Itoa(stage)),
			"--front", front.PeerID, "--listen", listen)
		return c, h.Addrs[0]
	}
	var holders [4]*exec.Cmd
	var addrs [4]string
	for stage := 1; stage <= 3; stage++ {
		holders[stage], addrs[stage] = hold(stage, "/ip4/127.0.0.1/tcp/0")
		args = append(args, "--holder", addrs[stage])
	}
	var served struct {
		Base string `json:"base_url"`
	}
	told(t, &served, args...)
	type answer struct {
		Print   string `json:"system_fingerprint"`
		Choices []struct {
			Text  string
			Trace struct {
				Left []int `json:"left_stages"`
			} `json:"starling"`
		}
	}
	ask := func() (a answer, header string) {
		r, err := http.Post(served.Base+"/completions", "application/json", strings.NewReader(
			`{"model":"m","prompt":"a stage","max_tokens":20,"temperature":0}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil || len(a.Choices) != 1 {
			t.Fatal(r.Status, err)
		}
		return a, r.Header.Get(strategy.HeaderLeft)
	}
	whole, header := ask()
	if header != "" || whole.Choices[0].Trace.Left != nil {
		t.Fatal(whole, header)
	}
	if err := holders[2].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holders[2].Wait() // it was killed
	if a, header := ask(); header != "2" || !slices.Equal(a.Choices[0].Trace.Left, []int{2}) || a.Print == whole.Print ||
		a.Choices[0].Text == whole.Choices[0].Text {
		t.Errorf("without stage 2: %+v, %q; with it %+v", a, header, whole)
	}
	at, _, _ := strings.Cut(addrs[2], "/p2p/")
	hold(2, at)
	for end := time.Now().Add(2 * time.Minute); ; {
		a, header := ask()
		if header == "" && a.Choices[0].Text == whole.Choices[0].Text && a.Print == whole.Print {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the holder is there again: %+v, %q", a, header)
		}
	}
}

// TestStageErrors are the errors of a user.
func TestStageErrors(t *testing.T) {
	model, dir := layeredFolder(t), filepath.Join(t.TempDir(), "parts")
	home := filepath.Join(t.TempDir(), "front")
	if code, _, errs := starling(t, "model", "split", model, "--stages", "2", "--out", dir); code != 0 {
		t.Fatal(errs)
	}
	for say, args := range map[string][]string{
		"STAGES_INVALID":    {"model", "split", model, "--stages", "4", "--out", dir + "4"},
		"OUT_EXISTS":        {"model", "split", model, "--stages", "2", "--out", dir},
		"MODEL_UNREADABLE":  {"model", "stage", dir + "/front", "--home", home, "--front", "x"},
		"--holder":          {"model", "serve", dir + "/front", "--listen", "127.0.0.1:0"},
		"STAGE_MISSING":     {"model", "serve", dir + "/front", "--home", home, "--holder", "x"},
		"are for the front": {"model", "serve", model, "--holder", "x"},
		"STAGES_NEEDED":     {"model", "serve", dir + "/front", "--home", home, "--holder", "x", "--skip-missing"},
	} {
		if code, _, errs := starling(t, append(args, "-o", "json")...); code == 0 || !strings.Contains(errs, say) {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}

// An epoch has the same weights whenever they are made, and others than the next epoch.
func TestSplitEpochs(t *testing.T) {
	model, dir, owner := layeredFolder(t), t.TempDir(), filepath.Join(t.TempDir(), "owner")
	var identity struct{}
	does(t, &identity, "worker", "identity", "--home", owner)
	weights := map[string]int{}
	for i, epoch := range []string{"1", "1", "2"} {
		var split struct{ Weights string }
		does(t, &split, "model", "split", model, "--stages", "3", "--epoch", epoch, "--home", owner, "--out",
			filepath.Join(dir, strconv.Itoa(i)))
		weights[split.Weights]++
	}
	if len(weights) != 2 {
		t.Errorf("two epochs have the weights %v", weights)
	}
	if code, _, errs := starling(t, "model", "split", model, "--stages", "3", "--epoch", "3", "--out",
		filepath.Join(dir, "x")); code == 0 || !strings.Contains(errs, "--home") {
		t.Errorf("an epoch without a key: exit %d, %s", code, errs)
	}
}
