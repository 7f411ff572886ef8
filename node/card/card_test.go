package card

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"
)

var rewrite = flag.Bool("rewrite", false, "write the golden card")

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// run is the folder of a small run.
func run() fstest.MapFS {
	return fstest.MapFS{
		"run.json": text(`{"format":1,"id":"job-1","blobs":{"manifest":"bafkmanifest","shards":["bafkshard"]}}`),
		"job.yaml": text("apiVersion: starling/v1\nkind: TrainingJob\nname: small\nmodel:\n  architecture: gpt2\n  " +
			"config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 16}\n  tokenizer: byte-level\n" +
			"datasets: [{path: \"te|xt`.txt\", format: text}]\nsequence_len: 16\ntraining: {max_steps: 8, global_batch_size: " +
			"6, learning_rate: 1.0e-2}\nstrategy: {workers: 3}\noutput: {license: apache-2.0}\n"),
		"config.json": text(`{"model_type":"gpt2","n_layer":1,"n_embd":16,"n_head":2,"n_positions":16,"vocab_size":256}`),
		"summary.json": text(
			`{"job":"job-1","name":"small","rounds":2,"workers":3,"steps":8,"tokens":768,"first_eval_loss":5.5,` +
				`"final_eval_loss":3.2283787727355957,` +
				`"audits":{"drawn":5,"passed":4,"failed":1},"disputes":[{}],"paid_uzen":1500000,"state_root":"ab"}`,
		),
		"lineage.jsonl": text(
			`{"job":"job-1","round":1,"state_root":"aa","checkpoint":"bafkone","signers":[{"id":"starling1a"}]}` + "\n" +
				`{"job":"job-1","round":2,"state_root":"ab","checkpoint":"bafktwo",` +
				`"signers":[{"id":"starling1a"},{"id":"starling1b"}]}` + "\n",
		),
		"receipts.jsonl": text(`{"who":"starling1b","kind":"work","amount":1000000}` + "\n" +
			`{"who":"starling1c","kind":"audit","amount":7}` + "\n" + `{"who":"starling1c","kind":"slash","amount":500}` + "\n"),
	}
}

func written(t *testing.T, c *Card) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCardIsGolden(t *testing.T) {
	c, err := Read(run())
	if err != nil {
		t.Fatal(err)
	}
	got, file := written(t, c), filepath.Join("testdata", "README.md")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the card has changed; see the difference after `go test ./node/card -rewrite`:\n%s", got)
	}
	var front struct {
		License string
		Index   []struct {
			Results []struct{ Metrics []struct{ Type string } }
		} `yaml:"model-index"`
	}
	if err := yaml.Unmarshal([]byte(strings.Split(got, "---\n")[1]), &front); err != nil ||
		front.License != "apache-2.0" || front.Index[0].Results[0].Metrics[1].Type != "perplexity" {
		t.Errorf("%+v, %v", front, err)
	}
}

func TestVerifiedAndDiverged(t *testing.T) {
	c, err := Read(run())
	if err != nil {
		t.Fatal(err)
	}
	c.Verified = &Verification{Rounds: 2, Units: 6, StateRoot: "ab"}
	c.Summary.Diverged = "the eval loss rose"
	for _, say := range []string{"6 units of 2 rounds", "worth nothing"} {
		if got := written(t, c); !strings.Contains(got, say) {
			t.Errorf("the card does not say %q:\n%s", say, got)
		}
	}
}

