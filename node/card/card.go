// Package card writes a model card: the README.md of a model's folder, with the front matter that Hugging Face reads,
// saying what the model is, on which data and by whom it was trained, and how anybody can check it. It takes all of it
// from the files of the folder and adds nothing.
package card

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/diffusion"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/gnn"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/node/examples"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
)

// File is the name of a card.
const File = "README.md"

// ErrFolder wraps the reason why no card can be made of a folder.
var ErrFolder = errors.New("the folder is not one of a finished run")

// Card is what is known of a model.
type Card struct {
	Name       string
	Job        string
	Language   *architecture.Config // the model, if it is a language model
	Classes    labels               // the model, if it classifies
	Images     *vision.Network      // Classes, if these are of images
	Nodes      *gnn.Network         // Classes, if these are of the nodes of a graph
	Texts      *textclass.Network   // Classes, if these are of texts
	Ranks      bool                 // Texts has one class: it is a reward model
	Vectors    *embed.Network       // the model, if it gives vectors to texts
	Drawn      *diffusion.Network   // the model, if it draws images
	Kind       string               // architecture
	Parameters int
	Adapter    bool
	License    string
	BaseModel  string
	Data       []spec.Dataset
	Manifest   string   // CID of the list of the data's shards
	Shards     []string // CIDs
	Graph      string   // CID of the graph whose nodes the model classifies; "": there is none
	Summary    Summary
	Perplexity float64 // 0 if nothing was held out
	Lineage    []Checkpoint
	People     []Contributor
	Verified   *Verification
}

// labels are the classes of a model.
type labels interface{ Labels() []string }

// Summary is what is taken of summary.json.
type Summary struct {
	Job           string             `json:"job"`
	Name          string             `json:"name"`
	Rounds        int                `json:"rounds"`
	Workers       int                `json:"workers"`
	Steps         int                `json:"steps"`
	Tokens        uint64             `json:"tokens"`
	FirstEvalLoss float64            `json:"first_eval_loss"`
	FinalEvalLoss float64            `json:"final_eval_loss"`
	FinalMeasured map[string]float64 `json:"final_measured"`
	BitsPerByte   float64            `json:"bits_per_byte"`
	Diverged      string             `json:"diverged"`
	Audits        struct {
		Drawn  int `json:"drawn"`
		Passed int `json:"passed"`
		Failed int `json:"failed"`
	} `json:"audits"`
	Disputes  []json.RawMessage `json:"disputes"`
	PaidUzen  uint64            `json:"paid_uzen"`
	StateRoot string            `json:"state_root"`
}

// Checkpoint is one line of the lineage.
type Checkpoint struct {
	Round      uint32 `json:"round"`
	StateRoot  string `json:"state_root"`
	Checkpoint string `json:"checkpoint"`
	Signers    []struct {
		ID string `json:"id"`
	} `json:"signers"`
}

// Contributor is an account that was paid for work on the model, or signed a checkpoint of it.
type Contributor struct {
	ID       string
	Units    int    // trained and paid
	Audits   int    // of units of others, paid
	Uzen     uint64 // earned by both, in grains of Coin
	Coin     coin.Coin
	Attested int // checkpoints signed
}

// Verification is the result of `starling job verify`.
type Verification struct {
	Rounds    int
	Units     int
	StateRoot string
}

// Limits of the files of a folder, which may be a stranger's.
const (
	maxFile = 64 << 20
	maxLine = 1 << 20
)

// Read collects what the folder of a finished run says. The error wraps ErrFolder.
func Read(fsys fs.FS) (*Card, error) {
	c := &Card{}
	var run struct {
		ID        string   `json:"id"`
		Overrides []string `json:"overrides"`
		Blobs     struct {
			Manifest string   `json:"manifest"`
			Shards   []string `json:"shards"`
			Frozen   string   `json:"frozen"`
		} `json:"blobs"`
	}
	for name, into := range map[string]any{"run.json": &run, "summary.json": &c.Summary} {
		if err := readJSON(fsys, name, into); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFolder, name, err)
		}
	}
	source, err := readFile(fsys, "job.yaml")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	j, err := job.Parse(source, "job.yaml", run.Overrides...)
	if err != nil {
		return nil, fmt.Errorf("%w: job.yaml: %w", ErrFolder, err)
	}
	if err := c.model(fsys, j); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrFolder, err)
	}
	c.Name, c.Job, c.Manifest, c.Shards = j.Name, run.ID, run.Blobs.Manifest, run.Blobs.Shards
	if c.Nodes != nil {
		c.Graph = run.Blobs.Frozen
	}
	c.License, c.BaseModel, c.Data, c.Adapter = j.Output.License, j.Model.BaseModel, j.Datasets, j.Model.Adapter != nil
	if c.Summary.FinalEvalLoss > 0 && j.PredictsText() {
		c.Perplexity = math.Exp(c.Summary.FinalEvalLoss)
	}
	if c.Lineage, err = readLines[Checkpoint](fsys, "lineage.jsonl"); err != nil {
		return nil, fmt.Errorf("%w: lineage.jsonl: %w", ErrFolder, err)
	}
	if err := c.contributors(fsys); err != nil {
		return nil, fmt.Errorf("%w: receipts.jsonl: %w", ErrFolder, err)
	}
	return c, nil
}

