// Package reasoning measures how often answers are right that are found by more than one text: by a vote, by a search
// over steps, and with a tool. It trains the models that answer, each as a job on an embedded network. It is the engine
// of starling bench reasoning.
package reasoning

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/reasoning/task"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/reasoning"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/openai/strategy"
)

// Options configure the measurement.
type Options struct {
	Questions int // of each task, none of which the models were trained on
	Steps     int // of training
	Threads   int
	Progress  func(string)
}

// Row is a way to answer.
type Row struct {
	Task    string  `json:"task"`
	Name    string  `json:"name"`
	Right   float64 `json:"right"`  // share of the questions
	Tokens  float64 `json:"tokens"` // that were drawn for a question, on average
	Seconds float64 `json:"seconds"`
}

// Report is the measurement.
type Report struct {
	Questions int             `json:"questions"`
	Rows      []Row           `json:"rows"`
	Bars      []benchmark.Bar `json:"bars"`
}

const (
	examples    = 20_000
	temperature = 1
	answers     = 8
)

// Measure trains two models for the task of steps and one for the task of calls, and asks them. Seconds are by the
// clock.
func Measure(ctx context.Context, o Options) (*Report, error) {
	for name, n := range map[string]int{"questions": o.Questions, "steps": o.Steps, "threads": o.Threads} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "starling-reasoning-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	m := &measurement{Options: o, dir: dir, report: &Report{Questions: o.Questions}}
	if err := m.steps(ctx); err != nil {
		return nil, err
	}
	return m.report, m.calls(ctx)
}

// measurement is one under way.
type measurement struct {
	Options
	dir    string
	report *Report
}

// steps asks for sums by steps.
func (m *measurement) steps(ctx context.Context) error {
	path := filepath.Join(m.dir, "steps.jsonl")
	asked, err := task.Steps.Write(path, examples, m.Questions, 1)
	if err != nil {
		return err
	}
	models := &several{}
	defer models.close()
	for i, name := range []string{"a", "b"} {
		if err := m.train(ctx, task.Steps, path, name, uint64(i+1), models); err != nil {
			return err
		}
	}
	model, err := reasoning.New(models)
	if err != nil {
		return err
	}
	vote := &strategy.Options{Answers: answers, Vote: strategy.VoteNumber}
	both := &strategy.Options{Answers: answers / 2, Models: []string{"a", "b"}, Vote: strategy.VoteNumber}
	search := &strategy.Options{Answers: 1, Search: &strategy.Search{Beams: 4, Branches: 4, Steps: 4, Separator: "\n"}}
	var right [5]float64
	for i, way := range []struct {
		name string
		heat float64
		how  *strategy.Options
	}{
		{"one answer", temperature, nil},
		{"the likeliest tokens", 0, nil},
		{"a vote over 8 answers", temperature, vote},
		{"a vote over 4 answers of each of 2 models", temperature, both},
		{"a search over steps, 4 beams of 4 branches", temperature, search},
	} {
		if right[i], err = m.ask(ctx, model, task.Steps, way.name, asked, way.heat, way.how); err != nil {
			return err
		}
	}
	m.report.Bars = append(m.report.Bars,
		benchmark.AtLeast("a vote over 8 answers, above one answer", right[2]-right[0], 0.05),
		benchmark.AtLeast("a vote over 8 answers of 2 models, above one answer", right[3]-right[0], 0.05),
		benchmark.AtLeast("a search over steps, above one answer", right[4]-right[0], 0.05))
	return nil
}

