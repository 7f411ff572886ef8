package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// GenerateOptions say how text is sampled.
type GenerateOptions struct {
	Prompt      string
	Tokens      int
	Temperature float64 // 0: always the most likely token
	TopK        int     // sample among the K most likely tokens; 0: among all
	Seed        uint64
}

// ErrModel wraps every reason why a folder is not a model that can be run.
var ErrModel = errors.New("not a model that can be run")

// Generator samples from a model folder.
type Generator struct {
	config model.Config
	tok    *tokenizer.Tokenizer
	exec   *program.Exec
	in     map[string]*tensor.Tensor
	window int
}

// OpenModel loads config.json, tokenizer.json and model.safetensors of a folder.
func OpenModel(dir string) (*Generator, error) {
	read := func(name string) ([]byte, error) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrModel, err)
		}
		return b, nil
	}
	config, err1 := read(fileConfig)
	tok, err2 := read(fileTokenizer)
	weights, err3 := read(fileModel)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return decodeModel(config, tok, weights)
}

func decodeModel(config, tok, weights []byte) (*Generator, error) {
	var raw map[string]any
	if err := json.Unmarshal(config, &raw); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, fileConfig, err)
	}
	architecture, _ := raw["model_type"].(string)
	c, err := model.Parse(architecture, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, fileConfig, err)
	}
	t, err := tokenizer.Parse(tok)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, fileTokenizer, err)
	}
	tensors, _, err := safetensors.Decode(weights)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, fileModel, err)
	}
	g, err := newGenerator(c, t)
	if err != nil {
		return nil, err
	}
	return g, g.setWeights(tensors)
}

// newGenerator returns a generator without weights.
func newGenerator(c model.Config, t *tokenizer.Tokenizer) (*Generator, error) {
	g := &Generator{config: c, tok: t, window: c.Context(), in: map[string]*tensor.Tensor{
		"tokens": tensor.New(tensor.Make(tensor.Int32, 1, c.Context())),
	}}
	p, err := model.Logits(c, 1, g.window)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if g.exec, err = program.Compile(p, runtime.GOMAXPROCS(0)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return g, nil
}

// setWeights gives the generator the tensors of a model, by their Hugging Face names.
func (g *Generator) setWeights(tensors map[string]*tensor.Tensor) error {
	for _, t := range g.config.Tensors() {
		w, ok := tensors[t.Name]
		if !ok || !w.Shape.Equal(t.Shape) {
			return fmt.Errorf("%w: %s has no tensor %q of shape %v", ErrModel, fileModel, t.Name, t.Shape)
		}
		g.in[train.Param+t.Name] = w
	}
	return nil
}

// Generate continues the prompt and calls emit with every piece of text. The same options give the same text.
func (g *Generator) Generate(ctx context.Context, opt GenerateOptions, emit func(text string) error) error {
	ids := g.tok.Encode(opt.Prompt)
	if len(ids) == 0 {
		ids = []uint32{0}
	}
	sent := len(g.tok.Decode(ids))
	for n := range opt.Tokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		logits, err := g.next(ids)
		if err != nil {
			return err
		}
		ids = append(ids, sample(logits, opt, uint64(n)))
		text := g.tok.Decode(ids)
		if complete(text) || n == opt.Tokens-1 { // a character may span several tokens
			if err := emit(text[min(sent, len(text)):]); err != nil {
				return err
			}
			sent = len(text)
		}
	}
	return nil
}

// complete reports whether a text does not end within a character.
func complete(text string) bool {
	runes := []rune(text[max(0, len(text)-4):])
	return len(runes) > 0 && runes[len(runes)-1] != '\uFFFD'
}

// next returns the logits after the last token, given as many of the tokens as fit the context.
func (g *Generator) next(ids []uint32) ([]float32, error) {
	ids = ids[max(0, len(ids)-g.window):]
	tokens := g.in["tokens"].I32()
	clear(tokens)
	for i, id := range ids {
		tokens[i] = int32(id)
	}
	out, err := g.exec.Run(g.in)
	if err != nil {
		return nil, err
	}
	vocab := g.config.VocabSize()
	return out["logits"].F32()[(len(ids)-1)*vocab : len(ids)*vocab][:min(vocab, g.tok.VocabSize())], nil
}

// sample draws a token from softmax(logits/temperature), with the n-th number of the seed's stream.
func sample(logits []float32, opt GenerateOptions, n uint64) uint32 {
	order := make([]uint32, len(logits))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	if opt.Temperature <= 0 {
		return order[0]
	}
	if opt.TopK > 0 && opt.TopK < len(order) {
		order = order[:opt.TopK]
	}
	weights := make([]float64, len(order))
	var sum float64
	for i, id := range order {
		weights[i] = kernel.Exp64(float64(logits[id]-logits[order[0]]) / opt.Temperature)
		sum += weights[i]
	}
	draw := kernel.PhiloxU32(opt.Seed, 0, n)
	at := float64(uint64(draw[0])<<21|uint64(draw[1])>>11) / (1 << 53) * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return order[i]
		}
	}
	return order[len(order)-1]
}
