package tuning

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/openai"
)

// Tuner writes the jobs that tune models.
type Tuner struct {
	*ExampleStore
	runs string // folder of the runs of the server
}

// NewTuner writes jobs about the files of a shelf, and about the models of a folder of runs and of the shelf's folder
// of data.
func NewTuner(s *ExampleStore, runs string) *Tuner { return &Tuner{s, runs} }

// Defaults of a job. Two workers train it, the fewest that can check each other, for they share a machine.
const (
	defaultEpochs = 3
	defaultBatch  = 8
	defaultSeed   = 42
	defaultBeta   = 0.1
	baseRate      = 3e-4
	pairRate      = 5e-5 // of preferences and rewards, which change a model less
	maxSequence   = 512
	roundSteps    = 20 // at most
	maxSteps      = 1_000_000
)

// Methods besides that which learns what examples say.
const (
	methodDPO           = "dpo"           // learns from pairs of answers, each an example of two conversations
	methodReinforcement = "reinforcement" // learns from the grades of answers that it draws
)

// Limits of metadata, which are OpenAI's.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

var suffixForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func wrong(param, detail, fix string) error {
	return &failure.Error{Status: http.StatusBadRequest, Code: "INVALID_VALUE", Detail: detail, Fix: fix, Param: param}
}

// Job returns the job that a request asks for, and reads all examples for it: their number of tokens is that of its
// steps. The error is a *failure.Error if the request is to blame.
func (t *Tuner) Job(r api.FineTuningRequest) (api.Spec, error) {
	if err := settle(&r); err != nil {
		return api.Spec{}, err
	}
	dir, err := t.model(r.Model)
	if err != nil {
		return api.Spec{}, err
	}
	b, err := readBase(dir)
	if err != nil {
		return api.Spec{}, &failure.Error{Status: http.StatusBadRequest, Code: "MODEL_UNUSABLE",
			Detail: "the model cannot be tuned: " + strings.ReplaceAll(err.Error(), dir, r.Model), Fix: "name another",
			Param: "model"}
	}
	read, course := t.text, text.course
	switch {
	case r.Method == nil:
	case r.Method.Type == methodDPO:
		read, course = t.pairs, text.pairCourse
	default:
		read, course = t.questions(r.Method.Reinforcement.Grader), text.rewardCourse
	}
	train, err := read(b, "training_file", r.TrainingFile)
	if err != nil {
		return api.Spec{}, err
	}
	var held text
	if r.ValidationFile != "" {
		if held, err = read(b, "validation_file", r.ValidationFile); err != nil {
			return api.Spec{}, err
		}
	}
	c, err := course(train, r, b.context, held)
	if err != nil {
		return api.Spec{}, err
	}
	return t.write(r, dir, c, train, held)
}