// calls asks for sums by a tool.
func (m *measurement) calls(ctx context.Context) error {
	path := filepath.Join(m.dir, "calls.jsonl")
	asked, err := task.Calls.Write(path, examples, m.Questions, 2)
	if err != nil {
		return err
	}
	models := &several{}
	defer models.close()
	if err := m.train(ctx, task.Calls, path, "a", 1, models); err != nil {
		return err
	}
	add, err := reasoning.NewTool("add", task.Adder)
	if err != nil {
		return err
	}
	model, err := reasoning.New(models, add)
	if err != nil {
		return err
	}
	alone, err := m.ask(ctx, model, task.Calls, "the model writes the result of the call", asked, 0, nil)
	if err != nil {
		return err
	}
	tool := &strategy.Options{Answers: 1, Tools: []string{"add"}}
	right, err := m.ask(ctx, model, task.Calls, "the tool answers the call", asked, 0, tool)
	if err != nil {
		return err
	}
	m.report.Bars = append(m.report.Bars, benchmark.AtLeast("right with a tool", right, 0.95),
		benchmark.AtLeast("with a tool, above the model alone", right-alone, 0.3))
	return nil
}

// train trains a model and loads it under a name.
func (m *measurement) train(ctx context.Context, t task.Task, examples, name string, seed uint64,
	models *several) error {
	m.Progress("training model " + name + " for the task " + t.Name)
	out := filepath.Join(m.dir, t.Name+"-"+name)
	j, err := job.Parse([]byte(t.Job(examples, out, m.Steps, seed)), filepath.Join(m.dir, t.Name+".yaml"))
	if err != nil {
		return err
	}
	if _, err := node.Train(ctx, consumer.Options{Job: j, Dir: out}); err != nil {
		return err
	}
	e, err := serve.Open(out, serve.Options{Name: name, Threads: m.Threads, Waiting: 1024})
	if err == nil {
		models.engines = append(models.engines, e)
	}
	return err
}

// ask returns the share of right answers, and adds a row.
func (m *measurement) ask(ctx context.Context, model openai.Model, t task.Task, name string, asked []task.Question,
	heat float64, how *strategy.Options) (float64, error) {
	m.Progress("asking: " + name)
	begun, right, tokens := time.Now(), 0, 0
	for i, q := range asked {
		r := openai.Request{Model: "a", Prompt: q.Prompt, Stops: []string{"."}, Temperature: heat, TopP: 1,
			Seed: uint64(i), Max: t.Length, Likely: -1}
		if how != nil {
			s := *how
			s.Budget = 1 << 14
			r.Strategy = &s
		}
		var text strings.Builder
		out, err := model.Generate(ctx, r, func(p openai.Piece) error {
			text.WriteString(p.Text)
			return nil
		})
		if err != nil {
			return 0, err
		}
		if task.Last(text.String()) == q.Answer {
			right++
		}
		tokens += out.Tokens
	}
	n := float64(len(asked))
	row := Row{Task: t.Name, Name: name, Right: float64(right) / n, Tokens: benchmark.Rounded(float64(tokens)/n, 1),
		Seconds: benchmark.Rounded(time.Since(begun).Seconds(), 1)}
	m.report.Rows = append(m.report.Rows, row)
	m.Progress(fmt.Sprintf("%.3f are right", row.Right))
	return row.Right, nil
}

// several is an openai.Model of several engines, which all stay in memory.
type several struct{ engines []*serve.Engine }

func (s *several) close() {
	for _, e := range s.engines {
		e.Close()
	}
}

// Models lists those of the engines.
func (s *several) Models() (all []openai.Info) {
	for _, e := range s.engines {
		all = append(all, e.Models()...)
	}
	return all
}

func (s *several) engine(name string) (*serve.Engine, error) {
	for _, e := range s.engines {
		if e.Models()[0].Name == name {
			return e, nil
		}
	}
	return nil, openai.ErrModel
}

// Prompt renders a conversation by the chat template of a model.
func (s *several) Prompt(name string, talk []openai.Message) (string, []string, error) {
	e, err := s.engine(name)
	if err != nil {
		return "", nil, err
	}
	return e.Prompt(name, talk)
}

// Generate continues a prompt by a model.
func (s *several) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	e, err := s.engine(r.Model)
	if err != nil {
		return openai.Result{}, err
	}
	return e.Generate(ctx, r, emit)
}
