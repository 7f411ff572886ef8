package machine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/gguf"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/benchmark"
)

// GenerateOptions configure the generation.
type GenerateOptions struct {
	Preset  Preset
	Threads int
	Prompt  int    // tokens that are read first
	Tokens  int    // tokens that are generated, one after the other
	Repeat  int    // how often; the fastest counts
	Batches []int  // numbers of texts that are continued at once, besides one
	GGUF    string // a file to write the model to, for another program to run; "" is none
}

// GenerateReport is the speed of generation.
type GenerateReport struct {
	Preset                string  `json:"preset"`
	TokensPerSecond       float64 `json:"tokens_per_second"`        // generated
	PromptTokensPerSecond float64 `json:"prompt_tokens_per_second"` // read
	// generated, by processor time of all threads; 0 if unknown
	TokensPerCPUSecond float64 `json:"tokens_per_cpu_second"`
	Batches            []Batch `json:"batches,omitempty"`
	Prompt             int     `json:"prompt_tokens"`
	Tokens             int     `json:"tokens"`
	PeakMiB            int     `json:"peak_mib"` // resident memory of this process, at most, so far; 0 if unknown
	Parameters         int     `json:"parameters"`
	Threads            int     `json:"threads"`
	Kernels            string  `json:"kernels"`
}

// Batch is the speed of several texts that are continued at once: of all together.
type Batch struct {
	Texts              int     `json:"texts"`
	TokensPerSecond    float64 `json:"tokens_per_second"`
	TokensPerCPUSecond float64 `json:"tokens_per_cpu_second"` // 0 if unknown
}

// Generate measures a model with random weights: how fast it reads a prompt of random tokens, and how fast it continues
// it by the most likely token. The first repetition is not counted.
func Generate(ctx context.Context, o GenerateOptions) (*GenerateReport, error) {
	for name, n := range map[string]int{"threads": o.Threads, "prompt": o.Prompt, "tokens": o.Tokens, "repeat": o.Repeat} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	c, err := architecture.Parse(o.Preset.Architecture, o.Preset.Config)
	if err != nil {
		return nil, err
	}
	if n := o.Prompt + o.Tokens; n > c.Context() {
		return nil, fmt.Errorf("%w: a prompt of %d tokens and %d more do not fit the context of %d", benchmark.ErrOption,
			o.Prompt,
			o.Tokens, c.Context())
	}
	weights := c.Init(0)
	if o.GGUF != "" {
		var file bytes.Buffer
		err := gguf.Encode(&file, gguf.Model{Name: o.Preset.Name, Config: c, Tensors: weights, Tokenizer: tokenizer.Bytes()},
			gguf.F32)
		if err == nil {
			err = os.WriteFile(o.GGUF, file.Bytes(), 0o644)
		}
		if err != nil {
			return nil, benchmark.Unusable(o.GGUF, err)
		}
	}
	batch := generate.NewBatch(c, o.Threads)
	if err := batch.SetWeights(weights); err != nil {
		return nil, err
	}
	reader := generate.NewReader(batch)
	prompt := make([]int32, o.Prompt)
	random := philox.New(0, 0)
	for i := range prompt {
		prompt[i] = int32(random.Uint64n(uint64(c.VocabSize())))
	}
	r := &GenerateReport{Preset: o.Preset.Name, Prompt: o.Prompt, Tokens: o.Tokens, Parameters: c.Parameters(),
		Threads: o.Threads, Kernels: kernel.Active().String()}
	for i := range o.Repeat + 1 {
		read, generated, cpu, err := generateOnce(ctx, reader, prompt, o.Tokens)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			r.PromptTokensPerSecond = max(r.PromptTokensPerSecond, benchmark.Rounded(float64(o.Prompt)/read.Seconds(), 1))
			r.TokensPerSecond = max(r.TokensPerSecond, benchmark.Rounded(float64(o.Tokens)/generated.Seconds(), 1))
			if cpu > 0 {
				r.TokensPerCPUSecond = max(r.TokensPerCPUSecond, benchmark.Rounded(float64(o.Tokens)/cpu.Seconds(), 1))
			}
		}
	}
	for _, n := range o.Batches {
		b, err := generateBatch(ctx, c, weights, o, n, prompt)
		if err != nil {
			return nil, err
		}
		r.Batches = append(r.Batches, b)
	}
	_, r.PeakMiB = benchmark.Usage()
	return r, nil
}

// generateBatch continues n texts at once by the most likely tokens. The first repetition is not counted.
func generateBatch(ctx context.Context, c architecture.Config, weights map[string]*tensor.Tensor, o GenerateOptions,
	n int,
	prompt []int32) (Batch, error) {
	out := Batch{Texts: n}
	if err := benchmark.Positive("batch", n); err != nil {
		return out, err
	}
	batch := generate.NewBatch(c, o.Threads)
	if err := batch.SetWeights(weights); err != nil {
		return out, err
	}
	for i := range o.Repeat + 1 {
		texts, tokens := make([]*generate.Sequence, n), make([]int32, n)
		for j := range texts {
			texts[j] = batch.Sequence(c.Context(), 0)
			logits, err := batch.Read(texts[j], prompt)
			if err != nil {
				return out, err
			}
			tokens[j] = generate.Sampling{}.Pick(logits, 0)
		}
		used, _ := benchmark.Usage()
		begin := time.Now()
		for range o.Tokens {
			if err := ctx.Err(); err != nil {
				return out, err
			}
			logits, err := batch.Next(texts, tokens)
			if err != nil {
				return out, err
			}
			for j := range tokens {
				tokens[j] = generate.Sampling{}.Pick(logits[j], 0)
			}
		}
		took := time.Since(begin)
		after, _ := benchmark.Usage()
		if i == 0 {
			continue
		}
		made := float64(n * o.Tokens)
		out.TokensPerSecond = max(out.TokensPerSecond, benchmark.Rounded(made/took.Seconds(), 1))
		if cpu := after - used; cpu > 0 {
			out.TokensPerCPUSecond = max(out.TokensPerCPUSecond, benchmark.Rounded(made/cpu.Seconds(), 1))
		}
	}
	return out, nil
}

// generateOnce times the reading of a prompt, and then the tokens after the first one that follows it.
func generateOnce(ctx context.Context, reader *generate.Reader, prompt []int32,
	tokens int) (read, generated, cpu time.Duration, err error) {
	reader.Reset()
	begin := time.Now()
	logits, err := reader.Read(prompt)
	read = time.Since(begin)
	used, _ := benchmark.Usage()
	begin = time.Now()
	for n := 0; n < tokens && err == nil; n++ {
		if err = ctx.Err(); err == nil {
			logits, err = reader.Read([]int32{generate.Sampling{}.Pick(logits, uint64(n))})
		}
	}
	generated = time.Since(begin)
	after, _ := benchmark.Usage()
	return read, generated, after - used, err
}