// settle replaces what a request leaves open, and refuses what has no meaning.
func settle(r *api.FineTuningRequest) error {
	h := &r.Hyperparameters
	if m := r.Method; m != nil {
		own := m.Supervised.Hyperparameters
		switch m.Type {
		case "supervised":
			r.Method = nil
		case methodDPO:
			d := m.DPO.Hyperparameters
			own = api.Hyperparameters{Epochs: d.Epochs, Batch: d.Batch, Rate: d.Rate}
		case methodReinforcement:
			if m.Reinforcement == nil {
				return wrong("method.reinforcement", "it is missing", "give it with a grader of the type string_check")
			}
			d := m.Reinforcement.Hyperparameters
			own = api.Hyperparameters{Epochs: d.Epochs, Batch: d.Batch, Rate: d.Rate}
		default:
			return wrong("method", fmt.Sprintf("the method is %.40q", m.Type),
				"use supervised, dpo or reinforcement: there is no other")
		}
		if *h != (api.Hyperparameters{}) && *h != own {
			return wrong("hyperparameters", "hyperparameters are given twice", "give those of the method alone")
		}
		*h = own
	}
	for _, p := range []struct {
		name            string
		value           *api.Auto
		otherwise, most api.Auto
		whole           bool
	}{{"n_epochs", &h.Epochs, defaultEpochs, 50, true}, {"batch_size", &h.Batch, defaultBatch, 256, true},
		{"learning_rate_multiplier", &h.Rate, 1, 1000, false}} {
		if *p.value == 0 {
			*p.value = p.otherwise
		}
		if v := float64(*p.value); v > float64(p.most) || p.whole && v != math.Trunc(v) {
			return wrong("hyperparameters."+p.name, fmt.Sprintf("%s is %v", p.name, v),
				fmt.Sprintf("give a number up to %v, or auto", p.most))
		}
	}
	if r.Method != nil && r.Method.Type == methodReinforcement {
		m, err := settledRewards(*r.Method.Reinforcement, *h)
		if err != nil {
			return err
		}
		r.Method = &api.TuningMethod{Type: methodReinforcement, Reinforcement: &m}
	} else if r.Method != nil {
		beta := r.Method.DPO.Hyperparameters.Beta
		if beta == 0 {
			beta = defaultBeta
		}
		if beta > 2 {
			return wrong("method.dpo.hyperparameters.beta", fmt.Sprintf("beta is %v", beta), "give a number up to 2, or auto")
		}
		r.Method = &api.TuningMethod{Type: methodDPO, DPO: api.DPOMethod{Hyperparameters: api.DPOHyperparameters{
			Epochs: h.Epochs, Batch: h.Batch, Rate: h.Rate, Beta: beta}}}
	}
	if n := int(h.Batch); n > 1 && n%2 != 0 {
		return wrong("hyperparameters.batch_size", fmt.Sprintf("batch_size is %d, and two workers share it", n),
			"give an even number, or 1")
	}
	if r.Suffix != "" && !suffixForm.MatchString(r.Suffix) {
		return wrong("suffix", "the suffix cannot be part of a name",
			"use 1 to 64 letters, digits, points, hyphens and underscores")
	}
	if n := len(r.Integrations); n > 0 {
		return wrong("integrations", fmt.Sprintf("there are %d integrations, such as %.40q", n, r.Integrations[0].Type),
			"leave them out: a job's metrics are at its events, its result file and /metrics")
	}
	if len(r.Metadata) > maxMetadata {
		return wrong("metadata", fmt.Sprintf("metadata has %d keys", len(r.Metadata)),
			fmt.Sprintf("give at most %d", maxMetadata))
	}
	for key, value := range r.Metadata {
		if utf8.RuneCountInString(key) > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataValue {
			return wrong("metadata", "metadata has a key or a value that is too long",
				fmt.Sprintf("give keys of %d and values of %d characters at most", maxMetadataKey, maxMetadataValue))
		}
	}
	if r.Seed == nil {
		seed := uint64(defaultSeed)
		r.Seed = &seed
	}
	return nil
}

// model is the folder of a model: of a finished run, by its identifier or the name of the tuned model, or below the
// data.
func (t *Tuner) model(name string) (string, error) {
	run := name
	if strings.HasPrefix(name, "ft:") {
		run = name[strings.LastIndexByte(name, ':')+1:]
	}
	for _, place := range [][2]string{{t.runs, run}, {t.data, name}} {
		below := filepath.FromSlash(place[1])
		if !filepath.IsLocal(below) || strings.HasPrefix(below, ".") || strings.Contains(place[1], "/.") {
			continue
		}
		dir := filepath.Join(place[0], below)
		if info, err := os.Stat(filepath.Join(dir, "config.json")); err == nil && info.Mode().IsRegular() {
			return dir, nil
		}
	}
	return "", &failure.Error{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND",
		Detail: fmt.Sprintf("there is no model %.80q", name),
		Fix:    "name one of GET /v1/models, or a model folder below the server's folder of data by its path", Param: "model"}
}

// base is what examples are written for.
type base struct {
	tokens  *tokenizer.Tokenizer
	context int
	// transcript writes a conversation, and says where the turns of the assistant are
	transcript func([]openai.Message) (string, []source.TextRange, error)
}

func readBase(dir string) (b base, err error) {
	c, err := folder.ReadConfig(os.DirFS(dir))
	if err != nil {
		return b, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return b, errors.New("it has no tokenizer.json that can be read")
	}
	if b.tokens, err = tokenizer.Parse(raw); err != nil {
		return b, err
	}
	b.context = c.Context()
	b.transcript, err = serve.Answers(dir)
	return b, err
}

// written is a conversation of example n of a file in the form of the model.
func (b base) written(talk []openai.Message, param string, n int, id string) (string, error) {
	document, _, err := b.marked(talk, param, n, id)
	return document, err
}

