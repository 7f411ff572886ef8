package openai

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/starling-network/starling/web/openai/strategy"
)

// without is a model that continues texts without its second stage.
type without struct{ echo }

func (m without) Generate(ctx context.Context, r Request, emit func(Piece) error) (Result, error) {
	out, err := m.echo.Generate(ctx, r, emit)
	out.Trace = &strategy.Trace{Texts: 1, Left: []int{2}}
	return out, err
}

// An answer that a model wrote without a stage says so, whole or as a stream, and has another fingerprint.
func TestAnswersWithoutStages(t *testing.T) {
	whole, s := New(echo{}, Config{Watch: true}), New(without{}, Config{Watch: true})
	print := func(s *Server) (string, string) {
		w := ask(s, "POST", "/v1/completions", `{"model":"echo","prompt":"a"}`)
		var body struct {
			Print   string `json:"system_fingerprint"`
			Choices []struct {
				Trace *strategy.Trace `json:"starling"`
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		return body.Print, w.Header().Get(strategy.HeaderLeft) + strings.Repeat("!", len(body.Choices[0].Trace.Join(nil)))
	}
	if a, left := print(whole); left != "" || strings.Contains(a, "without") {
		t.Error(a, left)
	}
	if a, left := print(s); left != "2!" || !strings.HasSuffix(a, "-without-2") {
		t.Error(a, left)
	}
	w := ask(s, "POST", "/v1/completions", `{"model":"echo","prompt":"a","stream":true}`)
	if body := w.Body.String(); !strings.Contains(body, `"left_stages":[2]`) || !strings.Contains(body, "-without-2") ||
		w.Result().Trailer.Get(strategy.HeaderLeft) != "2" {
		t.Error(body, w.Result().Trailer)
	}
	counts := ask(s, "GET", "/metrics", "").Body.String()
	if !strings.Contains(counts, "starling_serve_left_stages_total 2\n") {
		t.Error(counts)
	}
}
