// Package given is what the checking program of an answer is given besides the weights, and what it must find. Parties
// and the chain make these inputs from a receipt; package check makes the program, and compute/generate draws by the
// same rule.
package given

import (
	"math"

	"github.com/starling-network/starling/compute/tensor"
)

// Window is how many tokens of an answer an execution decides on, at most.
const Window = 256

// Inputs of the program besides the weights, and its output.
const (
	Text  = "text"  // int32 [length]: the prompt, the answer, then any
	Place = "place" // int32 [4]: see Answer.Inputs
	Draw  = "draw"  // float32 [3]: a Drawing
	Key   = "key"   // int64 [3]: seed, stream, and number of the draw of the first token that is decided
	Wrong = "wrong" // int32: the first token that is another, from the first one decided; Rows if there is none
)

// Stream is the random stream of a seed by which tokens of answers that can be checked are drawn.
const Stream = 1

// Rows is how many tokens a program of a length decides on.
func Rows(length int) int { return min(length, Window) }

// Drawing is how a token is decided: the highest of logits times Inverse plus Noise times noise of the standard Gumbel
// distribution, among the most probable tokens that have the share Share of all probability together. The first one of
// equals is taken.
type Drawing struct{ Inverse, Share, Noise float32 }

// all is a share that cuts no token off: what has less than e^-32 of the highest probability is drawn by no noise.
const all = 2

// NewDrawing is the drawing at a temperature, by a share, both in millionths. Temperature 0 takes the most likely
// token.
func NewDrawing(temperature, share uint32) Drawing {
	const million = 1_000_000
	if temperature == 0 {
		return Drawing{1, all, 0}
	}
	d := Drawing{float32(million / float64(temperature)), all, 1}
	if share < million {
		d.Share = float32(float64(share) / million)
	}
	return d
}

// Answer is an answer, and from which of its tokens on an execution decides.
type Answer struct {
	Prompt, Answer []int32
	From           int
	Stopped        bool // the last token is one that ends texts
	Drawing        Drawing
	Seed, First    uint64 // of the draws: the seed, and the number of that of the first token of the answer
}

// Rows is how many tokens are decided by a program for texts of a length.
func (a Answer) Rows(length int) int { return max(0, min(Rows(length), len(a.Answer)-a.From)) }

// Inputs are those of a program for texts of a length, which holds the prompt and the answer.
func (a Answer) Inputs(length int) map[string]*tensor.Tensor {
	text := make([]int32, length)
	copy(text[copy(text, a.Prompt):], a.Answer)
	end := -1 // the decided token which is the end
	if a.Stopped {
		end = len(a.Answer) - 1 - a.From
	}
	return map[string]*tensor.Tensor{
		Text:  tensor.FromI32(text, length),
		Place: tensor.FromI32([]int32{int32(len(a.Prompt)), int32(a.From), int32(a.Rows(length)), int32(end)}, 4),
		Draw:  tensor.FromF32([]float32{a.Drawing.Inverse, a.Drawing.Share, a.Drawing.Noise}, 3),
		Key:   tensor.FromI64([]int64{int64(a.Seed), Stream, int64(a.First + uint64(a.From))}, 3),
	}
}

// Right is the output of the program for texts of a length that finds no wrong token.
func Right(length int) *tensor.Tensor { return tensor.FromI32([]int32{int32(Rows(length))}) }

// Words is how many random words the draw of a token takes from the stream of a seed, of a number of tokens: whole
// blocks.
func Words(vocab int) int { return (vocab + 3) / 4 * 4 }

// Lowest is the score of a token that is cut off.
const Lowest = -math.MaxFloat32
