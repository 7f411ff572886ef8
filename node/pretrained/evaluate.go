package pretrained

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// ErrText is returned for a text that is too short to say anything about a model.
var ErrText = errors.New("a text of fewer than two tokens cannot be predicted")

// Evaluation is how well a model predicts a text.
type Evaluation struct {
	Loss        float64 `json:"loss"`                    // mean over the tokens, nats
	Perplexity  float64 `json:"perplexity,omitempty"`    // exp(Loss), of text
	BitsPerByte float64 `json:"bits_per_byte,omitempty"` // of the text, whatever its tokens are
	Tokens      int     `json:"tokens"`                  // that were predicted: all but the first
	Bytes       int     `json:"bytes,omitempty"`         // of these; 0 if not known
	Window      int     `json:"window"`                  // tokens that the model sees at most

	// besides the loss, of a run that does not predict text
	Measured map[string]float64 `json:"measured,omitempty"`
}

// Evaluate measures how well the model predicts a text, cut into windows of the given number of tokens, 0 for as many
// as the context holds: each token but the first of the text is predicted once, from those before it in its window. The
// loss of a window is that of training and its evaluation, to the bit.
func (m *Model) Evaluate(ctx context.Context, text string, window, threads int) (*Evaluation, error) {
	if window == 0 {
		window = m.Config.Context()
	}
	if window < 1 || window > m.Config.Context() {
		return nil, fmt.Errorf("%w: a window of %d tokens; the context has %d", model.ErrStep, window, m.Config.Context())
	}
	var ids []int32
	for _, id := range m.Tokenizer.EncodeText(text) {
		ids = append(ids, int32(id))
	}
	if len(ids) < 2 {
		return nil, ErrText
	}
	out := &Evaluation{Tokens: len(ids) - 1, Bytes: len(text), Window: window}
	if plain := m.Tokenizer.Encode(text); len(plain) == len(ids) { // the first token is of the text
		first := m.Tokenizer.Decode(plain[:1])
		if !strings.HasPrefix(text, " ") {
			first = strings.TrimPrefix(first, " ") // that the tokenizer put before the text
		}
		out.Bytes -= len(first)
	}
	in := map[string]*tensor.Tensor{}
	for name, t := range m.Tensors {
		in[train.Param+name] = t
	}
	var exec *cpu.Exec
	var sum float64
	for length := 0; len(ids) > 1; ids = ids[length:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if n := min(window, len(ids)-1); n != length { // the first window, and a shorter last one
			var err error
			if exec, err = m.loss(n, threads); err != nil {
				return nil, err
			}
			length = n
		}
		in["tokens"] = tensor.FromI32(ids[:length+1], 1, length+1)
		result, err := exec.Run(in)
		if err != nil {
			return nil, err
		}
		sum += float64(result["loss"].F32()[0]) * float64(length)
	}
	out.Loss = sum / float64(out.Tokens)
	out.Perplexity = math.Exp(out.Loss)
	out.BitsPerByte = BitsPerByte(out.Loss, out.Tokens, out.Bytes)
	return out, nil
}

// BitsPerByte are the bits that a model needs for a byte of a text, of which it predicts so many tokens with a mean
// loss in nats.
func BitsPerByte(loss float64, tokens, bytes int) float64 {
	return loss * float64(tokens) / math.Ln2 / float64(max(1, bytes))
}

// loss is the program of the loss of one window.
func (m *Model) loss(length, threads int) (*cpu.Exec, error) {
	task, err := model.Language(m.Config, 1, length)
	if err != nil {
		return nil, err
	}
	p, err := task.Eval()
	if err != nil {
		return nil, err
	}
	return cpu.Compile(p, threads)
}
