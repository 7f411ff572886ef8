package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

const (
	maxRefusal = 64 << 10 // bytes of the body of a refusal
	template   = 1024     // tokens that a chat template may add to a request, in which a token has a byte at least
)

// errSlow is the cause of an end: the provider sent nothing for a while.
var errSlow = errors.New("the provider sent nothing for a while")

// refused is the answer of a provider to a request that it does not take.
type refused struct {
	status  int
	code    string
	message string
}

func (r *refused) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.message) }

// ours reports whether the request is to blame, so that no other provider would take it.
func (r *refused) ours() bool {
	return r.status == http.StatusBadRequest || r.status == http.StatusRequestEntityTooLarge
}

// served is an answer of a provider, with its statement of the cost.
type served struct {
	place      hosting.Place
	made       openai.Result
	settlement x402.Settlement
	overbilled error // the provider states another cost than that of its prices, or has no receipt of this answer
}

// body is the request as providers take it, and the path below the URL of a place.
func body(name string, r openai.Request) (path string, raw []byte, err error) {
	all := map[string]any{"model": name, "stream": true, "stream_options": map[string]any{"include_usage": true},
		"seed": int64(r.Seed), "temperature": r.Temperature, "top_p": r.TopP}
	if r.Max > 0 {
		all["max_tokens"] = r.Max
	}
	if len(r.Stops) > 0 {
		all["stop"] = r.Stops
	}
	switch {
	case r.Messages != nil:
		var messages []map[string]string
		for _, m := range r.Messages {
			messages = append(messages, map[string]string{"role": m.Role, "content": m.Content})
		}
		path, all["messages"] = "v1/chat/completions", messages
	case r.Tokens != nil:
		path, all["prompt"] = "v1/completions", r.Tokens
	default:
		path, all["prompt"] = "v1/completions", r.Prompt
	}
	raw, err = json.Marshal(all)
	return path, raw, err
}

// ask asks one provider, pays it, and gives emit its text.
func (g *Gateway) ask(ctx context.Context, p hosting.Place, r openai.Request, emit func(string) error) (s served,
	err error) {
	s = served{place: p}
	path, raw, err := body(g.config.Model.Name, r)
	if err != nil {
		return s, err
	}
	at, err := url.Parse(p.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return s, fmt.Errorf("%.100q is no URL of HTTP", p.URL)
	}
	reader, left := ctx, false // left: the text is not read to its end
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(g.config.Timeout, func() { cancel(errSlow) })
	defer idle.Stop()
	post := func(payment string) (*http.Response, error) {
		idle.Reset(g.config.Timeout)
		return g.post(ctx, at.JoinPath(path).String(), raw, payment)
	}
	reply, err := post(g.purse.Probe(p))
	if err != nil {
		return s, cause(ctx, err)
	}
	var h *purse.Hold
	if reply.StatusCode == http.StatusPaymentRequired {
		_, terms, err := x402.ReadRequired(reply.Body, g.config.Chain)
		_ = reply.Body.Close() // it was read
		if err == nil {
			err = g.agree(p, r, len(raw), terms)
		}
		if err != nil {
			return s, err
		}
		idle.Stop() // the network takes its time
		var payment string
		if h, payment, err = g.purse.Pay(ctx, p, terms); err != nil {
			return s, err
		}
		defer func() {
			if left || reader.Err() != nil {
				h.Left()
			}
			err = errors.Join(err, h.Settle(s.settlement.Cost))
		}()
		if reply, err = post(payment); err != nil {
			return s, cause(ctx, err)
		}
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return s, refusal(reply)
	}
	s.made, err = readStream(reply.Body, func() { idle.Reset(g.config.Timeout) }, func(text string) error {
		err := emit(text)
		left = left || err != nil
		return err
	})
	if err != nil {
		return s, cause(ctx, err)
	}
	text := reply.Trailer.Get(x402.HeaderResponse)
	if s.settlement, err = x402.ReadSettlement(text); err != nil {
		s.settlement.Cost = p.Prices.Cost(uint64(s.made.PromptTokens), uint64(s.made.Tokens))
		return s, fmt.Errorf("%w: %w", errStream, err)
	}
	s.billed(h)
	if s.overbilled == nil {
		s.overbilled = g.receipt(ctx, r, s)
	}
	return s, nil
}

// cause is the reason why a request ended, rather than that its context did.
func cause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		return errSlow
	}
	return err
}

func (g *Gateway) post(ctx context.Context, to string, raw []byte, payment string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	if payment != "" {
		q.Header.Set(x402.HeaderPayment, payment)
	}
	return g.client.Do(q)
}

// agree compares the terms of a provider with its place on the network and with the request of a size in bytes.
func (g *Gateway) agree(p hosting.Place, r openai.Request, size int, t x402.Terms) error {
	x := t.Extra
	switch {
	case t.PayTo != p.Provider || x.Model != p.Model:
		return fmt.Errorf("%w: it is to pay %.80q for model %d", purse.ErrOverbill, t.PayTo, x.Model)
	case x.Input > p.Prices.Input || x.Output > p.Prices.Output:
		return fmt.Errorf("%w: prices of %d and %d, and %d and %d on the network", purse.ErrOverbill, x.Input, x.Output,
			p.Prices.Input, p.Prices.Output)
	case x.Most > p.Prices.Cost(uint64(x.Prompt), uint64(x.Answer)):
		return fmt.Errorf("%w: %d grains for at most %d and %d tokens", purse.ErrOverbill, x.Most, x.Prompt, x.Answer)
	case x.Prompt > size+template || r.Max > 0 && x.Answer > r.Max || x.Answer > answer.MaxTokens-x.Prompt:
		return fmt.Errorf("%w: %d tokens for a request of %d bytes, and %d for an answer of at most %d; %d for both at most",
			purse.ErrOverbill, x.Prompt, size, x.Answer, r.Max, answer.MaxTokens)
	}
	return nil
}

// billed compares the cost that a provider states with the tokens and its prices. Of a provider that states another,
// the cost is the most that it can redeem.
func (s *served) billed(h *purse.Hold) {
	want := s.place.Prices.Cost(uint64(s.made.PromptTokens), uint64(s.made.Tokens))
	if h == nil {
		s.settlement.Cost = 0 // nothing was signed
	} else if most := min(want, h.Most()); s.settlement.Cost > most {
		s.overbilled = fmt.Errorf("%w: %d grains for %d and %d tokens, at most %d", purse.ErrOverbill, s.settlement.Cost,
			s.made.PromptTokens, s.made.Tokens, most)
		s.settlement.Cost = h.Most()
	}
}

// refusal reads an error of OpenAI's interface.
func refusal(answer *http.Response) error {
	var e struct {
		Error struct {
			Message string `json:"message"`
			Code    string `json:"code"`
		} `json:"error"`
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	r := &refused{status: answer.StatusCode, code: e.Error.Code, message: e.Error.Message}
	if err != nil || r.message == "" {
		r.message = http.StatusText(answer.StatusCode)
	}
	return r
}
