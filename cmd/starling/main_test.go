package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/catalog"
	"github.com/starling-network/starling/cmd/starling/model"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/validator"
	"github.com/starling-network/starling/cmd/starling/worker"
	"github.com/starling-network/starling/node/rundir"
)

// The test binary is the program itself when this variable is set, so that the tests run real processes.
const asProgram = "STARLING_TEST_AS_PROGRAM"

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"play every tutorial and bench, and every case of networks of processes, "+
		"as .ci/run does")

// onlyLong skips a test unless the flag -long is set.
func onlyLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("with -long")
	}
}

// Types of the JSON answers of commands; variables of tests have the names of the packages.
type (
	workerReport      = worker.Report
	workerIdentity    = worker.Identity
	validatorIdentity = validator.Identity
	exportedModel     = model.Exported
	ownedModel        = catalog.Owned
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	_ = flag.Set("test.parallel", "3") // each is a network of processes
	os.Exit(m.Run())
}

// seldom is when a test asks again for a change that it waits for: a process for each question takes much time.
func seldom() <-chan time.Time { return time.After(time.Second / 2) }

// starling runs the program to its end.
func starling(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := command(t, args...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

func writeJob(t *testing.T, extra string) string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "{\"text\": \"number %d follows %d and so on\"}\n", i+1, i)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(jobText+extra), 0o644),
		os.WriteFile(filepath.Join(dir, "text.jsonl"), []byte(text.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "job.yaml")
}

const jobText = `apiVersion: starling/v1
kind: TrainingJob
model:
  architecture: llama
  config: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2, intermediate_size: 32,
    max_position_embeddings: 16}
  tokenizer: {train: {type: bpe, vocab_size: 300}}
datasets: [{path: "*.jsonl", format: jsonl}]
val_set_size: 0.1
sequence_len: 16
training: {max_steps: 16, global_batch_size: 6, learning_rate: 1.0e-2}
strategy: {sync_steps: 4, workers: 3}
`

func summary(t *testing.T, stdout string) (s rundir.Summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("standard output is not one line of JSON: %v\n%s", err, stdout)
	}
	return s
}

// untilRound waits until the program says that it is in a round, from its plain progress lines.
func untilRound(t *testing.T, c *exec.Cmd, round int) {
	t.Helper()
	untilSaid(t, c, fmt.Sprintf(" round=%d ", round))
}

// untilSaid starts the program and waits for a line of its news.
func untilSaid(t *testing.T, c *exec.Cmd, seen string) {
	t.Helper()
	says(t, news(t, c), seen)
}

// says waits for a line of the news.
func says(t *testing.T, s *bufio.Scanner, seen string) {
	t.Helper()
	var lines []string
	for s.Scan() {
		lines = append(lines, s.Text())
		if strings.Contains(s.Text(), seen) {
			return
		}
	}
	t.Fatalf("the program ended before it said %q:\n%s", seen, strings.Join(lines, "\n"))
}

// A run that is killed without warning resumes from its last attested checkpoint, and ends as an undisturbed run.
func TestKilledRunResumes(t *testing.T) {
	t.Parallel()
	job, dir := writeJob(t, "output: {formats: [safetensors, gguf]}\n"), t.TempDir()
	code, stdout, stderr := starling(t, "train", job, "--dir", filepath.Join(dir, "whole"), "-o", "json")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	whole := summary(t, stdout)
	killed := filepath.Join(dir, "killed")
	c := command(t, "train", job, "--dir", killed)
	untilRound(t, c, 2)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code, _, stderr := starling(t, "train", job, "--dir", killed, "--no-input"); code != 5 ||
		!strings.Contains(stderr, "--resume") {
		t.Errorf("an unfinished run, without --resume: exit %d\n%s", code, stderr)
	}
	code, stdout, stderr = starling(t, "train", job, "--dir", killed, "--resume", "-o", "json")
	if code != 0 {
		t.Fatalf("resume: exit %d\n%s", code, stderr)
	}
	if s := summary(t, stdout); s.StateRoot != whole.StateRoot || s.Rounds != whole.Rounds ||
		s.BudgetUzen != s.PaidUzen+s.FeeUzen+s.RefundedUzen {
		t.Errorf("resumed: %+v\nundisturbed: %+v", s, whole)
	}
	if info, err := os.Stat(filepath.Join(killed, "model.gguf")); err != nil || info.Size() == 0 {
		t.Errorf("no GGUF file: %v", err)
	}
	if code, stdout, stderr := starling(t, "job", "verify", killed, "-o",
		"json"); code != 0 || !strings.Contains(stdout, whole.StateRoot.String()) {
		t.Errorf("verify: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, _ := starling(t, "model", "generate", killed, "--prompt", "number 7", "--tokens", "8",
		"--seed", "3", "-o", "json"); code != 0 || !strings.Contains(stdout, `"prompt":"number 7"`) {
		t.Errorf("generate: exit %d\n%s", code, stdout)
	}
}

func TestInterruptStopsCleanly(t *testing.T) {
	t.Parallel()
	job, dir := writeJob(t, ""), filepath.Join(t.TempDir(), "out")
	c := command(t, "train", job, "--dir", dir)
	untilRound(t, c, 1)
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d after Ctrl-C", code)
	}
	if err := rundir.Probe(dir); !errors.Is(err, rundir.ErrUnfinished) {
		t.Errorf("%v", err)
	}
}

