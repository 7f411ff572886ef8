// Package reasoning finds answers by more than one text of models: by a vote over many answers, by a search over steps,
// and with tools that a model calls. It is an openai.Model over another, which writes the texts, on this machine or on
// a network.
//
// The same models, request and seed give the same answer: seeds and budgets of the texts follow from the request alone,
// not from which of them ends first.
package reasoning

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/openai/strategy"
)

// atOnce bounds the texts of a request that are written at the same time.
const atOnce = 16

// Model is an openai.Model that takes the Strategy of a request.
type Model struct {
	openai.Model
	tools map[string]Tool
	blind bool // it tells no probabilities
}

// NewVotes returns a model over another that tells no probabilities, and may render conversations elsewhere: it takes
// votes alone, of which equal ones are decided by the order of the texts.
func NewVotes(m openai.Model) *Model { return &Model{Model: m, blind: true} }

// New returns a model over another, with tools. The error is for two tools of one name.
func New(m openai.Model, tools ...Tool) (*Model, error) {
	named := map[string]Tool{}
	for _, t := range tools {
		if _, known := named[t.Name]; known {
			return nil, fmt.Errorf("two tools are called %q", t.Name)
		}
		named[t.Name] = t
	}
	return &Model{Model: m, tools: named}, nil
}

// Generate answers a request, with a Strategy by as many texts as it takes; the answer is then one piece.
func (m *Model) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	if r.Strategy == nil {
		return m.Model.Generate(ctx, r, emit)
	}
	s := *r.Strategy
	r.Strategy = nil
	a, err := m.attempt(r, s)
	if err != nil {
		return openai.Result{}, err
	}
	var d draft
	if s.Search != nil {
		d, err = a.search(ctx, *s.Search)
	} else {
		d, err = a.vote(ctx)
	}
	if err != nil {
		return openai.Result{}, err
	}
	out := openai.Result{PromptTokens: a.prompts, Tokens: a.tokens, Finish: d.finish,
		Trace: &strategy.Trace{Votes: a.votes, Calls: d.calls, Texts: a.texts, Left: a.left}}
	if d.shown == "" {
		return out, nil
	}
	return out, emit(openai.Piece{Text: d.shown})
}

// attempt is the answer to one request.
type attempt struct {
	*Model
	how      strategy.Options
	requests []openai.Request // one for each model
	tools    map[string]Tool  // that may be called

	prompts, tokens, texts int // counts of all texts
	votes                  []strategy.Vote
	left                   []int // stages that any of the texts was continued without
}

// attempt makes the request of each model.
func (m *Model) attempt(r openai.Request, s strategy.Options) (*attempt, error) {
	a := &attempt{Model: m, how: s, tools: map[string]Tool{}}
	for _, name := range s.Tools {
		t, ok := m.tools[name]
		if !ok {
			return nil, fmt.Errorf("%w: this server has no tool %.40q; it has %s", openai.ErrRequest, name, m.names())
		}
		a.tools[name] = t
	}
	models := s.Models
	if len(models) == 0 {
		models = []string{r.Model}
	}
	if r.Tokens != nil {
		return nil, fmt.Errorf("%w: an answer by more than one text has a prompt of text, not of tokens",
			openai.ErrRequest)
	}
	if r.Temperature == 0 && (s.Answers > 1 || s.Search != nil && s.Search.Branches > 1) {
		return nil, fmt.Errorf("%w: at temperature 0 all texts of a model are the same; give a temperature above 0",
			openai.ErrRequest)
	}
	if m.blind && s.Search != nil {
		return nil, fmt.Errorf("%w: a search needs probabilities, which this server does not have", openai.ErrRequest)
	}
	for _, name := range models {
		if !slices.ContainsFunc(m.Models(), func(i openai.Info) bool { return i.Name == name }) {
			return nil, fmt.Errorf("%w as %.100q", openai.ErrModel, name)
		}
		one := r
		one.Model, one.Likely = name, 0
		one.Stops = slices.Clone(r.Stops)
		if m.blind {
			one.Likely = -1
		}
		if r.Messages != nil {
			prompt, stops, err := m.Prompt(name, r.Messages)
			if err != nil {
				return nil, err
			}
			one.Prompt, one.Stops = prompt, append(one.Stops, stops...)
		}
		a.requests = append(a.requests, one)
	}
	return a, nil
}

// all writes texts at the same time, and counts them in their order.
func (a *attempt) all(ctx context.Context, drafts []draft,
	write func(ctx context.Context, i int, d *draft) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range drafts {
		group.Go(func() error { return write(ctx, i, &drafts[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, d := range drafts {
		a.prompts, a.tokens, a.texts = max(a.prompts, d.prompt), a.tokens+d.spent, a.texts+1
		a.left = (&strategy.Trace{Left: d.left}).Join(a.left)
	}
	return nil
}

// errCut ends a text from within.
var errCut = errors.New("the text is long enough")
