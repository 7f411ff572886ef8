// Package vectors gives texts the vectors of trained encoders, and compares them. It trains none.
package vectors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/encoder"
)

// ErrModel wraps every reason why a folder holds no encoder of texts.
var ErrModel = errors.New("not a model that gives vectors to texts")

// Encoder is a trained encoder of texts.
type Encoder struct {
	network   embed.Network
	tokenizer *tokenizer.Tokenizer
	weights   map[string]*tensor.Tensor // by the names of the inputs of programs
}

// Open reads the folder of an encoder, as a job with task: embed writes it. Texts are as long as tokenizer_config.json
// says, if it does, and at most as the model has positions. Errors wrap ErrModel.
func Open(dir fs.FS) (*Encoder, error) {
	f, err := encoder.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	e := &Encoder{tokenizer: f.Tokenizer}
	if e.network, err = embed.Read(f.Config, 0); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrModel, err)
	}
	if f.Length > 0 {
		e.network = e.network.At(f.Length)
	}
	if e.weights, err = f.Weights(e.network); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return e, nil
}

// Encode returns the vector of each of some texts, of which the first tokens count, up to the length of texts of the
// model. A vector has length 1, and the same bits whatever the other texts are.
func (e *Encoder) Encode(ctx context.Context, texts []string, threads int) ([][]float32, error) {
	programs := map[int]*cpu.Exec{} // by the length of texts
	all := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tokens := e.tokenizer.EncodeText(text)
		n := e.network.At(encoder.Rounded(len(tokens)))
		if programs[n.Length()] == nil {
			p, err := model.Vectors(n, 1)
			if err != nil {
				return nil, err
			}
			if programs[n.Length()], err = cpu.Compile(p, threads); err != nil {
				return nil, err
			}
		}
		in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, 1, n.Length()))}
		for k, id := range n.Row(tokens) {
			in["tokens"].I32()[k] = int32(id)
		}
		for name, w := range e.weights {
			in[name] = w
		}
		out, err := programs[n.Length()].Run(in)
		if err != nil {
			return nil, err
		}
		all[i] = out["vectors"].F32()
	}
	return all, nil
}

// Cosine is that of the angle between two vectors of length 1.
func Cosine(x, y []float32) (sum float64) {
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}