func TestErrors(t *testing.T) {
	job := writeJob(t, "")
	typo := writeJob(t, "bugdet: {max_cost: 5}\n")
	poor := writeJob(t, "budget: {max_cost: 0.000001}\n")
	dir := t.TempDir()
	hostile := map[string]string{ // an absurd length at the place where each format has one
		"data.parquet": "PAR1\x15\x04garbagePAR1", "empty.txt": "", "model.safetensors": "\xff\xff\xff\xff\xff\xff\xff\x0f{}",
		"config.json": `{"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 1, "n_positions": 16, "vocab_size": 256}`,
	}
	for name, text := range hostile {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	with := func(old, replaced string) string {
		path := writeJob(t, "")
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.Replace(string(text), old, replaced, 1)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := t.TempDir()
	for name, text := range map[string]string{"run.json": `{"format": 1}`, "receipts.jsonl": `{"seq`} {
		if err := os.WriteFile(filepath.Join(damaged, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data := `{path: "*.jsonl", format: jsonl}`
	model, _, _ := strings.Cut(jobText, "datasets:")
	_, model, _ = strings.Cut(model, "model:")
	for name, c := range map[string]struct {
		args []string
		code int
		say  []string
	}{
		"unknown key":     {[]string{"train", typo}, 2, []string{"job.yaml:13:1", "bugdet", "budget", "JOB_UNKNOWN_KEY"}},
		"no such file":    {[]string{"train", "nowhere.yaml"}, 2, []string{"JOB_FILE_NOT_FOUND"}},
		"override":        {[]string{"train", job, "--set", "training.max_steps=ten"}, 2, []string{"JOB_WRONG_TYPE"}},
		"too small":       {[]string{"train", poor}, 6, []string{"BUDGET_TOO_SMALL"}},
		"no argument":     {[]string{"train"}, 2, []string{"JOB.yaml"}},
		"unknown flag":    {[]string{"train", job, "--worker", "3"}, 2, []string{"USAGE"}},
		"unknown command": {[]string{"trian"}, 2, []string{"train"}},
		"not a run":       {[]string{"job", "verify", t.TempDir()}, 3, []string{"NOT_A_RUN"}},
		"explain nothing": {[]string{"job", "explain", "--out", t.TempDir()}, 3, []string{"NOT_A_RUN"}},
		"explain damage": {[]string{"job", "explain", "--out", damaged}, 3, []string{"receipts.jsonl: record 1",
			"RUN_DAMAGED"}},
		"explain where":  {[]string{"job", "explain", "7"}, 2, []string{"--out"}},
		"not a model":    {[]string{"model", "generate", t.TempDir()}, 3, []string{"MODEL_UNREADABLE"}},
		"a file, no run": {[]string{"job", "verify", filepath.Join(dir, "empty.txt")}, 3, []string{"NOT_A_RUN"}},
		"hostile parquet": {[]string{"train", with(data, `{path: "`+dir+`/data.parquet", format: parquet}`)}, 2,
			[]string{"data.parquet", "footer", "JOB_NO_DATA"}},
		"empty data": {[]string{"train", with(data, `{path: "`+dir+`/empty.txt", format: text}`)}, 2,
			[]string{"job.yaml:7:", "no text", "JOB_BAD_VALUE"}},
		"long sequence": {[]string{"train", with("sequence_len: 16", "sequence_len: 17")}, 2,
			[]string{"job.yaml:10:", "17 tokens against 16", "JOB_BAD_VALUE"}},
		"hostile weights": {[]string{"train", with(model, " {base_model: "+dir+", tokenizer: byte-level}\n")}, 2,
			[]string{"job.yaml:3:", "model.safetensors", "JOB_BAD_VALUE"}},
		"stale plan": {[]string{"train", job, "--plan", "job-0"}, 5, []string{"PLAN_STALE", "--dry-run"}},
		"output":     {[]string{"version", "-o", "xml"}, 2, []string{"xml"}},
	} {
		out := filepath.Join(t.TempDir(), "out")
		args := c.args
		if args[0] == "train" && len(args) > 1 {
			args = append(args, "--dir", out)
		}
		code, stdout, stderr := starling(t, args...)
		if code != c.code || stdout != "" {
			t.Errorf("%s: exit %d, want %d; standard output %q\n%s", name, code, c.code, stdout, stderr)
		}
		for _, s := range c.say {
			if !strings.Contains(stderr, s) {
				t.Errorf("%s: the error does not say %q:\n%s", name, s, stderr)
			}
		}
		if _, err := os.Stat(filepath.Join(out, "network")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was started", name)
		}
	}
	for _, args := range [][]string{{"train", typo, "-o", "json"}, {"status", "--bogus", "-o", "json"},
		{"-xo", "--bogus", "--output=jsonl"}} {
		if _, _, stderr := starling(t, args...); !json.Valid([]byte(stderr)) {
			t.Errorf("%v: the error is not JSON: %s", args, stderr)
		}
	}
}

// Every command of the tree says what it does, and shows how it is called.
func TestHelpHasExamples(t *testing.T) {
	everyCommand(rootCommand(new(terminal.Console)), func(c *cobra.Command) {
		if c.Long == "" || c.Short == "" || !strings.Contains(c.Example, "starling") && !isTopic(c) {
			t.Errorf("%s has no examples or no description", c.CommandPath())
		}
	})
}

// everyCommand visits a command and all below it.
func everyCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, visit)
	}
}

// isHidden reports whether help shows neither a command nor what it is part of.
func isHidden(c *cobra.Command) bool { return c.Hidden || c.HasParent() && isHidden(c.Parent()) }

// isTopic reports whether a command is a text to read and does nothing.
func isTopic(c *cobra.Command) bool { return !c.Runnable() }

func TestExecuteWithoutArgumentsShowsHelp(t *testing.T) {
	if code := run(context.Background(), []string{}); code != 0 {
		t.Errorf("exit %d", code)
	}
}
