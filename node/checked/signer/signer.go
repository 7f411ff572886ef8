// Package signer is the provider's side of receipts: it signs what a model of its own has drawn.
package signer

import (
	"fmt"

	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/web/openai"
)

// Signer signs receipts of the answers of a model.
type Signer struct {
	Model  *checked.Model
	Chain  string        // ID of the network
	Number uint64        // of the hosted model
	Key    wallet.Signer // of the provider
}

// Sign signs the receipt of an answer, with the height of a recent block. The error wraps answer.ErrReceipt for an
// answer that has none, such as one of too many tokens.
func (s Signer) Sign(d *openai.Drawn, height int64) (answer.Signed, error) {
	if d == nil || len(d.Prompt)+len(d.Answer) > answer.MaxTokens {
		return answer.Signed{}, fmt.Errorf("%w: it cannot be checked in one pass, or has more than %d tokens",
			answer.ErrReceipt, answer.MaxTokens)
	}
	r := answer.Receipt{Chain: s.Chain, Model: s.Number, Weights: s.Model.Weights, Prompt: d.Prompt, Answer: d.Answer,
		Asked: uint32(d.Asked), Stopped: d.Stopped, Temperature: d.Temperature, TopP: d.TopP, Seed: d.Seed, Height: height,
		Provider: s.Key.Address()}
	p, err := s.Model.Program(r.Length())
	if err != nil {
		return answer.Signed{}, err
	}
	r.Program = p.Digest()
	return answer.Sign(r, s.Key.PublicKey(), s.Key.Sign)
}
