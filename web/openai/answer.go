package openai

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/web/openai/strategy"
)

// form is what differs between the two kinds of answers.
type form struct {
	id     string // prefix of identifiers
	object string
	chunk  string // object of a piece of a stream
	// choice is a choice of an answer; of a stream with delta, the first one of a choice with first.
	choice func(index int, p Piece, finish any, delta, first bool) map[string]any
}

var completionForm = form{id: "cmpl-", object: "text_completion", chunk: "text_completion",
	choice: func(index int, p Piece, finish any, _, _ bool) map[string]any {
		return map[string]any{"index": index, "text": p.Text, "logprobs": completionLogs(p.Tokens), "finish_reason": finish}
	}}

var chatForm = form{id: "chatcmpl-", object: "chat.completion", chunk: "chat.completion.chunk",
	choice: func(index int, p Piece, finish any, delta, first bool) map[string]any {
		c := map[string]any{"index": index, "logprobs": chatLogs(p.Tokens), "finish_reason": finish}
		switch {
		case !delta:
			c["message"] = map[string]any{"role": "assistant", "content": p.Text, "refusal": nil}
		case first:
			c["delta"] = map[string]any{"role": "assistant", "content": p.Text}
		case finish != nil && p.Text == "":
			c["delta"] = map[string]any{}
		default:
			c["delta"] = map[string]any{"content": p.Text}
		}
		return c
	}}

// completionLogs has a list for each property of the tokens, null without tokens.
func completionLogs(tokens []Token) any {
	if len(tokens) == 0 {
		return nil
	}
	l := struct {
		Tokens  []string             `json:"tokens"`
		Logs    []float64            `json:"token_logprobs"`
		Likely  []map[string]float64 `json:"top_logprobs"`
		Offsets []int                `json:"text_offset"`
	}{}
	at := 0
	for _, t := range tokens {
		likely := map[string]float64{}
		for _, o := range t.Likely {
			likely[o.Text] = o.Log
		}
		l.Tokens, l.Logs, l.Likely, l.Offsets = append(l.Tokens, t.Text), append(l.Logs, t.Log), append(l.Likely, likely),
			append(l.Offsets, at)
		at += len(t.Text)
	}
	return l
}

type chatLog struct {
	Token  string    `json:"token"`
	Log    float64   `json:"logprob"`
	Bytes  []int     `json:"bytes"`
	Likely []chatLog `json:"top_logprobs,omitempty"`
}

func chatLogs(tokens []Token) any {
	if len(tokens) == 0 {
		return nil
	}
	var one func(t Token) chatLog
	one = func(t Token) chatLog {
		l := chatLog{Token: t.Text, Log: t.Log}
		for _, b := range []byte(t.Text) {
			l.Bytes = append(l.Bytes, int(b))
		}
		for _, o := range t.Likely {
			l.Likely = append(l.Likely, one(o))
		}
		return l
	}
	var list []chatLog
	for _, t := range tokens {
		list = append(list, one(t))
	}
	return map[string]any{"content": list, "refusal": nil}
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	var p completionRequest
	err := read(r, &p)
	if err != nil {
		refuse(w, err)
		return
	}
	all, err := p.requests()
	if err == nil {
		err = s.strategy(&p.shared, p.LogProbs != nil)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	s.answer(w, r, &p.shared, completionForm, all)
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var p chatRequest
	if err := read(r, &p); err != nil {
		refuse(w, err)
		return
	}
	all, conversation, err := p.requests()
	if err == nil {
		err = s.strategy(&p.shared, p.LogProbs)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	info, err := s.named(p.Model)
	if err != nil {
		refuse(w, err)
		return
	}
	var prompt string
	var stops []string
	if p.Strategy == nil { // else the model renders the conversation, for each of its models
		if prompt, stops, err = s.model.Prompt(info.Name, conversation); err != nil {
			refuse(w, err)
			return
		}
	}
	for i := range all {
		all[i].Prompt, all[i].Messages, all[i].Stops = prompt, conversation, slices.Concat(all[i].Stops, stops)
	}
	s.answer(w, r, &p.shared, chatForm, all)
}

// answer generates the texts at once and sends them, whole or piece by piece.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p *shared, f form, all []Request) {
	info, err := s.named(p.Model)
	if err != nil {
		refuse(w, err)
		return
	}
	for i := range all {
		all[i].Model = info.Name
	}
	var id [12]byte
	_, _ = rand.Read(id[:]) // never fails
	a := &answer{form: f, info: info, id: f.id + hex.EncodeToString(id[:]), created: time.Now().Unix(),
		texts: make([]Piece, len(all)), results: make([]Result, len(all))}
	defer func() { a.wrote(w) }()
	if !p.Stream {
		err := a.generate(r.Context(), s.model, all, func(i int, piece Piece) error {
			a.texts[i].Text += piece.Text
			a.texts[i].Tokens = append(a.texts[i].Tokens, piece.Tokens...)
			return nil
		})
		switch {
		case r.Context().Err() != nil: // the client is gone
		case err != nil:
			refuse(w, err)
		default:
			s.patience(w)
			strategy.Mark(w.Header(), a.left())
			reply(w, http.StatusOK, a.whole(f.object))
		}
		return
	}
	a.stream(w, r, s, p.Streaming.Usage, all)
}

// patience bounds the next write.
func (s *Server) patience(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.Timeout)) // a recorder has none
}

