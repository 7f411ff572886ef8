package generate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// row is the stages of a model in one process, each with the tensors of its layers alone.
type row []*section.Section

func (r row) Run(p section.Pass) (hidden []float32, err error) {
	for _, s := range r {
		if p.Hidden, err = s.Run(p); err != nil {
			return nil, err
		}
	}
	return section.Last(p, p.Hidden), nil
}

func (r row) End(id uint64) {
	for _, s := range r {
		s.End(id)
	}
}

func (row) Left(uint64) []int { return nil }

// inStages is a model in stages.
func inStages(t *testing.T, c architecture.Config, stages int) (*Pipeline, row) {
	t.Helper()
	l, err := section.Divide(c, stages)
	if err != nil {
		t.Fatal(err)
	}
	all := weights(c)
	held := func(part int) map[string]*tensor.Tensor {
		own := map[string]*tensor.Tensor{}
		for _, n := range l.Tensors(part) {
			own[n.Name] = all[n.Name]
		}
		return own
	}
	var r row
	for stage := 1; stage <= stages; stage++ {
		s, err := section.New(l, stage, held(stage), 1)
		if err != nil {
			t.Fatal(err)
		}
		r = append(r, s)
	}
	p, err := NewPipeline(l, held(section.Front), 1, r)
	if err != nil {
		t.Fatal(err)
	}
	return p, r
}

// TestStagesWriteTheTextsOfTheWhole writes many texts at once with every architecture, with a model that has one
// tensor for its embedding and its output, and with one that turns the residual stream.
func TestStagesWriteTheTextsOfTheWhole(t *testing.T) {
	for _, name := range append(architecture.Architectures(), "tied", "turned") {
		keys := map[string]any{"num_hidden_layers": 4, "hidden_size": 16, "num_attention_heads": 2, "vocab_size": 31,
			"max_position_embeddings": 70}
		of := name
		if name == "tied" {
			of, keys["tie_word_embeddings"] = architecture.Llama, true
		}
		if name == "turned" {
			of, keys["starling_turns"] = architecture.Llama, []any{1, 2, 4}
		}
		keys[cmp.Or(map[string]string{architecture.OPT: "ffn_dim"}[of], "intermediate_size")] = 24
		if of == architecture.GPT2 {
			keys = map[string]any{"n_layer": 4, "n_embd": 16, "n_head": 2, "n_positions": 70, "vocab_size": 31}
		}
		c, err := architecture.Parse(of, keys)
		if err != nil {
			t.Fatal(err)
		}
		all := requests(c, 3, 0)
		for i := range all { // one longer than a piece, and than the smallest memory
			all[i].Prompt, all[i].Tokens = slices.Repeat(all[i].Prompt, 66)[:[]int{66, 5, 1}[i]], 3+i
		}
		want := together(t, batch(t, c), all)
		counts := []int{3}
		if of == architecture.Llama || of == architecture.GPT2 {
			counts = []int{1, 2, 4}
		}
		for _, stages := range counts {
			p, r := inStages(t, c, stages)
			if got := together(t, p, all); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Errorf("%s in %d stages: %v, the whole model writes %v", name, stages, got, want)
			}
			for i, s := range r {
				if s.Memory(func(uint64) bool { return true }) != 0 {
					t.Errorf("%s: stage %d remembers texts that have ended", name, i+1)
				}
			}
		}
	}
}

// together writes texts with a scheduler: each as its tokens, with the bits of their probabilities.
func together(t *testing.T, m Model, all []Request) [][]string {
	t.Helper()
	s := NewScheduler(m, Limits{Texts: 3, Memory: 1 << 30})
	texts := map[*Text]int{}
	for i, r := range all {
		x, err := s.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		texts[x] = i
	}
	made := make([][]string, len(all))
	for waiting, running := s.Load(); waiting+running > 0; waiting, running = s.Load() {
		tokens, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range tokens {
			if x.Err != nil {
				t.Fatal(x.Err)
			}
			made[texts[x.Text]] = append(made[texts[x.Text]], fmt.Sprint(x.ID, x.Log))
		}
	}
	return made
}

// A model in stages without one of them, but the last, has the bits of the model without its layers.
func TestStagesAreLeftOut(t *testing.T) {
	all := []Request{{Prompt: []int32{1, 2, 3}, Tokens: 4}, {Prompt: []int32{4}, Tokens: 6}}
	for _, name := range []string{architecture.Llama, architecture.GPT2, architecture.OPT, architecture.Phi} {
		c, err := architecture.Parse(name, map[string]any{"num_hidden_layers": 4, "hidden_size": 16,
			"num_attention_heads": 2, "vocab_size": 31, "max_position_embeddings": 70})
		if err != nil {
			t.Fatal(err)
		}
		p, r := inStages(t, c, 4)
		for stage := range 3 {
			rest := map[string]*tensor.Tensor{}
			for of, x := range weights(c) {
				if n, ok := c.LayerOf(of); ok && n == stage {
					continue
				} else if ok && n > stage {
					of = strings.Replace(of, fmt.Sprintf(".%d.", n), fmt.Sprintf(".%d.", n-1), 1)
				}
				rest[of] = x
			}
			short := c
			short.Layers--
			b := NewBatch(short, 1)
			if err := b.SetWeights(rest); err != nil {
				t.Fatal(err)
			}
			p.stages = slices.Concat(r[:stage], r[stage+1:])
			if got, want := together(t, p, all), together(t, b, all); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Errorf("%s without stage %d: %v, the model without its layer writes %v", name, stage+1, got, want)
			}
		}
	}
}

// A stage holds its layers, the front all others, and no tensor is held twice.
func TestStagesHaveTheirLayersAlone(t *testing.T) {
	for name, c := range models(t) {
		l, err := section.Divide(c, 2)
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]int{}
		for part := range 3 {
			for _, n := range l.Tensors(part) {
				held[n.Name]++
				if layer, ok := c.LayerOf(n.Name); ok != (part > 0) || ok && layer != part-1 {
					t.Errorf("%s: part %d has %s", name, part, n.Name)
				}
			}
		}
		if len(held) != len(c.Tensors()) || slices.Max(slices.Collect(maps.Values(held))) > 1 {
			t.Errorf("%s: parts hold %v", name, held)
		}
	}
}
