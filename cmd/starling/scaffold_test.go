package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/plan"
)

// init writes a job file that loads once its data is there, and overwrites nothing.
func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine")
	code, stdout, stderr := starling(t, "job", "init", "pretrain", "--dir", dir)
	if code != 0 || !strings.Contains(stdout, "--dry-run") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	file := filepath.Join(dir, "pretrain.yaml")
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "a.txt"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Load(file); err != nil {
		t.Error(err)
	}
	head, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(head), "# yaml-language-server: $schema="+jobfile.SchemaFile+"\n") {
		t.Errorf("%v: it begins with %.80q", err, head)
	}
	if schema, err := os.ReadFile(filepath.Join(dir, jobfile.SchemaFile)); err != nil || !json.Valid(schema) {
		t.Errorf("the schema: %v", err)
	}
	if code, _, stderr := starling(t, "job", "init", "pretrain", "--dir",
		dir); code != 5 || !strings.Contains(stderr, "FILE_EXISTS") {
		t.Errorf("again: exit %d\n%s", code, stderr)
	}
	const all = "diffusion embed finetune graph image network preferences pretrain reward-model rewards text-classify"
	code, stdout, _ = starling(t, "job", "init", "-o", "name")
	if code != 0 || strings.Join(strings.Fields(stdout), " ") != all {
		t.Errorf("exit %d, the templates are %q", code, stdout)
	}
	if code, _, stderr := starling(t, "job", "init", "nothing"); code != 2 || !strings.Contains(stderr, "pretrain") {
		t.Errorf("no such template: exit %d\n%s", code, stderr)
	}
}

func TestJobImport(t *testing.T) {
	config := filepath.Join("..", "..", "client", "job", "foreign", "testdata", "torchtitan.toml")
	out := filepath.Join(t.TempDir(), "job.yaml")
	code, stdout, stderr := starling(t, "job", "import", config, "--file", out)
	if code != 0 || !strings.Contains(stdout, out) || !strings.Contains(stderr, "not taken over: training.dataset") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	source, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if j, err := job.Parse(source, out); err != nil || j.Strategy.SyncSteps != 40 {
		t.Errorf("%+v, %v", j, err)
	}
	if code, _, stderr := starling(t, "job", "import", out); code != 2 || !strings.Contains(stderr, "FILE_UNUSABLE") {
		t.Errorf("a job of ours: exit %d\n%s", code, stderr)
	}
	if code, _, _ := starling(t, "job", "import", "nowhere.yaml"); code != 3 {
		t.Errorf("no file: exit %d", code)
	}
}

// There is a page for every command, and the same one every time.
func TestManualPages(t *testing.T) {
	var pages [2]map[string]string
	for i := range pages {
		dir := t.TempDir()
		if code, _, stderr := starling(t, "dev", "man", dir); code != 0 {
			t.Fatalf("exit %d\n%s", code, stderr)
		}
		pages[i] = map[string]string{}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			page, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			pages[i][f.Name()] = string(page)
		}
	}
	everyCommand(rootCommand(new(terminal.Console)), func(c *cobra.Command) {
		if isTopic(c) || isHidden(c) { // no pages for old names
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		if page := pages[0][name]; !strings.Contains(page, ".SH EXAMPLE") || page == "" || page != pages[1][name] {
			t.Errorf("%s: %.200q", name, page)
		}
		delete(pages[0], name)
	})
	for name := range pages[0] {
		if !strings.HasPrefix(name, "starling-completion") { // which cobra adds
			t.Errorf("%s is about no command", name)
		}
	}
}

// Commands that read answer in every form.
func TestOutputForms(t *testing.T) {
	for form, want := range map[string]string{
		"json": `"detection_probability":0.99`, "jsonl": `"detection_probability":0.99`,
		"yaml": "\ndetection_probability: 0.99", "table": "detection", "wide": "detection",
	} {
		code, stdout, stderr := starling(t, "network", "economics", "--stake", "1", "--reward", "1.3", "--cost", "1",
			"--audit-rate", "0.05", "--steps", "100", "-o", form)
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("-o %s: exit %d\n%s%s", form, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"economics"}, {"bench", "matmul"}, {"export", "out"}} { // before they do anything
		if code, _, stderr := starling(t, append(args, "-o", "name")...); code != 2 || !strings.Contains(stderr, `"USAGE"`) {
			t.Errorf("a name of what has none: %v: exit %d\n%s", args, code, stderr)
		}
	}
	if code, stdout, stderr := starling(t, "job", "schema", "-o", "yaml"); code != 0 ||
		!strings.HasPrefix(stdout, "$id: urn:starling:training-job:v1\n") {
		t.Errorf("a schema as YAML: exit %d\n%.300s%s", code, stdout, stderr)
	}
}

