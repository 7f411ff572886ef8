package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-network/starling/web/openai/strategy"
)

// thinker is a model that tells the strategy of a request.
type thinker struct{ echo }

func (thinker) Generate(_ context.Context, r Request, emit func(Piece) error) (Result, error) {
	raw, err := json.Marshal(struct {
		*strategy.Options
		Prompt string
		Talk   []Message
		Stops  []string
	}{r.Strategy, r.Prompt, r.Messages, r.Stops})
	if err != nil {
		return Result{}, err
	}
	votes := []strategy.Vote{{Answer: "x", Count: 2}, {Answer: "y", Count: 1}}
	return Result{Tokens: 7, Finish: "stop", Trace: &strategy.Trace{Texts: 3, Votes: votes}},
		emit(Piece{Text: string(raw)})
}

func TestStrategies(t *testing.T) {
	h := New(thinker{}, Config{Strategies: true})
	for body, want := range map[string]strategy.Options{
		`{}`: {Answers: 1, Vote: strategy.VoteLine, Budget: 4096},
		`{"answers": 8, "models": ["echo"], "vote": "number", "max_total_tokens": 99}`: {Answers: 8,
			Models: []string{"echo"}, Vote: strategy.VoteNumber, Budget: 99},
		`{"search": {"beams": 2}, "tools": ["add"]}`: {Answers: 1, Vote: strategy.VoteLine, Budget: 4096,
			Search: &strategy.Search{Beams: 2, Branches: 4, Steps: 16, Separator: "\n"}, Tools: []string{"add"}},
	} {
		w := post(t, h, "/v1/chat/completions", `{"model": "echo", "stop": "!", "messages": [{"role": "user",
			"content": "hi"}], "starling": `+body+`}`)
		var answer struct {
			Choices []struct {
				Message  struct{ Content string }
				Starling strategy.Trace
			}
		}
		var got struct {
			strategy.Options
			Talk  []Message
			Stops []string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Choices) != 1 {
			t.Fatalf("%v: %s", err, w.Body)
		}
		if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Options, want) {
			t.Errorf("%s is %+v", body, got.Options)
		}
		// the model renders the conversation for each of its models, with the stops of their templates
		if len(got.Talk) != 1 || got.Talk[0].Content != "hi" || !reflect.DeepEqual(got.Stops, []string{"!"}) {
			t.Errorf("%+v, stops %q", got.Talk, got.Stops)
		}
		if s := answer.Choices[0].Starling; s.Texts != 3 || len(s.Votes) != 2 {
			t.Errorf("the choice tells %+v", s)
		}
	}
}

func TestStrategiesOutOfBounds(t *testing.T) {
	refused := func(h http.Handler, path, body, param string) {
		t.Helper()
		w := post(t, h, path, body)
		e := parse(t, w.Body.Bytes()).Error
		if w.Code != http.StatusBadRequest || e == nil || e.Param != param {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	h := New(thinker{}, Config{Strategies: true})
	for body, param := range map[string]string{
		`{"answers": 65}`:              "starling.answers",
		`{"answers": -1}`:              "starling.answers",
		`{"max_total_tokens": 65537}`:  "starling.max_total_tokens",
		`{"search": {"beams": 17}}`:    "starling.search.beams",
		`{"search": {"branches": -4}}`: "starling.search.branches",
		`{"search": {"steps": 65}}`:    "starling.search.steps",
		`{"search": {"separator": "` + strings.Repeat("x", 17) + `"}}`: "starling.search.separator",
		`{"search": {}, "answers": 2}`:                                 "starling.search",
		`{"models": ["1","2","3","4","5","6","7","8","9"]}`:            "starling.models",
		`{"vote": "colour"}`:                                           "starling.vote",
		`{"tools": [` + strings.Repeat(`"a",`, 16) + `"a"]}`:           "starling.tools",
	} {
		refused(h, "/v1/completions", `{"model": "echo", "prompt": "a", "starling": `+body+`}`, param)
	}
	refused(h, "/v1/completions", `{"model": "echo", "prompt": "a", "logprobs": 1, "starling": {}}`, "logprobs")
	refused(New(echo{}, Config{}), "/v1/completions", `{"model": "echo", "prompt": "a", "starling": {}}`, "starling")
}
