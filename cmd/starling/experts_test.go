package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
)

// Experts of different sizes are trained by jobs of their own, one with a liar, verified, and read texts together: the
// loss of a mixture on a text is at most that of its best expert, and the logarithm of 1 / prior once a window.
func TestExperts(t *testing.T) {
	onlyLong(t)
	dir := filepath.Join(t.TempDir(), "out")
	short := []string{"--dir", dir, "--no-web", "-o", "json"}
	for _, set := range []string{"training.max_steps=20", "strategy.sync_steps=10", "training.warmup_steps=2",
		"strategy.optimizer_state_rounds=2", "training.global_batch_size=4", "strategy.workers=2",
		"eval.every_steps=20", "checkpoint.every_steps=20"} {
		short = append(short, "--set", set)
	}
	example := "../../examples/experts.yaml"
	inputs.Of(t, "../../examples")
	code, stdout, stderr := starling(t, append([]string{"train", example, "--dishonest", "1"}, short...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	onlyLiarsConvicted(t, stdout, 3)
	if code, stdout, stderr = starling(t, append([]string{"train", example, "--resume"}, short...)...); code != 0 ||
		strings.Count(stdout, `"state_root"`) != 3 {
		t.Errorf("finished experts: exit %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = starling(t, "job", "verify", dir, "-o", "json")
	if code != 0 || strings.Count(stdout, `"state_root"`) != 3 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	text := filepath.Join(t.TempDir(), "text.md")
	prose := strings.Repeat("# Heading\nA line of prose, and a number: 1234.\n", 8)
	if err := os.WriteFile(text, []byte(prose), 0o644); err != nil {
		t.Fatal(err)
	}
	loss := func(model string) float64 {
		code, stdout, stderr := starling(t, "model", "eval", model, "--data", text, "--window", "64", "-o", "json")
		var e struct{ Loss float64 }
		if err := json.Unmarshal([]byte(stdout), &e); code != 0 || err != nil {
			t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
		}
		return e.Loss
	}
	best := math.Inf(1)
	for _, name := range []string{"code", "prose", "scripts"} {
		best = min(best, loss(filepath.Join(dir, name)))
	}
	if all := loss(dir); all > best+math.Log(3)/64+1e-3 {
		t.Errorf("the loss of the mixture is %v, that of its best expert %v", all, best)
	}
	code, stdout, stderr = starling(t, "model", "generate", dir, "--prompt", "func ", "--tokens", "20", "-o", "json")
	if code != 0 || !strings.Contains(stdout, `"tokens":20`) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = starling(t, "model", "show", dir, "-o", "json")
	if code != 0 || !strings.Contains(stdout, "mixture of 3 experts") ||
		strings.Count(stdout, "model.safetensors") != 3 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = starling(t, "model", "export", dir, "--file", filepath.Join(dir, "model.gguf"))
	if code != 3 || !strings.Contains(stderr, "mixture of experts") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = starling(t, "sim", example, "--modelled", "--link", "lan", "-o", "json")
	if code != 0 || strings.Count(stdout, `"state_root"`) != 3 {
		t.Errorf("sim: exit %d: %s%s", code, stdout, stderr)
	}
}

// onlyLiarsConvicted checks a summary of the experts' jobs, each with one liar: the liar is convicted, and no other
// worker. A liar whose second round ends before the verdict on its first is convicted of both.
func onlyLiarsConvicted(t *testing.T, summary string, jobs int) {
	t.Helper()
	var all struct {
		Experts []struct {
			Name    string
			Summary struct {
				Disputes []struct{ Worker, Verdict string }
			}
		}
	}
	if err := json.Unmarshal([]byte(summary), &all); err != nil || len(all.Experts) != jobs {
		t.Fatalf("%d experts, %v: %s", len(all.Experts), err, summary)
	}
	for _, expert := range all.Experts {
		liars := map[string]bool{}
		for _, d := range expert.Summary.Disputes {
			if d.Verdict == "worker_lied" {
				liars[d.Worker] = true
			}
		}
		if len(liars) != 1 {
			t.Errorf("%s: %d workers were convicted, and one lied: %+v", expert.Name, len(liars), expert.Summary.Disputes)
		}
	}
}
