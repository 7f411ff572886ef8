// Package sums draws texts of sums, from which a model learns to add. It trains nothing.
package sums

import (
	"fmt"

	"github.com/starling-network/starling/compute/philox"
)

// Sums of two numbers below limit, with zeros in front and the digit of ones first: "170+584=" is continued by "457",
// as 071 + 485 is 754 the other way round. A token is a byte.
const (
	limit   = 500
	Digits  = 3
	Prompt  = 2*Digits + 2
	Length  = Prompt + Digits
	Tokens  = 64 // the vocabulary: every byte of a sum is below
	Silent  = Tokens
	heldOut = 20 // one of 20 sums is never learned from
)

// Stream draws sums from a stream of random numbers.
type Stream struct {
	Seed, Number uint64
	Next         uint64
	Held         bool // draws from the sums that are held out, and otherwise from the others
}

// Fill writes examples [n, Length+1]: the prompt as silent tokens, the answer, and a token of no example.
func (s *Stream) Fill(out []int32) {
	for row := 0; row < len(out); row += Length + 1 {
		text := s.draw()
		for i := range Length {
			out[row+i] = int32(text[i])
			if i < Prompt {
				out[row+i] += Silent
			}
		}
		out[row+Length] = int32(text[0]) + Silent
	}
}

func (s *Stream) draw() string {
	for {
		word := philox.Block(s.Seed, s.Number, s.Next)
		s.Next++
		a, b := word[0]%limit, word[1]%limit
		if held := (a*limit+b)*2654435761>>16%heldOut == 0; held == s.Held {
			return backwards(a) + "+" + backwards(b) + "=" + backwards(a+b)
		}
	}
}

func backwards(n uint32) string {
	text := []byte(fmt.Sprintf("%0*d", Digits, n))
	text[0], text[2] = text[2], text[0]
	return string(text)
}
