package reasoning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/openai/strategy"
)

// author is a model that writes the text of a function, a word at a time.
type author struct {
	write func(r openai.Request) (text string, log float64)
	calls *atomic.Int64
}

func (author) Models() []openai.Info { return []openai.Info{{Name: "a"}, {Name: "b"}} }

func (author) Prompt(name string, talk []openai.Message) (string, []string, error) {
	return name + ":" + talk[len(talk)-1].Content + "|", nil, nil
}

func (m author) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	out := openai.Result{PromptTokens: len(r.Prompt), Finish: "stop"}
	if r.Model != "a" && r.Model != "b" {
		return out, openai.ErrModel
	}
	if m.calls != nil {
		m.calls.Add(1)
	}
	text, log := m.write(r)
	for _, word := range strings.SplitAfter(text, " ") {
		if word == "" {
			continue
		}
		if out.Tokens == r.Max {
			out.Finish = "length"
			break
		}
		out.Tokens++
		if err := emit(openai.Piece{Text: word, Tokens: []openai.Token{{Text: word, Log: log}}}); err != nil {
			return out, err
		}
	}
	return out, ctx.Err()
}

// ask answers one request.
func ask(t *testing.T, m openai.Model, r openai.Request, tools ...Tool) (string, openai.Result, error) {
	t.Helper()
	model, err := New(m, tools...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Model == "" {
		r.Model = "a"
	}
	if r.Strategy != nil && r.Strategy.Budget == 0 {
		r.Strategy.Budget = 4096
	}
	var text string
	out, err := model.Generate(t.Context(), r, func(p openai.Piece) error {
		text += p.Text
		return nil
	})
	return text, out, err
}

func TestVoteChoosesTheAnswerOfMost(t *testing.T) {
	answers := []string{"so 4", "thus 5", "it is 5", "hence 4", "is 5", "7"}
	var next atomic.Int64
	m := author{write: func(r openai.Request) (string, float64) {
		i := int(next.Add(1)-1) % len(answers)
		return "first 1 then 2\n" + answers[i], -float64(len(answers[i]))
	}}
	s := &strategy.Options{Answers: 6, Vote: strategy.VoteNumber}
	text, out, err := ask(t, m, openai.Request{Prompt: "2+3", Temperature: 1, Strategy: s})
	if err != nil {
		t.Fatal(err)
	}
	if text != "first 1 then 2\nis 5" { // the likeliest of those that end with 5
		t.Errorf("the answer is %q", text)
	}
	if v := out.Trace.Votes; len(v) != 3 || v[0] != (strategy.Vote{Answer: "5", Count: 3}) || v[1].Answer != "4" ||
		v[1].Count != 2 {
		t.Errorf("the votes are %v", v)
	}
	if out.Trace.Texts != 6 || out.Tokens < 6*4 {
		t.Errorf("%d texts and %d tokens", out.Trace.Texts, out.Tokens)
	}
}

func TestEachTextHasASeedOfItsOwnAndPartOfTheBudget(t *testing.T) {
	type asked struct {
		model string
		seed  uint64
		most  int
	}
	got := make(chan asked, 100)
	m := author{write: func(r openai.Request) (string, float64) {
		got <- asked{r.Model, r.Seed, r.Max}
		return strings.Repeat("word ", 50), -1
	}}
	s := &strategy.Options{Answers: 4, Models: []string{"a", "b"}, Budget: 80, Vote: strategy.VoteText}
	talk := []openai.Message{{Role: "user", Content: "hello"}}
	_, out, err := ask(t, m, openai.Request{Messages: talk, Temperature: 1, Seed: 9, Strategy: s})
	if err != nil {
		t.Fatal(err)
	}
	close(got)
	seeds, models := map[uint64]bool{}, map[string]int{}
	for one := range got {
		seeds[one.seed] = true
		models[one.model]++
		if one.most != 10 {
			t.Errorf("a text may have %d tokens of 80 for 8", one.most)
		}
	}
	if len(seeds) != 8 || models["a"] != 4 || models["b"] != 4 {
		t.Errorf("%d seeds, %v", len(seeds), models)
	}
	if out.Tokens != 80 || out.Finish != "length" {
		t.Errorf("%d tokens, %s", out.Tokens, out.Finish)
	}
}

// TestSearchFollowsTheLikelySteps has a model whose likely first step leads to an unlikely end.
func TestSearchFollowsTheLikelySteps(t *testing.T) {
	m := author{write: func(r openai.Request) (string, float64) {
		steps := strings.Count(r.Prompt, "\n")
		good := strings.Count(r.Prompt, "good")
		switch {
		case steps == 3:
			return "end", -0.1
		case r.Seed%3 == 0 && good == steps:
			return fmt.Sprintf("good %d\nmore", steps), -0.2
		}
		return fmt.Sprintf("bad %d\nmore", steps), -1
	}}
	s := &strategy.Options{Search: &strategy.Search{Beams: 2, Branches: 8, Steps: 6, Separator: "\n"}}
	text, out, err := ask(t, m, openai.Request{Prompt: ">", Temperature: 1, Strategy: s})
	if err != nil {
		t.Fatal(err)
	}
	if text != "good 0\ngood 1\ngood 2\nend" || out.Finish != "stop" {
		t.Errorf("%q, %s", text, out.Finish)
	}
	s.Budget = 20
	if text, out, err = ask(t, m, openai.Request{Prompt: ">", Temperature: 1, Strategy: s}); err != nil {
		t.Fatal(err)
	}
	if out.Tokens > 20 || out.Finish != "length" {
		t.Errorf("%q has %d tokens of a budget of 20, %s", text, out.Tokens, out.Finish)
	}
}

const adder = `
def add(arguments):
    if arguments["a"] < 0:
        fail("a is negative")
    return arguments["a"] + arguments["b"]
`

func tool(t *testing.T) Tool {
	t.Helper()
	add, err := NewTool("add", adder)
	if err != nil {
		t.Fatal(err)
	}
	return add
}

// inTurn writes the texts in turn, one for each time that the model continues.
func inTurn(texts ...string) author {
	return author{write: func(r openai.Request) (string, float64) {
		return texts[min(strings.Count(r.Prompt, closeResult), len(texts)-1)], -1
	}}
}

func TestToolsAreCalled(t *testing.T) {
	for _, c := range []struct {
		name, first, result string
	}{
		{"right", `<tool_call>{"name": "add", "arguments": {"a": 2, "b": 40}}</tool_call>`, "42"},
		{"fails", `<tool_call>{"name": "add", "arguments": {"a": -2, "b": 40}}</tool_call>`, "a is negative"},
		{"no arguments", `<tool_call>{"name": "add"}</tool_call>`, "error: "},
		{"other tool", `<tool_call>{"name": "sub", "arguments": {}}</tool_call>`, "there is no tool of this name"},
		{"no JSON", `<tool_call>add 2 and 40</tool_call>`, "not a JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen string
			m := inTurn("let me see "+c.first+" never read", "so that is it")
			inner := m.write
			m.write = func(r openai.Request) (string, float64) {
				seen = r.Prompt
				return inner(r)
			}
			s := &strategy.Options{Answers: 1, Tools: []string{"add"}}
			text, out, err := ask(t, m, openai.Request{Prompt: "2+40? ", Strategy: s}, tool(t))
			if err != nil {
				t.Fatal(err)
			}
			if text != "let me see so that is it" {
				t.Errorf("the answer is %q", text)
			}
			if len(out.Trace.Calls) != 1 || !strings.Contains(out.Trace.Calls[0].Result, c.result) {
				t.Errorf("the calls are %+v", out.Trace.Calls)
			}
			want := "2+40? let me see " + c.first + openResult + out.Trace.Calls[0].Result + closeResult
			if seen != want {
				t.Errorf("the model continued %q, not %q", seen, want)
			}
		})
	}
}