// answer is the texts of one request.
type answer struct {
	form
	info    Info
	id      string
	created int64
	texts   []Piece
	results []Result

	mu sync.Mutex
}

// generate continues all texts at once. It gives emit one piece at a time, with the number of its text.
func (a *answer) generate(ctx context.Context, m Model, all []Request, emit func(i int, p Piece) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, r := range all {
		wg.Go(func() {
			a.results[i], errs[i] = m.Generate(ctx, r, func(p Piece) error {
				a.mu.Lock()
				defer a.mu.Unlock()
				return emit(i, p)
			})
			if errs[i] != nil {
				cancel() // the others are not wanted without it
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

func (a *answer) usage() any {
	prompt, made := 0, 0
	for _, r := range a.results {
		prompt, made = prompt+r.PromptTokens, made+r.Tokens
	}
	return map[string]int{"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}
}

// left are the stages that texts were continued without.
func (a *answer) left() (all []int) {
	for _, r := range a.results {
		all = r.Trace.Join(all)
	}
	return all
}

func (a *answer) envelope(object string, choices []any) map[string]any {
	return map[string]any{"id": a.id, "object": object, "created": a.created, "model": a.info.Name,
		"system_fingerprint": strategy.State(a.info.State, a.left()), "choices": choices}
}

// last is a choice with how its text ended, and how it was found.
func (a *answer) last(i int, p Piece, delta, first bool) any {
	c := a.choice(i, p, a.results[i].Finish, delta, first)
	if t := a.results[i].Trace; t != nil {
		c["starling"] = t
	}
	return c
}

func (a *answer) whole(object string) any {
	var choices []any
	for i, t := range a.texts {
		choices = append(choices, a.last(i, t, false, false))
	}
	body := a.envelope(object, choices)
	body["usage"] = a.usage()
	return body
}

// stream sends pieces as events. A request that is refused before the first piece is answered as any other; after it,
// the error is an event, and the stream ends without [DONE].
func (a *answer) stream(w http.ResponseWriter, r *http.Request, s *Server, usage bool, all []Request) {
	began, first := false, make([]bool, len(all))
	send := func(body any) error {
		if !began {
			began = true
			h := w.Header()
			h.Set("Content-Type", "text/event-stream")
			h.Set("Cache-Control", "no-cache")
			h.Set("X-Accel-Buffering", "no")
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		return s.event(w, string(text))
	}
	chunk := func(choices []any, total any) error {
		body := a.envelope(a.chunk, choices)
		if usage {
			body["usage"] = total
		}
		return send(body)
	}
	err := a.generate(r.Context(), s.model, all, func(i int, p Piece) error {
		opening := !first[i]
		first[i] = true
		return chunk([]any{a.choice(i, p, nil, true, opening)}, nil)
	})
	switch {
	case r.Context().Err() != nil:
		return
	case err != nil && !began:
		refuse(w, err)
		return
	case err != nil:
		_ = send(refused(err).body()) // it has nowhere else to go
		return
	}
	strategy.Mark(w.Header(), a.left())
	for i := range all {
		if err == nil {
			err = chunk([]any{a.last(i, Piece{}, true, !first[i])}, nil)
		}
	}
	if err == nil && usage {
		err = chunk([]any{}, a.usage())
	}
	if err == nil {
		_ = s.event(w, "[DONE]") // if it fails, the client is gone
	}
}

// event writes one event and sends it off.
func (s *Server) event(w http.ResponseWriter, data string) error {
	s.patience(w)
	if _, err := w.Write([]byte("data: " + data + "\n\n")); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
