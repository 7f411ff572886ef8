package serve

import (
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/web/openai"
)

// drawn is the record of an answer that can be checked, without tokens; nil of another.
func drawn(g generate.Request) *openai.Drawn {
	if !g.Sampling.Checked {
		return nil
	}
	return &openai.Drawn{Prompt: g.Prompt, Asked: g.Tokens, Seed: g.Sampling.Seed,
		Temperature: generate.Millionths(g.Sampling.Temperature, false), TopP: generate.Millionths(g.Sampling.TopP, true)}
}

// add records a token.
func add(d *openai.Drawn, t generate.Token) {
	if d != nil {
		d.Answer, d.Stopped = append(d.Answer, t.ID), t.Finish == generate.FinishEnd
	}
}

// end records that a text ended with a text that stops it: no more tokens are asked for.
func end(d *openai.Drawn) {
	if d != nil {
		d.Asked = len(d.Answer)
	}
}
