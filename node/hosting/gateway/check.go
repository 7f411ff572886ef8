package gateway

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

const (
	dirConflicts = "conflicts"
	million      = 1_000_000
)

// Conflict is the record of a request to which two providers gave different answers.
type Conflict struct {
	Model   uint64          `json:"model"`
	Request json.RawMessage `json:"request"`
	Answers []Answer        `json:"answers"`
	Liars   []string        `json:"liars"`   // providers that are not asked any more; none: it is not decided
	Decided string          `json:"decided"` // local, third or undecided
}

// Answer is the answer of one provider.
type Answer struct {
	Provider string `json:"provider"`
	URL      string `json:"url"`
	Text     string `json:"text"`
	Prompt   int    `json:"prompt_tokens"`
	Tokens   int    `json:"tokens"`
	Finish   string `json:"finish"`
	Receipt  []byte `json:"receipt,omitempty"` // canonical bytes of protocol/answer.Signed
}

func (a Answer) same(b Answer) bool {
	return a.Text == b.Text && a.Prompt == b.Prompt && a.Tokens == b.Tokens && a.Finish == b.Finish
}

func (s served) answer(text string) Answer {
	return Answer{Provider: s.place.Provider, URL: s.place.URL, Text: text, Prompt: s.made.PromptTokens,
		Tokens: s.made.Tokens, Finish: s.made.Finish, Receipt: s.settlement.Receipt}
}

func makeDir(dir string) error { return os.MkdirAll(filepath.Join(dir, dirConflicts), 0o700) }

// readConflicts excludes the providers that were found to lie before.
func (g *Gateway) readConflicts() error {
	dir := filepath.Join(g.config.Dir, dirConflicts)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		var c Conflict
		if err != nil || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		g.conflict++
		if err = folder.ReadJSON(filepath.Join(dir, e.Name()), &c); err == nil && c.Model == g.config.Model.ID {
			for _, liar := range c.Liars {
				g.router.exclude(liar, "a wrong answer: "+e.Name())
			}
		}
	}
	return err
}

// draw has an answer checked, at random. The draw is this process's own: no provider knows which answers are checked.
func (g *Gateway) draw(r openai.Request, s served, text string, list []hosting.Place) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	if binary.LittleEndian.Uint64(random[:])%million < uint64(g.config.CheckPPM) && len(list) > 1 {
		g.checks.Go(func() { g.check(g.life, r, s.answer(text)) })
	}
}

// check lets another provider write an answer again. If it is another one, the conflict is decided.
func (g *Gateway) check(ctx context.Context, r openai.Request, first Answer) {
	second, err := g.again(ctx, r, first.Provider)
	if err != nil {
		g.config.Log.Warn("an answer is not checked", "provider", first.Provider, "error", err)
		return
	}
	g.count(func(c *Counts) { c.Checked++ })
	if !first.same(second) {
		g.decide(ctx, r, first, second)
	}
}

// disagree decides a conflict of two providers, of which one began a text that the other does not continue.
func (g *Gateway) disagree(ctx context.Context, r openai.Request, by, other served) {
	var answers []Answer
	for _, s := range []served{by, other} {
		a, err := g.whole(ctx, s.place, r)
		if err != nil {
			g.config.Log.Warn("a conflict is not decided", "provider", s.place.Provider, "error", err)
			return
		}
		answers = append(answers, a)
	}
	if !answers[0].same(answers[1]) {
		g.decide(ctx, r, answers[0], answers[1])
	}
}

// whole is the whole answer of a provider.
func (g *Gateway) whole(ctx context.Context, p hosting.Place, r openai.Request) (Answer, error) {
	var b strings.Builder
	s, err := g.ask(ctx, p, r, func(piece string) error {
		b.WriteString(piece)
		return nil
	})
	return s.answer(b.String()), err
}

// again is the whole answer of a provider that is none of some.
func (g *Gateway) again(ctx context.Context, r openai.Request, not ...string) (Answer, error) {
	list, err := g.router.candidates(ctx)
	if err != nil {
		return Answer{}, err
	}
	err = errors.New("no other provider hosts the model")
	for _, p := range list {
		if slices.Contains(not, p.Provider) {
			continue
		}
		var a Answer
		if a, err = g.whole(ctx, p, r); err == nil || ctx.Err() != nil {
			return a, err
		}
		g.router.failed(p.Provider)
	}
	return Answer{}, err
}

// valid is a text as it arrives over JSON: bytes that are no UTF-8 are replaced, each by itself.
func valid(text string) string { return string([]rune(text)) }

// decide finds the liar of two providers by the model itself, or by a third one, and ends its use.
func (g *Gateway) decide(ctx context.Context, r openai.Request, a, b Answer) {
	_, raw, err := body(g.config.Model.Name, r)
	if err != nil {
		g.config.Log.Error("a conflict has no request", "error", err)
		return
	}
	c := Conflict{Model: g.config.Model.ID, Request: raw, Answers: []Answer{a, b}, Decided: "undecided", Liars: []string{}}
	right, how, err := g.right(ctx, r, a, b)
	if err != nil {
		g.config.Log.Warn("a conflict is not decided", "error", err)
	} else {
		var liars []string
		for _, x := range []Answer{a, b} {
			if !x.same(right) {
				liars = append(liars, x.Provider)
			}
		}
		if len(liars) == 1 || how == "local" {
			c.Liars, c.Decided = liars, how
		}
		if how == "third" {
			c.Answers = append(c.Answers, right)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.Conflicts++
	name := ""
	for name == "" || err == nil {
		name = fmt.Sprintf("%06d.json", g.conflict)
		g.conflict++
		if _, err = os.Stat(filepath.Join(g.config.Dir, dirConflicts, name)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	path := filepath.Join(g.config.Dir, dirConflicts, name)
	if err := folder.WriteJSON(path, c); err != nil {
		g.config.Log.Error("a conflict is not recorded", "error", err)
	}
	for _, liar := range c.Liars {
		g.exclude(liar, "a wrong answer: "+name)
	}
	g.config.Log.Warn("two providers gave different answers", "first", a.Provider, "second", b.Provider, "decided",
		c.Decided, "liars", c.Liars, "record", path)
}

// right is the right answer to a request: that of the model itself, or that of a third provider.
func (g *Gateway) right(ctx context.Context, r openai.Request, a, b Answer) (Answer, string, error) {
	m := g.config.Local
	has := func(x openai.Info) bool { return x.Name == g.config.Served }
	if m == nil || !slices.ContainsFunc(m.Models(), has) { // such as an adapter whose folder is not here
		third, err := g.again(ctx, r, a.Provider, b.Provider)
		return third, "third", err
	}
	r.Model = g.config.Served
	if r.Messages != nil {
		var stops []string
		var err error
		if r.Prompt, stops, err = m.Prompt(r.Model, r.Messages); err != nil {
			return Answer{}, "", err
		}
		r.Stops = append(stops, r.Stops...)
	}
	var text strings.Builder
	made, err := m.Generate(ctx, r, func(p openai.Piece) error {
		text.WriteString(p.Text)
		return nil
	})
	return Answer{Text: valid(text.String()), Prompt: made.PromptTokens, Tokens: made.Tokens,
		Finish: made.Finish}, "local", err
}
