package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/income"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/worker"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/reward"
)

// workerUp is the command that starts a worker, as the program has it.
func workerUp(t *testing.T) *cobra.Command {
	t.Helper()
	up, _, err := worker.Command(new(terminal.Console)).Find([]string{"up"})
	if err != nil || up.Name() != "up" {
		t.Fatalf("%v: %v", up, err)
	}
	return up
}

// The schema that is published is that of the flags, it takes the example, and so does the command.
func TestWorkerFile(t *testing.T) {
	examples := filepath.Join("..", "..", "examples")
	up := workerUp(t)
	form := worker.FileForm(up)
	want, err := form.Schema("Starling worker")
	if err != nil {
		t.Fatal(err)
	}
	published := filepath.Join(examples, "worker.schema.json")
	if *rewrite {
		if err := os.WriteFile(published, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(published); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not what the flags say: go test ./cmd/starling -run WorkerFile -rewrite (%v)", published, err)
	}
	s, err := jsonschema.NewCompiler().Compile(published)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(examples, "worker.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Error(err)
	}
	if err := form.Read(filepath.Join(examples, "worker.yaml")); err != nil {
		t.Error(err)
	}
	for key := range v {
		if f := up.Flags().Lookup(key); key != "apiVersion" && key != "kind" && f == nil {
			t.Errorf("%s is no flag", key)
		}
	}
	if got := up.Flags().Lookup("memory").Value.String(); got != "8192" {
		t.Errorf("memory is %s", got)
	}
}

func TestWorkerFileIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"home: a\nrole: validator\n": ":4:7: role: \"validator\" is not valid: use worker, verifier, generator, " +
			"worker,verifier, worker,host, ",
		"behind-nat: true\nrelay: true\n": "[behind-nat relay] are set",
		"home: a\n":                       "--home and --network are needed",
		"executor: torch\nexecutor-isolation: reduced\nhome: a\nnetwork: b\n": "not confirmed for this start",
	} {
		file := filepath.Join(t.TempDir(), "worker.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: starling/v1\nkind: Worker\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		up := workerUp(t)
		err := up.ParseFlags([]string{"--config", file})
		if err == nil {
			err = up.RunE(up, nil)
		}
		if terminal.ExitCode(err) != terminal.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Receipts of many jobs go by their jobs and numbers, and none are an empty list.
func TestEarningsAnswer(t *testing.T) {
	receipt := rundir.Explanation{ReceiptLine: rundir.ReceiptLine{Receipt: reward.Receipt{Job: "job-1", Seq: 12}}}
	for _, c := range []struct {
		form  terminal.Form
		found []rundir.Explanation
		want  string
	}{
		{terminal.Name, []rundir.Explanation{receipt}, "job-1 12\n"},
		{terminal.Name, nil, ""},
		{terminal.JSON, nil, `{"account":"a","days":[],"jobs":[],"lost_uzen":0,"receipts":[],"received_uzen":1}` + "\n"},
	} {
		var b bytes.Buffer
		answer := income.EarningsAnswer("a", 1, 0, []api.EarnedDay{}, c.found, nil, nil)
		if err := c.form.Print(&b, answer); err != nil || b.String() != c.want {
			t.Errorf("%q, want %q (%v)", b.String(), c.want, err)
		}
	}
}

// A worker that has drained ends well.
func TestWorkerEndsWell(t *testing.T) {
	t.Parallel()
	if err := cause.Worker(nil); err != nil {
		t.Error(err)
	}
}
