// Package answer has the receipt that a provider of a hosted model signs for an answer, so that anybody can have the
// answer checked, and the account of the provider convicted if it is wrong: which model continued which tokens by
// which, and how each was decided. A receipt says that the checking program, executed on these tokens with these
// weights, finds no wrong token.
//
// It computes no model and knows no keys: compute/model/check makes the program, and chain/referee/answered judges a
// dispute about its execution.
package answer

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Limits of receipts.
const (
	MaxTokens = 4096     // of a prompt and its answer together
	MaxBytes  = 64 << 10 // of a signed receipt
	Window    = 256      // tokens of an answer that one execution of the checking program decides on
	Million   = 1_000_000

	maxName        = 128           // bytes of the names of a chain and of an account
	maxTemperature = 100 * Million // millionths
)

// Errors of receipts.
var (
	ErrReceipt = errors.New("answer: not a receipt of an answer")
	ErrForged  = errors.New("answer: the receipt is not signed by its provider")
	ErrWindow  = errors.New("answer: no token of the answer is there")
)

// Receipt is what a provider says about an answer.
type Receipt struct {
	Chain   string       `cbor:"1,keyasint"` // ID of the network
	Model   uint64       `cbor:"2,keyasint"` // number of the hosted model
	Weights canon.Digest `cbor:"3,keyasint"` // root of its weights
	Program canon.Digest `cbor:"4,keyasint"` // of the checking program
	Prompt  []int32      `cbor:"5,keyasint"` // tokens
	Answer  []int32      `cbor:"6,keyasint"` // tokens, with the one by which the model ended it
	Asked   uint32       `cbor:"7,keyasint"` // tokens that were asked for, at most
	Stopped bool         `cbor:"8,keyasint"` // the last token is one that ends texts
	// Of each token, the draw: millionths. Temperature 0 takes the most likely one; TopP of a million cuts nothing.
	Temperature uint32 `cbor:"9,keyasint"`
	TopP        uint32 `cbor:"10,keyasint"`
	Seed        uint64 `cbor:"11,keyasint"`
	First       uint64 `cbor:"12,keyasint"` // number of the first token of the answer among the draws of the seed
	Height      int64  `cbor:"13,keyasint"` // of a recent block, by the word of the provider
	Provider    string `cbor:"14,keyasint"` // account
}

// Check reports a receipt that says nothing, by an error that wraps ErrReceipt. An answer that neither has as many
// tokens as were asked for nor was ended by the model is none.
func (r Receipt) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrReceipt}, args...)...)
	}
	n := len(r.Answer)
	switch {
	case r.Chain == "" || len(r.Chain) > maxName || r.Provider == "" || len(r.Provider) > maxName:
		return bad("a chain of %d bytes and a provider of %d, wanted 1 to %d", len(r.Chain), len(r.Provider), maxName)
	case r.Weights.IsZero() || r.Program.IsZero():
		return bad("a digest is missing")
	case len(r.Prompt) == 0 || n == 0 || len(r.Prompt)+n > MaxTokens:
		return bad("%d tokens of a prompt and %d of an answer, wanted both, and at most %d", len(r.Prompt), n, MaxTokens)
	case r.Asked > MaxTokens || n > int(r.Asked) || n < int(r.Asked) && !r.Stopped:
		return bad("%d tokens of %d that were asked for, ended by the model: %t", n, r.Asked, r.Stopped)
	case r.Temperature > maxTemperature || r.TopP < 1 || r.TopP > Million:
		return bad("a temperature of %d millionths and a top_p of %d", r.Temperature, r.TopP)
	case r.Height < 1:
		return bad("height %d", r.Height)
	case r.First > 1<<32:
		return bad("the first token has number %d, at most 2^32", r.First)
	}
	for _, tokens := range [][]int32{r.Prompt, r.Answer} {
		for _, id := range tokens {
			if id < 0 {
				return bad("token %d", id)
			}
		}
	}
	return nil
}

// Digest names the receipt. The provider signs it.
func (r Receipt) Digest() canon.Digest { return canon.Hash("starling/answer/1", r) }

// Length is the number of tokens that the checking program of a receipt reads: the smallest of 64, 128 and so on up to
// MaxTokens that holds the prompt and the answer.
func (r Receipt) Length() int { return Length(len(r.Prompt) + len(r.Answer)) }

// Length is the number of tokens that a checking program reads, for a number of tokens of a prompt and an answer.
func Length(tokens int) int {
	n := 64
	for n < tokens && n < MaxTokens {
		n *= 2
	}
	return n
}

// Part is the tokens of the answer that one execution of the checking program decides on: from one on, at most Window.
// The error wraps ErrWindow.
func (r Receipt) Part(from uint32) ([]int32, error) {
	if int64(from) >= int64(len(r.Answer)) {
		return nil, fmt.Errorf("%w: %d of %d", ErrWindow, from, len(r.Answer))
	}
	return r.Answer[from:min(int(from)+Window, len(r.Answer))], nil
}

// Signed is a receipt with the signature of its provider.
type Signed struct {
	Receipt   Receipt `cbor:"1,keyasint"`
	Key       []byte  `cbor:"2,keyasint"` // public, of the account
	Signature []byte  `cbor:"3,keyasint"` // over the digest of the receipt
}

// Sign signs a receipt.
func Sign(r Receipt, key []byte, sign func(message []byte) ([]byte, error)) (s Signed, err error) {
	if err := r.Check(); err != nil {
		return s, err
	}
	d := r.Digest()
	s = Signed{Receipt: r, Key: key}
	s.Signature, err = sign(d[:])
	return s, err
}

// Verify checks a receipt and its signature, by a function that reports whether the account with an address and a
// public key signed a digest. The error wraps ErrReceipt or ErrForged.
func (s Signed) Verify(signed func(address string, key []byte, digest canon.Digest, signature []byte) error) error {
	if err := s.Receipt.Check(); err != nil {
		return err
	}
	if err := signed(s.Receipt.Provider, s.Key, s.Receipt.Digest(), s.Signature); err != nil {
		return fmt.Errorf("%w: %w", ErrForged, err)
	}
	return nil
}

// Encode returns the canonical bytes.
func (s Signed) Encode() []byte { return canon.MustMarshal(s) }

// Decode reads a signed receipt from anybody. The error wraps ErrReceipt.
func Decode(b []byte) (s Signed, err error) {
	if len(b) > MaxBytes {
		return s, fmt.Errorf("%w: %d bytes, at most %d", ErrReceipt, len(b), MaxBytes)
	}
	if err := canon.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	return s, s.Receipt.Check()
}