// marked is written, and where the turns of the assistant are.
func (b base) marked(talk []openai.Message, param string, n int, id string) (string, []source.TextRange, error) {
	document, said, err := b.transcript(talk)
	if err != nil {
		err = wrong(param, fmt.Sprintf("example %d of %s cannot be written for the model: %v", n, id, err),
			"change the example, or name another model")
	}
	return document, said, err
}

// text is a file of examples as a model reads it.
type text struct {
	path   string // below the folder of data
	tokens int    // with those that end documents; of pairs, of the longest conversation, and of questions, of the longest
	chats  bool   // some of its examples are conversations

	examples int      // that are pairs or questions
	answer   int      // tokens of the longest right answer to a question
	fields   []string // keys of a question that a function reads; nil: its answer
}

// text writes the documents of a file to a file in the same folder, named by their digest: another model may need
// them in another form.
func (t *Tuner) text(b base, param, id string) (out text, err error) {
	_, hasEnd := b.tokens.EndOfText()
	out.path, err = t.rewritten(param, id, "text", func(n int, e openai.Example) (any, error) {
		document := e.Prompt + e.Completion
		switch {
		case e.Preferred != nil:
			return nil, wrong(param, fmt.Sprintf("example %d of %s is a pair of answers", n, id), "use the method dpo")
		case e.Question != nil:
			return nil, wrong(param, fmt.Sprintf("example %d of %s is a question without its answer", n, id),
				"use the method reinforcement, or end the messages with the assistant")
		case len(e.Messages) > 0:
			out.chats = true
			if document, err = b.written(e.Messages, param, n, id); err != nil {
				return nil, err
			}
		}
		if document == "" {
			return nil, nil // a job leaves it out too
		}
		out.tokens += len(b.tokens.EncodeText(document))
		if hasEnd {
			out.tokens++
		}
		return map[string]string{"text": document}, nil
	})
	return out, err
}

// rewritten writes what each example of a file becomes to a file in the same folder, whose name ends in its digest:
// nothing for nil. It returns the path below the folder of data.
func (t *Tuner) rewritten(param, id, name string, becomes func(n int, e openai.Example) (any, error)) (path string,
	err error) {
	in, _, err := t.Open(id)
	if errors.Is(err, failure.ErrNotFound) {
		return "", &failure.Error{Status: http.StatusNotFound, Code: "NOT_FOUND",
			Detail: fmt.Sprintf("there is no file %.60q", id), Fix: "upload it with POST /v1/files", Param: param}
	}
	if err != nil {
		return "", err
	}
	defer in.Close()
	staged, err := os.CreateTemp(t.path(id), name+"-*.part")
	if err != nil {
		return "", err
	}
	defer os.Remove(staged.Name()) // it is gone where all went well
	digest := sha256.New()
	w := bufio.NewWriter(staged)
	n := 0
	_, err = openai.Examples(in, func(e openai.Example) error {
		n++
		object, err := becomes(n, e)
		if object == nil || err != nil {
			return err
		}
		raw, err := json.Marshal(object)
		_, _ = digest.Write(raw) // never fails
		_, failed := w.Write(append(raw, '\n'))
		return errors.Join(err, failed)
	})
	if err = errors.Join(err, w.Flush(), staged.Sync(), staged.Close()); err != nil {
		return "", err
	}
	name += "-" + hex.EncodeToString(digest.Sum(nil)[:12]) + ".jsonl"
	return filepath.ToSlash(filepath.Join(dirShelf, id, name)), os.Rename(staged.Name(), t.path(id, name))
}

// course is how a model is tuned on examples.
type course struct {
	task     string // lines of the job file; "": language
	length   int    // of a sequence
	steps    float64
	rate     float64 // that the multiplier is of
	heldPart float64 // of the examples that are held out
	interval int     // steps between two evaluations, which are at the end of rounds; 0: any
}

// round is how many steps a round has.
func (c course) round(steps int) int {
	round := min(steps, roundSteps)
	if c.interval == 0 {
		return round
	}
	for round = min(round, c.interval); c.interval%round != 0; {
		round--
	}
	return round
}

