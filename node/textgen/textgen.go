package textgen

import (
	"context"
	"slices"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/generate/text"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/pretrained"
)

// Options say how text is continued.
type Options struct {
	Prompt    string
	Tokens    int // at most
	Sampling  generate.Sampling
	IgnoreEnd bool // continue after the token that ends a text
}

// Generated is what became of a text.
type Generated struct {
	PromptTokens int    `json:"prompt_tokens"`
	Tokens       int    `json:"tokens"`
	Finish       string `json:"finish_reason"` // FinishEnd or FinishLength
}

// Why a text ends.
const (
	FinishEnd    = "stop"   // the model ended it
	FinishLength = "length" // it has as many tokens as were asked for
)

// ErrModel wraps every reason why a folder is not a model that can be run.
var ErrModel = pretrained.ErrModel

// Generator continues text with a model.
type Generator struct {
	tok    *tokenizer.Tokenizer
	reader *generate.Reader
	vocab  int     // ids that may be drawn: those of the tokenizer
	ends   []int32 // the tokens that end a text

	ignored []string // keys of config.json
}

// Ignored lists the keys of config.json that mean nothing to the model.
func (g *Generator) Ignored() []string { return g.ignored }

// OpenModel loads a model folder in Hugging Face form, config.json, tokenizer.json and the tensors, or a mixture of
// such models (pretrained.Open). The error wraps ErrModel and names the file.
func OpenModel(dir string) (*Generator, error) {
	m, err := pretrained.Open(dir)
	if err != nil {
		return nil, err
	}
	model, err := m.Reads(kernel.Cores)
	if err != nil {
		return nil, err
	}
	g := NewGenerator(model, m[0].Tokenizer, m[0].Ends)
	g.ignored = m.Ignored()
	return g, nil
}

// NewGenerator returns a generator of a model whose tokens are those of a tokenizer; some of them end a text.
func NewGenerator(m generate.Model, tok *tokenizer.Tokenizer, ends []int32) *Generator {
	return &Generator{tok: tok, reader: generate.NewReader(m), vocab: tok.VocabSize(), ends: ends}
}

// Generate continues the prompt and calls emit with every piece of text. The same model and options give the same
// text on every machine. A text that exceeds the context is continued from its latest half. The error wraps
// generate.ErrSampling, generate.ErrContext for a prompt that is longer than the context, or is that of emit or ctx.
func (g *Generator) Generate(ctx context.Context, opt Options, emit func(text string) error) (*Generated, error) {
	if err := opt.Sampling.Check(); err != nil {
		return nil, err
	}
	ids := g.tokens(opt.Prompt)
	out := &Generated{PromptTokens: len(ids), Finish: FinishLength}
	g.reader.Reset()
	w := text.NewWriter(g.tok)
	for next := ids; out.Tokens < opt.Tokens; next = ids[len(ids)-1:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if out.Tokens > 0 && g.reader.Len() == g.reader.Context() {
			g.reader.Reset()
			next = ids[len(ids)-max(1, g.reader.Context()/2):]
		}
		logits, err := g.reader.Read(next)
		if err != nil {
			return nil, err
		}
		id := opt.Sampling.Pick(logits[:g.vocab], uint64(out.Tokens))
		if slices.Contains(g.ends, id) && !opt.IgnoreEnd {
			out.Finish = FinishEnd
			break
		}
		ids = append(ids, id)
		out.Tokens++
		piece, _ := w.Add(id)
		if piece == "" {
			continue
		}
		if err := emit(piece); err != nil {
			return nil, err
		}
	}
	if rest := w.Close(); rest != "" {
		return out, emit(rest)
	}
	return out, nil
}

// tokens are those of a prompt; an empty one is the token that ends the text before.
func (g *Generator) tokens(prompt string) []int32 {
	ids := []int32{}
	for _, id := range g.tok.EncodeText(prompt) {
		ids = append(ids, int32(id))
	}
	if len(ids) == 0 {
		ids = append(ids, append(slices.Clone(g.ends), 0)[0])
	}
	return ids
}
