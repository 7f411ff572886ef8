package reasoning

import (
	"context"
	"errors"
	"strings"

	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/openai/strategy"
)

// draft is a text while it is written.
type draft struct {
	text   string  // after the prompt, with the calls of tools and their results
	shown  string  // without them
	log    float64 // sum of the log-probabilities of its tokens
	tokens int     // of the text
	prompt int     // tokens of the prompt
	spent  int     // tokens since the draft that it continues
	finish string  // stop or length; "": it is not finished
	calls  []strategy.Call
	left   []int // stages that it was continued without
}

// likelihood is the mean log-probability of a token.
func (d *draft) likelihood() float64 { return d.log / float64(max(d.tokens, 1)) }

// extend continues a text until the model ends it, or until a separator, "" for none, or for as many tokens as are
// left.
// seed selects the random numbers.
func (a *attempt) extend(ctx context.Context, r openai.Request, d *draft, separator string, left int,
	seed uint64) error {
	d.spent = 0
	for calls := 0; ; calls++ {
		r := r
		r.Prompt, r.Seed = r.Prompt+d.text, mix(seed, uint64(calls))
		r.Max = left - d.spent
		if r.Max <= 0 || calls > maxCalls {
			d.finish = "length"
			return nil
		}
		p := part{tools: len(a.tools) > 0, separator: separator}
		result, err := a.Model.Model.Generate(ctx, r, p.add)
		if errors.Is(err, openai.ErrTooLong) && d.text != "" {
			d.finish = "length" // the context is full
			return nil
		}
		if err != nil && !errors.Is(err, errCut) {
			return err
		}
		d.left = result.Trace.Join(d.left)
		text, call, ended := p.cut()
		d.text += text
		d.shown += strings.TrimSuffix(text, call)
		n := max(p.tokens, result.Tokens) // tokens of characters that are not whole have no piece
		d.log, d.tokens, d.spent = d.log+p.log, d.tokens+n, d.spent+n
		if d.prompt == 0 {
			d.prompt = result.PromptTokens
		}
		switch {
		case call != "":
			done := a.call(call)
			d.calls = append(d.calls, done)
			d.text += openResult + done.Result + closeResult
		case ended:
			return nil // a step
		default:
			d.finish = result.Finish
			return nil
		}
	}
}

// part collects the pieces of a text.
type part struct {
	tools     bool
	separator string

	b      strings.Builder
	log    float64
	tokens int
}

// add takes a piece, and ends the text when cut finds its end.
func (p *part) add(piece openai.Piece) error {
	had := p.b.Len()
	p.b.WriteString(piece.Text)
	for _, t := range piece.Tokens {
		p.log += t.Log
		p.tokens++
	}
	if p.closes(had) {
		if _, call, ended := p.cut(); call != "" || ended {
			return errCut
		}
	}
	return nil
}

// closes reports whether a mark that may end the text is complete since it had some bytes. So the whole text is
// searched when one is, and not with each piece.
func (p *part) closes(had int) bool {
	since := func(mark string) string { return p.b.String()[max(0, had-len(mark)+1):] }
	return p.separator != "" && strings.Contains(since(p.separator), p.separator) ||
		p.tools && strings.Contains(since(closeCall), closeCall)
}

// cut returns the text up to the first call of a tool or the first separator, whichever ends first; the call, with its
// marks; and whether the text ends a step.
func (p *part) cut() (text, call string, ended bool) {
	text = p.b.String()
	if p.separator != "" {
		// a step has some text of its own
		for at := 0; ; {
			i := strings.Index(text[at:], p.separator)
			if i < 0 {
				break
			}
			at += i + len(p.separator)
			if strings.TrimSpace(text[:at]) != "" {
				text, ended = text[:at], true
				break
			}
		}
	}
	if p.tools {
		if from := strings.Index(text, openCall); from >= 0 {
			if n := strings.Index(text[from:], closeCall); n >= 0 {
				to := from + n + len(closeCall)
				return text[:to], text[from:to], false
			}
		}
	}
	return text, "", ended
}

// mix makes a seed from two numbers (splitmix64, Steele and others 2014).
func mix(seed, n uint64) uint64 {
	if n == 0 {
		return seed
	}
	x := seed + n*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
