package pretrained

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/detmath"
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
// loss of a window is that of training and its evaluation, to the bit. The probability that a mixture gives a window is
// the mean of those of its experts, weighted by their priors.
func (m Mixture) Evaluate(ctx context.Context, text string, window, threads int) (*Evaluation, error) {
	if window == 0 {
		window = m.Context()
	}
	if window < 1 || window > m.Context() {
		return nil, fmt.Errorf("%w: a window of %d tokens; the context has %d", model.ErrStep, window, m.Context())
	}
	var ids []int32
	tok := m[0].Tokenizer
	for _, id := range tok.EncodeText(text) {
		ids = append(ids, int32(id))
	}
	if len(ids) < 2 {
		return nil, ErrText
	}
	out := &Evaluation{Tokens: len(ids) - 1, Bytes: len(text), Window: window}
	if plain := tok.Encode(text); len(plain) == len(ids) { // the first token is of the text
		first := tok.Decode(plain[:1])
		if !strings.HasPrefix(text, " ") {
			first = strings.TrimPrefix(first, " ") // that the tokenizer put before the text
		}
		out.Bytes -= len(first)
	}
	meters := make([]losses, len(m))
	for i, e := range m {
		meters[i] = newLosses(e.Model, threads)
	}
	var sum float64
	for length := 0; len(ids) > 1; ids = ids[length:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		length = min(window, len(ids)-1)
		each := make([]float64, len(m))
		for i := range meters {
			var err error
			if each[i], err = meters[i].of(ids[:length+1]); err != nil {
				return nil, err
			}
		}
		sum += m.together(each, length) * float64(length)
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

// together is the mean loss of a window of n tokens, given that of each model.
func (m Mixture) together(each []float64, n int) float64 {
	if len(each) == 1 {
		return each[0]
	}
	least := slices.Min(each)
	priors, sum := 0.0, 0.0
	for i, loss := range each {
		priors += m[i].Prior
		sum += m[i].Prior * detmath.Exp64((least-loss)*float64(n))
	}
	return least - detmath.Log64(sum/priors)/float64(n)
}

// losses measures the loss of windows of one model.
type losses struct {
	model   *Model
	threads int
	in      map[string]*tensor.Tensor
	exec    *cpu.Exec
	length  int // tokens that exec predicts
}

func newLosses(m *Model, threads int) losses {
	l := losses{model: m, threads: threads, in: map[string]*tensor.Tensor{}}
	for name, t := range m.Tensors {
		l.in[train.Param+name] = t
	}
	return l
}

// of is the mean loss of the tokens of a window after its first.
func (l *losses) of(ids []int32) (float64, error) {
	if n := len(ids) - 1; n != l.length { // the first window, and a shorter last one
		var err error
		if l.exec, err = l.model.loss(n, l.threads); err != nil {
			return 0, err
		}
		l.length = n
	}
	l.in["tokens"] = tensor.FromI32(ids, 1, len(ids))
	result, err := l.exec.Run(l.in)
	if err != nil {
		return 0, err
	}
	return float64(result["loss"].F32()[0]), nil
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