func TestCallsAreBounded(t *testing.T) {
	var calls atomic.Int64
	m := author{calls: &calls, write: func(openai.Request) (string, float64) {
		return `<tool_call>{"name":"add","arguments":{"a":1,"b":1}}</tool_call>`, -1
	}}
	s := &strategy.Options{Answers: 1, Tools: []string{"add"}}
	_, out, err := ask(t, m, openai.Request{Prompt: "?", Strategy: s}, tool(t))
	if err != nil || out.Finish != "length" || calls.Load() > maxCalls+1 {
		t.Errorf("%d calls, %s, %v", calls.Load(), out.Finish, err)
	}
	const endless = "def loop(arguments):\n    for i in range(1000000000):\n        pass\n"
	forever, err := NewTool("loop", endless)
	if err != nil {
		t.Fatal(err)
	}
	s = &strategy.Options{Answers: 1, Tools: []string{"loop"}}
	m = inTurn(`<tool_call>{"name":"loop","arguments":{}}</tool_call>`, "done")
	text, out, err := ask(t, m, openai.Request{Prompt: "?", Strategy: s}, forever)
	if err != nil || text != "done" || !strings.HasPrefix(out.Trace.Calls[0].Result, "error: ") {
		t.Errorf("%q, %+v, %v", text, out.Trace, err)
	}
}