// course is that of texts. The validation text comes last, and exactly it is held out.
func (train text) course(r api.FineTuningRequest, context int, held text) (c course, err error) {
	c = course{length: min(maxSequence, context, train.tokens-1), rate: baseRate}
	if held.path != "" {
		c.length = min(c.length, held.tokens-1)
		c.heldPart = (float64(held.tokens) + 0.5) / float64(held.tokens+train.tokens)
	}
	if c.length < 1 {
		return c, wrong("training_file", "there is too little text to train on", "give more examples")
	}
	if held.tokens >= train.tokens {
		return c, wrong("validation_file", fmt.Sprintf("it has %d tokens, the training file %d", held.tokens, train.tokens),
			"give a smaller one")
	}
	c.steps = float64(r.Hyperparameters.Epochs) * float64(train.tokens) / float64(int(r.Hyperparameters.Batch)*c.length)
	return c, nil
}

// write writes the job file.
func (t *Tuner) write(r api.FineTuningRequest, dir string, c course, train, held text) (s api.Spec, err error) {
	batch, steps := int(r.Hyperparameters.Batch), max(1, math.Ceil(c.steps))
	if steps > maxSteps {
		return s, wrong("hyperparameters.n_epochs", fmt.Sprintf("it would be %.0f steps", steps),
			"give fewer epochs, or a larger batch_size")
	}
	round := c.round(int(steps))
	total := (int(steps) + round - 1) / round * round
	base, err := filepath.Rel(t.data, dir)
	if err != nil {
		return s, err
	}
	asked, err := json.Marshal(r)
	if err != nil {
		return s, err
	}
	form, err := plainLabel(dir, train.chats)
	if err != nil {
		return s, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: starling/v1\nkind: TrainingJob\nname: fine-tune\nlabels: {%s: %s%s}\nseed: %d\n%s",
		runs.LabelTuning, quote(string(asked)), form, *r.Seed, c.task)
	fmt.Fprintf(&b, "model:\n  base_model: %s\n  adapter: {lora: {r: 16, alpha: 32}}\ndatasets:\n",
		quote(filepath.ToSlash(base)))
	for _, file := range []text{train, held} {
		if file.path != "" {
			fields := ""
			if file.fields != nil {
				fields = ", reward_fields: " + quotedAll(file.fields)
			}
			fmt.Fprintf(&b, "- {path: %s, format: jsonl%s}\n", quote(file.path), fields)
		}
	}
	fmt.Fprintf(&b, "val_set_size: %v\nsequence_len: %d\n", c.heldPart, c.length)
	fmt.Fprintf(&b, "training: {max_steps: %d, global_batch_size: %d, learning_rate: %v, warmup_steps: %d}\n", total,
		batch, c.rate*float64(r.Hyperparameters.Rate), total/10)
	fmt.Fprintf(&b, "strategy: {sync_steps: %d, workers: %d}\n", round, min(2, batch))
	return api.Spec{Config: b.String()}, nil
}

// plainLabel is the label of a job that tunes a model on conversations without a template of its own; "" for another.
func plainLabel(dir string, chats bool) (string, error) {
	template, err := serve.TemplateOf(dir)
	if err != nil || template != "" || !chats {
		return "", err
	}
	return fmt.Sprintf(", %s: %s", serve.LabelTemplate, serve.Plain), nil
}

// quote writes a text as YAML: a string of JSON is one.
func quote(s string) string {
	raw, _ := json.Marshal(s) // it always is one
	return string(raw)
}

// quotedAll writes texts as a list in YAML.
func quotedAll(list []string) string {
	raw, _ := json.Marshal(list)
	return string(raw)
}

// Request returns what a run of the server was asked for, or fails with failure.ErrNotFound if it tunes nothing.
func (t *Tuner) Request(run string) (r api.FineTuningRequest, err error) {
	if !filepath.IsLocal(run) || strings.ContainsAny(run, `/\`) {
		return r, failure.ErrNotFound
	}
	path := filepath.Join(t.runs, run, "job.yaml")
	source, err := os.ReadFile(path)
	if err != nil {
		return r, failure.ErrNotFound
	}
	j, err := job.Parse(source, path)
	if err != nil || j.Labels[runs.LabelTuning] == "" || json.Unmarshal([]byte(j.Labels[runs.LabelTuning]), &r) != nil ||
		r.Seed == nil {
		return r, failure.ErrNotFound
	}
	return r, nil
}
