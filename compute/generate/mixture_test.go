package generate

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// expert is a model with drawn weights, and another context and other layers for each seed.
func expert(t *testing.T, vocab int, seed uint64) *Batch {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": vocab, "n_positions": 80 + 16*int(seed),
		"n_embd": 8, "n_layer": 1 + int(seed%2), "n_head": 2})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(c, 1)
	if err := b.SetWeights(shaken(c, seed)); err != nil {
		t.Fatal(err)
	}
	return b
}

// shaken are weights with noise, so that tokens have different probabilities.
func shaken(c architecture.Config, seed uint64) map[string]*tensor.Tensor {
	all := c.Init(seed)
	for i, n := range c.Tensors() {
		noise := make([]float32, n.Shape.Elements())
		philox.NormalTo(noise, seed, uint64(i))
		for j := range noise {
			all[n.Name].F32()[j] += 0.5 * noise[j]
		}
	}
	return all
}

func mixture(t *testing.T, priors ...float64) *Mixture {
	t.Helper()
	var experts []*Batch
	for i := range priors {
		experts = append(experts, expert(t, 40, uint64(i)))
	}
	m, err := NewMixture(experts, priors)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func drawnTokens(n, vocab int, seed uint64) []int32 {
	random, ids := philox.New(seed, 0), make([]int32, n)
	for i := range ids {
		ids[i] = int32(random.Uint64n(uint64(vocab)))
	}
	return ids
}

// TestMixtureIsBayes multiplies the probabilities that a mixture gives the tokens of a text, and compares the product
// with the mean of those that the experts give the text. So no text has much less than its best expert gives it.
func TestMixtureIsBayes(t *testing.T) {
	priors := []float64{3, 1, 1.5}
	m, tokens := mixture(t, priors...), drawnTokens(70, 40, 5)
	logOfText := func(model Model) (sum float64) {
		r := NewReader(model)
		for i, id := range tokens[:len(tokens)-1] {
			logits, err := r.Read([]int32{id})
			if err != nil {
				t.Fatal(err)
			}
			sum += logOf(logits, tokens[i+1])
		}
		return sum
	}
	got, mean, all := logOfText(m), 0.0, 0.0
	for _, p := range priors {
		all += p
	}
	best := math.Inf(-1)
	for k, p := range priors {
		log := logOfText(m.experts[k])
		mean += p / all * math.Exp(log)
		best = max(best, log+math.Log(p/all))
	}
	if math.Abs(got-math.Log(mean)) > 1e-4 {
		t.Errorf("a text has the log-probability %v, the mean of the experts is %v", got, math.Log(mean))
	}
	if got < best-1e-4 {
		t.Errorf("a text has the log-probability %v, less than the %v of one expert and its prior", got, best)
	}
}

// TestMixtureReadsInPieces compares the logits after a text that is read whole, token by token, and with another text.
func TestMixtureReadsInPieces(t *testing.T) {
	m, tokens := mixture(t, 1, 1), drawnTokens(75, 40, 7)
	s := m.Sequence(m.Context(), 0)
	whole, err := m.Read(s, tokens)
	if err != nil {
		t.Fatal(err)
	}
	whole = slices.Clone(whole)
	if s.Len() != len(tokens) {
		t.Errorf("%d tokens are read, of %d", s.Len(), len(tokens))
	}
	one, beside := m.Sequence(m.Context(), 0), m.Sequence(m.Context(), 0)
	var got []float32
	for _, id := range tokens {
		rows, err := m.Next([]*Sequence{beside, one}, []int32{3, id})
		if err != nil {
			t.Fatal(err)
		}
		got = rows[1]
	}
	for i := range whole {
		if math.Abs(float64(whole[i]-got[i])) > 1e-4 {
			t.Fatalf("logit %d is %v read whole, %v token by token", i, whole[i], got[i])
		}
	}
	sum := 0.0
	for _, x := range whole {
		sum += math.Exp(float64(x))
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("the probabilities add up to %v", sum)
	}
}

// TestScheduledMixture writes many texts at a time, each of which is the same alone.
func TestScheduledMixture(t *testing.T) {
	asked := []Request{}
	for i := range 7 {
		asked = append(asked, Request{Prompt: drawnTokens(1+9*i, 40, uint64(i)), Tokens: 5 + i,
			Sampling: Sampling{Temperature: 0.8, Seed: uint64(i)}})
	}
	write := func(m Model, texts int, list []Request) [][]int32 {
		s := NewScheduler(m, Limits{Texts: texts, Memory: 1 << 30})
		number, got := map[*Text]int{}, make([][]int32, len(list))
		for i, r := range list {
			text, err := s.Submit(r)
			if err != nil {
				t.Fatal(err)
			}
			number[text] = i
		}
		for waiting, running := s.Load(); waiting+running > 0; waiting, running = s.Load() {
			step(t, s, number, got)
		}
		return got
	}
	together := write(mixture(t, 1, 2), 4, asked)
	for i, r := range asked {
		if alone := write(mixture(t, 1, 2), 1, []Request{r})[0]; !slices.Equal(alone, together[i]) {
			t.Errorf("text %d is %v alone, %v with others", i, alone, together[i])
		}
	}
}

func TestMixtureRefuses(t *testing.T) {
	a, b := expert(t, 40, 0), expert(t, 41, 1)
	for _, c := range []struct {
		experts []*Batch
		priors  []float64
	}{{nil, nil}, {[]*Batch{a}, nil}, {[]*Batch{a, b}, []float64{1, 1}}, {[]*Batch{a, a}, []float64{1, 0}},
		{[]*Batch{a, a}, []float64{1, math.NaN()}}, {[]*Batch{a, a}, []float64{math.Inf(1), 1}}} {
		if _, err := NewMixture(c.experts, c.priors); !errors.Is(err, ErrWeights) {
			t.Errorf("%d experts with priors %v: %v", len(c.experts), c.priors, err)
		}
	}
	m := mixture(t, 1, 1)
	if m.Sequence(10, 1) != nil {
		t.Error("a mixture has an adapter")
	}
	s := m.Sequence(m.Context(), 0)
	for _, tokens := range [][]int32{nil, {-1}, {40}, make([]int32, m.Context()+1)} {
		if _, err := m.Read(s, tokens); err == nil || s.Len() != 0 {
			t.Errorf("%d tokens: %v, and %d are read", len(tokens), err, s.Len())
		}
	}
	bad := mixture(t, 1, 1)
	bad.experts[1].weights["p/transformer.ln_f.bias"].F32()[3] = float32(math.NaN())
	if _, err := bad.Read(bad.Sequence(9, 0), []int32{1}); !errors.Is(err, ErrNumbers) {
		t.Error(err)
	}
}