func TestRefused(t *testing.T) {
	m := inTurn("text")
	for name, r := range map[string]openai.Request{
		"tool that is not there":      {Strategy: &strategy.Options{Answers: 1, Tools: []string{"sub"}}},
		"many answers, temperature 0": {Strategy: &strategy.Options{Answers: 2}},
		"branches, temperature 0":     {Strategy: &strategy.Options{Search: &strategy.Search{Branches: 2, Steps: 1}}},
		"a prompt of tokens":          {Tokens: []int32{1}, Strategy: &strategy.Options{Answers: 1}},
		"a model that is not there":   {Temperature: 1, Strategy: &strategy.Options{Answers: 1, Models: []string{"c"}}},
		"one of the models is missing": {Temperature: 1, Strategy: &strategy.Options{Answers: 2,
			Models: []string{"a", "c"}}},
	} {
		if _, _, err := ask(t, m, r, tool(t)); !errors.Is(err, openai.ErrRequest) && !errors.Is(err, openai.ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(m, tool(t), tool(t)); err == nil {
		t.Error("two tools of one name")
	}
	for name, source := range map[string]string{"Add": adder, "sub": adder, "add": "def add(a, b):\n    return 1\n"} {
		if _, err := NewTool(name, source); !errors.Is(err, ErrTool) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFullContextEndsAText(t *testing.T) {
	m := inTurn(`<tool_call>{"name":"add","arguments":{"a":1,"b":1}}</tool_call>`)
	full := narrow{m}
	s := &strategy.Options{Answers: 1, Tools: []string{"add"}}
	_, out, err := ask(t, full, openai.Request{Prompt: "?", Strategy: s}, tool(t))
	if err != nil || out.Finish != "length" {
		t.Errorf("%s, %v", out.Finish, err)
	}
	if _, _, err := ask(t, full, openai.Request{Prompt: strings.Repeat("?", 101), Strategy: s},
		tool(t)); !errors.Is(err, openai.ErrTooLong) {
		t.Errorf("a prompt that is too long: %v", err)
	}
}

// narrow has a context of 100 bytes.
type narrow struct{ author }

func (m narrow) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	if len(r.Prompt) > 100 {
		return openai.Result{}, openai.ErrTooLong
	}
	return m.author.Generate(ctx, r, emit)
}

// TestVotesOfAGateway has a model that renders conversations elsewhere, and tells no probabilities.
func TestVotesOfAGateway(t *testing.T) {
	var next atomic.Int64
	m := NewVotes(author{write: func(r openai.Request) (string, float64) {
		if r.Likely >= 0 || len(r.Messages) != 1 {
			t.Errorf("asked with %+v", r)
		}
		return []string{"4", "5", "5"}[(next.Add(1)-1)%3], 0
	}})
	ask := func(s strategy.Options) (text string, err error) {
		s.Budget, s.Vote = 100, strategy.VoteNumber
		r := openai.Request{Model: "a", Messages: []openai.Message{{Role: "user", Content: "2+3"}}, Temperature: 1,
			Strategy: &s}
		_, err = m.Generate(t.Context(), r, func(p openai.Piece) error {
			text += p.Text
			return nil
		})
		return text, err
	}
	if text, err := ask(strategy.Options{Answers: 3}); err != nil || text != "5" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ask(strategy.Options{Answers: 1, Search: &strategy.Search{Beams: 1, Branches: 1,
		Steps: 1}}); !errors.Is(err, openai.ErrRequest) {
		t.Error(err)
	}
}

func FuzzCall(f *testing.F) {
	f.Add(`<tool_call>{"name": "add", "arguments": {"a": 2, "b": 40}}</tool_call>`)
	f.Add(`<tool_call>{"name": "add", "arguments": {"a": [1e999], "b": {"c": null}}}</tool_call>`)
	f.Add(`<tool_call></tool_call>`)
	add, err := NewTool("add", adder)
	if err != nil {
		f.Fatal(err)
	}
	a := &attempt{tools: map[string]Tool{"add": add}}
	f.Fuzz(func(t *testing.T, text string) {
		if c := a.call(text); len(c.Result) > 2*maxResult {
			t.Errorf("a result of %d bytes", len(c.Result))
		}
	})
}