func TestReadRefusals(t *testing.T) {
	for name, change := range map[string]func(files fstest.MapFS){
		"no run":      func(files fstest.MapFS) { delete(files, "run.json") },
		"no summary":  func(files fstest.MapFS) { delete(files, "summary.json") },
		"bad job":     func(files fstest.MapFS) { files["job.yaml"] = text("kind: [") },
		"bad config":  func(files fstest.MapFS) { files["config.json"] = text("{}") },
		"bad lineage": func(files fstest.MapFS) { files["lineage.jsonl"] = text("{") },
		"long line":   func(files fstest.MapFS) { files["receipts.jsonl"] = text(strings.Repeat(" ", maxLine+1)) },
	} {
		files := maps.Clone(run())
		change(files)
		if _, err := Read(files); !errors.Is(err, ErrFolder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRead must not panic, and what it reads must be writable.
func FuzzRead(f *testing.F) {
	files := run()
	f.Add(files["summary.json"].Data, files["lineage.jsonl"].Data, files["receipts.jsonl"].Data)
	f.Fuzz(func(t *testing.T, summary, lineage, receipts []byte) {
		files := run()
		files["summary.json"].Data, files["lineage.jsonl"].Data, files["receipts.jsonl"].Data = summary, lineage, receipts
		if c, err := Read(files); err == nil {
			written(t, c)
		}
	})
}

// The card of a classifier of nodes has its graph, and its accuracy on held-out nodes.
func TestCardOfGraph(t *testing.T) {
	files := run()
	files["run.json"] = text(`{"format":1,"id":"job-1","blobs":{"manifest":"bafkmanifest","shards":["bafkshard"],` +
		`"frozen":"bafkgraph"}}`)
	files["job.yaml"] = text("apiVersion: starling/v1\nkind: TrainingJob\nname: small\ntask: graph\n" +
		"model: {architecture: sage}\ndatasets: [{path: n.jsonl}, {path: e.csv}]\ntraining: {max_steps: 8}\n")
	files["config.json"] = text(`{"model_type":"sage","num_nodes":1200,"num_features":2,"num_messages":9,` +
		`"id2label":{"0":"ant","1":"b|ee"}}`)
	files["summary.json"] = text(`{"job":"job-1","rounds":2,"final_eval_loss":0.5,"final_measured":{"accuracy":0.75}}`)
	c, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	page := written(t, c)
	for _, want := range []string{"pipeline_tag: graph-ml", "held-out nodes of the job",
		"- type: accuracy\n              value: 0.75",
		"A classifier of the nodes of a graph (sage) with 146 parameters", "1,200 nodes with 2 features each",
		"the classes are `ant`, `b ee`.", "graph and features `bafkgraph`", "PyTorch Geometric"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	files["config.json"] = text(`{"model_type":"sage"}`)
	if _, err := Read(files); !errors.Is(err, ErrFolder) {
		t.Errorf("no network: %v", err)
	}
}

// The card of a classifier of texts says how to use it.
func TestCardOfTexts(t *testing.T) {
	files := run()
	files["job.yaml"] = text("apiVersion: starling/v1\nkind: TrainingJob\nname: small\ntask: classify\n" +
		"sequence_len: 64\nmodel: {base_model: org/name}\ndatasets: [{path: n.jsonl}]\ntraining: {max_steps: 8}\n")
	files["config.json"] = text(`{"model_type":"gpt2","vocab_size":300,"n_embd":4,"n_head":1,"n_layer":1,` +
		`"n_positions":64,"id2label":{"0":"bad","1":"go|od"},"pad_token_id":299}`)
	files["summary.json"] = text(`{"job":"job-1","rounds":2,"final_eval_loss":0.5,"final_measured":{"accuracy":0.75}}`)
	c, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	page := written(t, c)
	for _, want := range []string{"pipeline_tag: text-classification", "library_name: transformers",
		"held-out texts of the job", "A classifier of texts (gpt2) with", "started from `org/name`", "--text \"...\"",
		"The first\n64 tokens of a text count; the classes are `bad`, `go od`.\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	files["config.json"] = text(`{"model_type":"gpt2"}`)
	if _, err := Read(files); !errors.Is(err, ErrFolder) {
		t.Errorf("no network: %v", err)
	}
}

// The card of an encoder of texts says which libraries load it.
func TestCardOfVectors(t *testing.T) {
	files := run()
	files["job.yaml"] = text("apiVersion: starling/v1\nkind: TrainingJob\nname: small\ntask: embed\nsequence_len: 64\n" +
		"model: {base_model: org/name}\ndatasets: [{path: n.jsonl}]\ntraining: {max_steps: 8}\n")
	files["config.json"] = text(`{"model_type":"gpt2","vocab_size":300,"n_embd":4,"n_head":1,"n_layer":1,` +
		`"n_positions":64,"is_causal":false,"pad_token_id":299}`)
	files["summary.json"] = text(`{"job":"job-1","rounds":2,"final_eval_loss":0.5,"final_measured":{"recall_at_1":0.75}}`)
	c, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	page := written(t, c)
	for _, want := range []string{"pipeline_tag: sentence-similarity", "library_name: sentence-transformers",
		"type: recall_at_1\n", "An encoder of texts (gpt2) with", "vectors have 4 elements", "started from `org/name`",
		"starling model embed . --text", "The first 64 tokens of a\ntext count"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	files["config.json"] = text(`{"model_type":"gpt2"}`)
	if _, err := Read(files); !errors.Is(err, ErrFolder) {
		t.Errorf("a language model: %v", err)
	}
}

// The card of a model that draws images says how it is used.
func TestCardOfDiffusion(t *testing.T) {
	files := run()
	files["job.yaml"] = text("apiVersion: starling/v1\nkind: TrainingJob\nname: small\ntask: diffusion\n" +
		"model: {architecture: mlp}\ndatasets: [{path: n.png}]\ntraining: {max_steps: 8}\n")
	files["config.json"] = text(`{"model_type":"mlp","image_size":[4,3],"num_channels":1,"num_train_timesteps":60}`)
	files["summary.json"] = text(`{"job":"job-1","rounds":2,"final_eval_loss":0.5,"final_measured":{"mse":0.5}}`)
	c, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	page := written(t, c)
	for _, want := range []string{"pipeline_tag: unconditional-image-generation", "library_name: starling", "type: mse\n",
		"A model that draws images (mlp) of 4 x 3 x 1 values", "starling model sample . --out", "at one of 60 times"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}