// model reads what the model is.
func (c *Card) model(fsys fs.FS, j *job.Job) error {
	if j.ReadsText() {
		config, err := folder.ReadConfig(fsys)
		if err != nil {
			return err
		}
		c.Language, c.Kind, c.Parameters = &config, config.Architecture(), config.Parameters()
		return nil
	}
	raw, err := readFile(fsys, "config.json")
	if err != nil {
		return err
	}
	n, err := examples.Read(j, raw)
	if err != nil {
		return err
	}
	switch n := n.(type) {
	case vision.Network:
		c.Images = &n
	case gnn.Network:
		c.Nodes = &n
	case textclass.Network:
		c.Texts, c.Ranks = &n, len(n.Labels()) == 1
	case embed.Network:
		c.Vectors = &n
	case diffusion.Network:
		c.Drawn = &n
	}
	c.Classes, _ = n.(labels)
	c.Kind, c.Parameters = n.Architecture(), n.Parameters()
	return nil
}

// contributors adds up the receipts and the signatures, who earned most first.
func (c *Card) contributors(fsys fs.FS) error {
	receipts, err := readLines[struct {
		Who    string      `json:"who"`
		Kind   reward.Kind `json:"kind"`
		Amount uint64      `json:"amount"`
		Coin   coin.Coin   `json:"coin"`
	}](fsys, "receipts.jsonl")
	if err != nil {
		return err
	}
	people, paid := map[string]*Contributor{}, coin.Coin{} // the coin of the job
	of := func(id string) *Contributor {
		if people[id] == nil {
			people[id] = &Contributor{ID: id}
		}
		return people[id]
	}
	for _, r := range receipts {
		if r.Who == "" { // what goes to the pool, or back
			continue
		}
		p := of(r.Who)
		switch {
		case r.Kind == reward.Work && r.Amount > 0:
			p.Units++
			p.Uzen, paid = p.Uzen+r.Amount, r.Coin
		case r.Kind == reward.Audit && r.Amount > 0:
			p.Audits++
			p.Uzen, paid = p.Uzen+r.Amount, r.Coin
		}
	}
	for _, l := range c.Lineage {
		for _, s := range l.Signers {
			of(s.ID).Attested++
		}
	}
	for _, p := range people {
		if p.Uzen > 0 || p.Attested > 0 {
			p.Coin = paid
			c.People = append(c.People, *p)
		}
	}
	slices.SortFunc(c.People, func(a, b Contributor) int {
		if a.Uzen != b.Uzen {
			if a.Uzen > b.Uzen {
				return -1
			}
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	return nil
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return text, err
}

func readJSON(fsys fs.FS, name string, into any) error {
	text, err := readFile(fsys, name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// readLines reads a file of one object a line; a missing one has none.
func readLines[T any](fsys fs.FS, name string) (all []T, err error) {
	text, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, maxLine)
	for s.Scan() {
		var one T
		if err := json.Unmarshal(s.Bytes(), &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, s.Err()
}

//go:embed card.md
var page string

var card = template.Must(template.New(File).Funcs(template.FuncMap{"code": code,
	"grouped": grouped}).Parse(page))

// Write writes the card: front matter in YAML, then Markdown. The same card gives the same bytes.
func (c *Card) Write(w io.Writer) error {
	front, err := yaml.Marshal(c.front())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "---\n%s---\n\n", front); err != nil {
		return err
	}
	return card.Execute(w, c)
}

// front is the front matter, in the terms of Hugging Face.
func (c *Card) front() any {
	type metric struct {
		Type  string  `yaml:"type"`
		Value float64 `yaml:"value"`
	}
	type named struct {
		Name string `yaml:"name"`
		Type string `yaml:"type"`
	}
	type result struct {
		Task    named    `yaml:"task"`
		Dataset named    `yaml:"dataset"`
		Metrics []metric `yaml:"metrics"`
	}
	type index struct {
		Name    string   `yaml:"name"`
		Results []result `yaml:"results"`
	}
	word, name := license(c.License)
	front := struct {
		License   string   `yaml:"license,omitempty"`
		Name      string   `yaml:"license_name,omitempty"`
		BaseModel string   `yaml:"base_model,omitempty"`
		Library   string   `yaml:"library_name"`
		Pipeline  string   `yaml:"pipeline_tag"`
		Tags      []string `yaml:"tags"`
		Index     []index  `yaml:"model-index,omitempty"`
	}{License: word, Name: name, BaseModel: repository(c.BaseModel), Library: "transformers",
		Pipeline: "text-generation", Tags: []string{"starling", c.Kind}}
	if c.Adapter {
		front.Tags = append(front.Tags, "lora")
	}
	if c.Classes != nil {
		task, held := named{"Image classification", "image-classification"}, "held-out images of the job"
		switch front.Library, front.Pipeline = "starling", task.Type; {
		case c.Texts != nil:
			task, held = named{"Text classification", "text-classification"}, "held-out texts of the job"
			front.Library, front.Pipeline = "transformers", task.Type
			if c.Ranks {
				front.Tags = append(front.Tags, "reward-model")
			}
		case c.Nodes != nil:
			task, held = named{"Node classification", "node-classification"}, "held-out nodes of the job"
			front.Pipeline = "graph-ml" // as the hub calls it
		}
		if accuracy, ok := c.Summary.FinalMeasured["accuracy"]; ok {
			front.Index = []index{{c.Name, []result{{task, named{held, c.Job},
				[]metric{{"loss", c.Summary.FinalEvalLoss}, {"accuracy", accuracy}}}}}}
		}
	}
	if c.Vectors != nil {
		front.Library, front.Pipeline = "sentence-transformers", "sentence-similarity"
		if recall, ok := c.Summary.FinalMeasured["recall_at_1"]; ok {
			front.Index = []index{{c.Name, []result{{named{"Information retrieval", "information-retrieval"},
				named{"held-out pairs of texts of the job", c.Job}, []metric{{"loss", c.Summary.FinalEvalLoss},
					{"recall_at_1", recall}}}}}}
		}
	}
	if c.Drawn != nil {
		front.Library, front.Pipeline = "starling", "unconditional-image-generation"
		if mse, ok := c.Summary.FinalMeasured["mse"]; ok {
			front.Index = []index{{c.Name, []result{{named{"Image generation", "unconditional-image-generation"},
				named{"held-out images of the job", c.Job}, []metric{{"mse", mse}}}}}}
		}
	}
	if c.Perplexity > 0 {
		front.Index = []index{{c.Name, []result{{named{"Text generation", "text-generation"},
			named{"held-out text of the job", c.Job},
			[]metric{{"loss", c.Summary.FinalEvalLoss}, {"perplexity", c.Perplexity}}}}}}
	}
	return front
}

// repositoryName is how the Hub names a model.
var repositoryName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}$`)

// repository is a name of a model on the Hub, or "" for a folder: the Hub refuses a card whose base_model is none. A
// folder with the two parts of such a name is taken for it, as libraries do.
func repository(name string) string {
	if repositoryName.MatchString(name) && !strings.Contains(name, "..") {
		return name
	}
	return ""
}

// code puts text of strangers into Markdown as code, where it can be nothing else.
func code(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '`' || r == '|' || r < ' ' {
			return ' '
		}
		return r
	}, s)
	return "`" + s + "`"
}

// grouped is a number with commas between its thousands.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// First is the first checkpoint after the initial one, if there is any; Last the last.
func (c *Card) First() *Checkpoint { return c.at(0) }

// Last is the checkpoint that the model is.
func (c *Card) Last() *Checkpoint { return c.at(len(c.Lineage) - 1) }

func (c *Card) at(i int) *Checkpoint {
	if i < 0 || i >= len(c.Lineage) {
		return nil
	}
	return &c.Lineage[i]
}
