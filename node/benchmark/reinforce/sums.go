package reinforce

import (
	"fmt"

	"github.com/starling-network/starling/compute/philox"
)

// Sums of two numbers below limit, with zeros in front and the digit of ones first: "170+584=" is continued by "457",
// as 071 + 485 is 754 the other way round. A token is a byte.
const (
	limit   = 500
	digits  = 3
	prompt  = 2*digits + 2
	length  = prompt + digits
	tokens  = 64 // the vocabulary: every byte of a sum is below
	silent  = tokens
	heldOut = 20 // one of 20 sums is never learned from
)

// sums draws sums from a stream of random numbers.
type sums struct {
	seed, stream uint64
	next         uint64
	held         bool // draws from the sums that are held out, and otherwise from the others
}

// fill writes examples [n, length+1]: the prompt as silent tokens, the answer, and a token of no example.
func (s *sums) fill(out []int32) {
	for row := 0; row < len(out); row += length + 1 {
		text := s.draw()
		for i := range length {
			out[row+i] = int32(text[i])
			if i < prompt {
				out[row+i] += silent
			}
		}
		out[row+length] = int32(text[0]) + silent
	}
}

func (s *sums) draw() string {
	for {
		word := philox.Block(s.seed, s.stream, s.next)
		s.next++
		a, b := word[0]%limit, word[1]%limit
		if held := (a*limit+b)*2654435761>>16%heldOut == 0; held == s.held {
			return backwards(a) + "+" + backwards(b) + "=" + backwards(a+b)
		}
	}
}

func backwards(n uint32) string {
	text := []byte(fmt.Sprintf("%0*d", digits, n))
	text[0], text[2] = text[2], text[0]
	return string(text)
}