// A plan says what a job takes, starts nothing, and holds only as long as the job is the same.
func TestDryRun(t *testing.T) {
	file := writeJob(t, "")
	code, stdout, stderr := starling(t, "train", file, "--dry-run", "-o", "json")
	var p plan.Plan
	if err := json.Unmarshal([]byte(stdout), &p); code != 0 || err != nil {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if p.Parameters < 1000 || p.Steps < 1 || p.Most == 0 || p.Budget < p.Most || p.StepTime <= 0 ||
		p.Seconds <= p.StepTime || p.Memory == 0 || p.Disk < 1000 || p.Received < 1000 || p.Quote != nil ||
		p.Placement == nil || p.Placement.Workers != 3 || p.Placement.Verifiers != 1 ||
		p.Placement.MemoryBytes <= p.Memory || p.Placement.Fits != "yes" {
		t.Errorf("%+v", p)
	}
	if _, err := os.Stat("out"); err == nil {
		t.Error("something was started")
	}
	_, same, _ := starling(t, "train", file, "--dry-run", "-o", "name")
	_, other, _ := starling(t, "train", file, "--dry-run", "-o", "name", "--set", "seed=7")
	if strings.TrimSpace(same) != p.ID || other == same {
		t.Errorf("the plan %s is called %s, and that of another seed %s", p.ID, same, other)
	}
	if code, stdout, _ := starling(t, "train", file, "--dry-run"); code != 0 || !strings.Contains(stdout, "--plan "+p.ID) {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	// what a buyer has agreed to
	for _, set := range []string{"budget.max_cost=24", "strategy.verification={mode: none}"} {
		if _, stdout, _ := starling(t, "train", file, "--dry-run", "--set", set, "--dir",
			"elsewhere"); strings.Contains(stdout, p.ID) || !strings.Contains(stdout, "--dir elsewhere --plan ") {
			t.Errorf("with %s:\n%s", set, stdout)
		}
		if code, _, stderr := starling(t, "train", file, "--plan", p.ID, "--set", set, "--dir", t.TempDir()); code != 5 ||
			!strings.Contains(stderr, "PLAN_STALE") {
			t.Errorf("with %s the plan holds: exit %d\n%s", set, code, stderr)
		}
	}
	if code, stdout, _ := starling(t, "job", "plan", file, "--set", "strategy.verification={mode: none}"); code != 0 ||
		!strings.Contains(stdout, "--set 'strategy.verification={mode: none}' --plan ") {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	// Rounds of one step are planned, too.
	if code, stdout, stderr := starling(t, "train", file, "--dry-run", "--set",
		"strategy={method: allreduce, workers: 3}"); code != 0 || !strings.Contains(stdout, "step ") {
		t.Errorf("allreduce: exit %d\n%s%s", code, stdout, stderr)
	}
}

// A model that cannot fit is planned at once, for machines that have the memory, and is refused on this one before
// anything of it is made.
func TestModelThatCannotFit(t *testing.T) {
	file := writeJob(t, "")
	// 9 * 10^10 parameters, 0.7 TB with the momentum
	huge := []string{"--set", "budget.max_cost=100000", "--set", "model.config={hidden_size: 65536, " +
		"num_hidden_layers: 3, num_attention_heads: 64, num_key_value_heads: 64, " +
		"intermediate_size: 65536, max_position_embeddings: 16}"}
	code, stdout, stderr := starling(t, append([]string{"train", file, "--dry-run"}, huge...)...)
	if code != 7 || !strings.Contains(stdout, "does not fit") || !strings.Contains(stderr, "MEMORY_TOO_SMALL") {
		t.Errorf("planned: exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = starling(t, append([]string{"train", file, "--dry-run", "-o", "json"}, huge...)...)
	if code != 7 || !strings.Contains(stdout, `"fits":"no"`) || !strings.Contains(stderr, "MEMORY_TOO_SMALL") {
		t.Errorf("planned for a program: exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = starling(t, append([]string{"train", file}, huge...)...)
	if code != 2 || stdout != "" || !strings.Contains(stderr, "JOB_TOO_LARGE") || !strings.Contains(stderr, "parameters") {
		t.Errorf("begun: exit %d\n%s%s", code, stdout, stderr)
	}
}
