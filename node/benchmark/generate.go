package benchmark

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/gguf"
)

// GenerateOptions say what is generated.
type GenerateOptions struct {
	Preset  Preset
	Threads int
	Prompt  int    // tokens that are read first
	Tokens  int    // tokens that are generated, one after the other
	Repeat  int    // how often; the fastest counts
	GGUF    string // a file to write the model to, for another program to run; "" is none
}

// GenerateReport is the speed of generation.
type GenerateReport struct {
	Preset                string  `json:"preset"`
	TokensPerSecond       float64 `json:"tokens_per_second"`        // generated
	PromptTokensPerSecond float64 `json:"prompt_tokens_per_second"` // read
	TokensPerCPUSecond    float64 `json:"tokens_per_cpu_second"`    // generated, by processor time of all threads; 0 if unknown
	Prompt                int     `json:"prompt_tokens"`
	Tokens                int     `json:"tokens"`
	PeakMiB               int     `json:"peak_mib"` // resident memory of this process, at most, so far; 0 if unknown
	Parameters            int     `json:"parameters"`
	Threads               int     `json:"threads"`
	Kernels               string  `json:"kernels"`
}

// Generate measures a model with random weights: how fast it reads a prompt of random tokens, and how fast it continues it
// by the most likely token. The first repetition is not counted.
func Generate(ctx context.Context, o GenerateOptions) (*GenerateReport, error) {
	for name, n := range map[string]int{"threads": o.Threads, "prompt": o.Prompt, "tokens": o.Tokens, "repeat": o.Repeat} {
		if err := positive(name, n); err != nil {
			return nil, err
		}
	}
	c, err := model.Parse(o.Preset.Architecture, o.Preset.Config)
	if err != nil {
		return nil, err
	}
	if n := o.Prompt + o.Tokens; n > c.Context() {
		return nil, fmt.Errorf("%w: a prompt of %d tokens and %d more do not fit the context of %d", ErrOption, o.Prompt, o.Tokens, c.Context())
	}
	weights := c.Init(0)
	if o.GGUF != "" {
		var file bytes.Buffer
		err := gguf.Encode(&file, gguf.Model{Name: o.Preset.Name, Config: c, Tensors: weights, Tokenizer: tokenizer.Bytes()}, gguf.F32)
		if err == nil {
			err = os.WriteFile(o.GGUF, file.Bytes(), 0o644)
		}
		if err != nil {
			return nil, unusable(o.GGUF, err)
		}
	}
	reader := generate.NewReader(c, o.Threads)
	if err := reader.SetWeights(weights); err != nil {
		return nil, err
	}
	prompt := make([]int32, o.Prompt)
	random := kernel.NewPhilox(0, 0)
	for i := range prompt {
		prompt[i] = int32(random.Uint64n(uint64(c.VocabSize())))
	}
	r := &GenerateReport{Preset: o.Preset.Name, Prompt: o.Prompt, Tokens: o.Tokens, Parameters: c.Parameters(), Threads: o.Threads, Kernels: kernel.Active().String()}
	for i := range o.Repeat + 1 {
		read, generated, cpu, err := generateOnce(ctx, reader, prompt, o.Tokens)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			r.PromptTokensPerSecond = max(r.PromptTokensPerSecond, rounded(float64(o.Prompt)/read.Seconds(), 1))
			r.TokensPerSecond = max(r.TokensPerSecond, rounded(float64(o.Tokens)/generated.Seconds(), 1))
			if cpu > 0 {
				r.TokensPerCPUSecond = max(r.TokensPerCPUSecond, rounded(float64(o.Tokens)/cpu.Seconds(), 1))
			}
		}
	}
	_, r.PeakMiB = usage()
	return r, nil
}

// generateOnce times the reading of a prompt, and then the tokens after the first one that follows it.
func generateOnce(ctx context.Context, reader *generate.Reader, prompt []int32, tokens int) (read, generated, cpu time.Duration, err error) {
	reader.Reset()
	begin := time.Now()
	logits, err := reader.Read(prompt)
	read = time.Since(begin)
	used, _ := usage()
	begin = time.Now()
	for n := 0; n < tokens && err == nil; n++ {
		if err = ctx.Err(); err == nil {
			logits, err = reader.Read([]int32{generate.Sampling{}.Pick(logits, uint64(n))})
		}
	}
	generated = time.Since(begin)
	after, _ := usage()
	return read, generated, after - used, err
}
