package check_test

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/blocks"
	"github.com/starling-network/starling/compute/model/check"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

const (
	context = 300
	vocab   = 31 // of 33 in the tables
)

// ends are seldom drawn.
var ends = []int32{29, 30}

func models(t testing.TB) map[string]architecture.Config {
	t.Helper()
	rotary := func(more map[string]any) map[string]any {
		keys := map[string]any{"vocab_size": 33, "max_position_embeddings": context, "hidden_size": 24,
			"intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2,
			"head_dim": 4}
		for k, v := range more {
			keys[k] = v
		}
		return keys
	}
	all := map[string]architecture.Config{}
	for name, m := range map[string]struct {
		family string
		keys   map[string]any
	}{
		"gpt2": {architecture.GPT2, map[string]any{"vocab_size": 33, "n_positions": context, "n_embd": 24, "n_layer": 2,
			"n_head": 3}},
		"llama":   {architecture.Llama, rotary(nil)},
		"mistral": {architecture.Mistral, rotary(map[string]any{"sliding_window": 37})},
		"gemma2": {architecture.Gemma2, rotary(map[string]any{"sliding_window": 50, "attn_logit_softcapping": 2.0,
			"final_logit_softcapping": 4.0})},
	} {
		c, err := architecture.Parse(m.family, m.keys)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = c
	}
	return all
}

func weights(c architecture.Config, seed uint64) map[string]*tensor.Tensor {
	all := c.Init(1)
	for i, n := range c.Tensors() {
		noise := make([]float32, n.Shape.Elements())
		philox.NormalTo(noise, seed, uint64(i))
		for j := range noise {
			all[n.Name].F32()[j] += 0.2 * noise[j]
		}
	}
	return all
}

// served generates texts together, as a server does.
func served(t testing.TB, c architecture.Config, w map[string]*tensor.Tensor, texts int,
	all []generate.Request) (answers []given.Answer) {
	t.Helper()
	b := generate.NewBatch(c, 1)
	if err := b.SetWeights(w); err != nil {
		t.Fatal(err)
	}
	return servedBy(t, b, texts, all)
}

// servedBy is served with the weights, and the adapters, of a batch.
func servedBy(t testing.TB, b *generate.Batch, texts int, all []generate.Request) (answers []given.Answer) {
	t.Helper()
	s := generate.NewScheduler(b, generate.Limits{Texts: texts, Memory: math.MaxInt64})
	at := map[*generate.Text]int{}
	for i, r := range all {
		text, err := s.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		at[text] = i
		answers = append(answers, given.Answer{Prompt: r.Prompt, Seed: r.Sampling.Seed, First: r.Sampling.First,
			Drawing: given.NewDrawing(generate.Millionths(r.Sampling.Temperature, false),
				generate.Millionths(r.Sampling.TopP, true))})
	}
	for waiting, running := s.Load(); waiting+running > 0; waiting, running = s.Load() {
		tokens, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			if token.Err != nil {
				t.Fatal(token.Err)
			}
			a := &answers[at[token.Text]]
			a.Answer, a.Stopped = append(a.Answer, token.ID), token.Finish == generate.FinishEnd
		}
	}
	return answers
}

// requests are texts of all lengths and samplings.
func requests(n int) (all []generate.Request) {
	random := philox.New(11, 0)
	for i := range n {
		r := generate.Request{Prompt: make([]int32, 1+random.Uint64n(150)), Tokens: 1 + int(random.Uint64n(140)),
			Vocab: vocab, Ends: ends, Sampling: generate.Sampling{Temperature: float64(i%4) * 0.4, Seed: uint64(i) << 60,
				Checked: true, First: uint64(i%2) * 1000, TopP: []float64{0, 0.5, 0.95}[i%3]}}
		for j := range r.Prompt {
			r.Prompt[j] = int32(random.Uint64n(vocab))
		}
		all = append(all, r)
	}
	return all
}

// checker executes checking programs.
type checker struct {
	t     testing.TB
	c     architecture.Config
	in    map[string]*tensor.Tensor
	execs map[int]*cpu.Exec
}

func newChecker(t testing.TB, c architecture.Config, w map[string]*tensor.Tensor) *checker {
	x := &checker{t, c, map[string]*tensor.Tensor{}, map[int]*cpu.Exec{}}
	for name, tensor := range w {
		x.in[parts.Param+name] = tensor
	}
	return x
}

func (x *checker) wrong(length int, a given.Answer) int {
	x.t.Helper()
	if x.execs[length] == nil {
		p, err := check.Program(x.c, length, vocab, ends)
		if err != nil {
			x.t.Fatal(err)
		}
		if x.execs[length], err = cpu.Compile(p, 1); err != nil {
			x.t.Fatal(err)
		}
	}
	for name, tensor := range a.Inputs(length) {
		x.in[name] = tensor
	}
	out, err := x.execs[length].Run(x.in)
	if err != nil {
		x.t.Fatal(err)
	}
	wrong := int(out[given.Wrong].I32()[0])
	if right := given.Right(length); right.Root() == out[given.Wrong].Root() != (wrong == given.Rows(length)) {
		x.t.Fatalf("the root of %d is that of none", wrong)
	}
	return wrong
}

func lengthOf(a given.Answer) int {
	n := 64
	for n < len(a.Prompt)+len(a.Answer) {
		n *= 2
	}
	return n
}

// Answers of all lengths, written together with others, by all samplings, have no wrong token, and the logits of the
// pass have the bits of those that the tokens were drawn from.
func TestAnswersPass(t *testing.T) {
	for name, c := range models(t) {
		w := weights(c, 2)
		x := newChecker(t, c, w)
		stopped := 0
		for _, texts := range []int{1, 5} {
			for i, a := range served(t, c, w, texts, requests(12)) {
				length := lengthOf(a)
				if n := x.wrong(length, a); n != given.Rows(length) {
					t.Errorf("%s, answer %d of %d at a time: token %d of %d after %d is wrong", name, i, texts, n, len(a.Answer),
						len(a.Prompt))
				}
				if a.Stopped {
					stopped++
				}
				if i == 0 && texts == 1 {
					sameLogits(t, c, w, a, length)
				}
			}
		}
		if stopped == 0 {
			t.Errorf("%s: no answer ended", name)
		}
	}
}

// sameLogits compares the logits of the pass with those of generate, bit for bit.
func sameLogits(t *testing.T, c architecture.Config, w map[string]*tensor.Tensor, a given.Answer, length int) {
	t.Helper()
	b := generate.NewBatch(c, 1)
	if err := b.SetWeights(w); err != nil {
		t.Fatal(err)
	}
	got, s := check.Logits(t, c, w, a, length), b.Sequence(c.Context(), 0)
	next := a.Prompt
	for i, id := range a.Answer {
		want, err := b.Read(s, next)
		if err != nil {
			t.Fatal(err)
		}
		for j := range want {
			if x := got[i*c.VocabSize()+j]; math.Float32bits(x) != math.Float32bits(want[j]) {
				t.Fatalf("logit %d of token %d is %v in a pass and %v when it is drawn", j, i, x, want[j])
			}
		}
		next = []int32{id}
	}
}

// Changes that a provider could make are found, at the place where they begin.
func TestLiesAreFound(t *testing.T) {
	c := models(t)["llama"]
	w := weights(c, 2)
	x := newChecker(t, c, w)
	r := requests(4)[3]
	r.Tokens = 60
	var honest given.Answer
	for r.Sampling.Seed = 1; len(honest.Answer) < r.Tokens || honest.Stopped; r.Sampling.Seed++ {
		honest = served(t, c, w, 1, []generate.Request{r})[0]
	}
	n, length := len(honest.Answer), lengthOf(honest)
	if got := x.wrong(length, honest); got != given.Rows(length) {
		t.Fatalf("token %d of the honest answer is wrong", got)
	}
	with := func(change func(a *given.Answer)) given.Answer {
		a := honest
		a.Answer = slices.Clone(honest.Answer)
		change(&a)
		return a
	}
	for _, at := range []int{0, 7, n - 1} {
		a := with(func(a *given.Answer) { a.Answer[at] = (a.Answer[at] + 1) % 29 })
		if got := x.wrong(length, a); got != at {
			t.Errorf("token %d is another, and token %d is found", at, got)
		}
		a.From = at // a later part begins with it
		if got := x.wrong(length, a); got != 0 {
			t.Errorf("from token %d on, which is another, token %d is found", at, got)
		}
	}
	for name, a := range map[string]given.Answer{
		"another seed":          with(func(a *given.Answer) { a.Seed++ }),
		"a wrong offset":        with(func(a *given.Answer) { a.First++ }),
		"no temperature":        with(func(a *given.Answer) { a.Drawing = given.NewDrawing(0, 1) }),
		"a temperature":         with(func(a *given.Answer) { a.Drawing.Inverse /= 2 }),
		"an early end":          with(func(a *given.Answer) { a.Answer, a.Stopped = append(a.Answer[:9], ends[0]), true }),
		"an end that is none":   with(func(a *given.Answer) { a.Stopped = true }),
		"an end that is hidden": with(func(a *given.Answer) { a.Answer[9] = ends[1] }),
		"no token":              with(func(a *given.Answer) { a.Answer[3] = 1 << 30 }),
		"another prompt":        with(func(a *given.Answer) { a.Prompt = append([]int32{a.Prompt[0] ^ 1}, a.Prompt[1:]...) }),
		"a shorter prompt":      with(func(a *given.Answer) { a.Prompt = a.Prompt[1:] }),
	} {
		if got := x.wrong(length, a); got == given.Rows(length) {
			t.Errorf("%s is not found", name)
		}
	}
	quantised := map[string]*tensor.Tensor{}
	for name, tensor := range w {
		quantised[name] = tensor
		if len(tensor.Shape.Dims) == 2 {
			codes, scales, err := blocks.Quantise(tensor, 8)
			if err != nil {
				t.Fatal(err)
			}
			quantised[name] = blocks.Restore(codes, scales)
		}
	}
	for name, other := range map[string]map[string]*tensor.Tensor{"another model": weights(c, 3), "8 bits": quantised} {
		all := requests(8)
		for i := range all {
			all[i].Tokens, all[i].Vocab = 140, 29 // no ends
		}
		found := 0
		for _, a := range served(t, c, other, 4, all) {
			if x.wrong(lengthOf(a), a) < given.Rows(lengthOf(a)) {
				found++
			}
		}
		if found < 7 {
			t.Errorf("of 8 answers of %s %d are found", name, found)
		}
	}
}

// A long answer is decided in parts.
func TestPartsOfAnAnswer(t *testing.T) {
	c := models(t)["gpt2"]
	w := weights(c, 2)
	x := newChecker(t, c, w)
	r := requests(2)[1]
	r.Prompt, r.Tokens, r.Ends = r.Prompt[:1], context, []int32{}
	a := served(t, c, w, 1, []generate.Request{r})[0]
	if len(a.Answer) != context {
		t.Fatalf("%d tokens", len(a.Answer))
	}
	p, err := check.Program(c, 512, vocab, nil)
	if err != nil {
		t.Fatal(err)
	}
	if x.execs[512], err = cpu.Compile(p, 1); err != nil {
		t.Fatal(err)
	}
	a.Answer[280]++
	for from, want := range map[int]int{0: 256, 25: 255, 256: 24, 280: 0} {
		a.From = from
		if got := x.wrong(512, a); got != want {
			t.Errorf("from token %d on, token %d is found, not %d", from, got, want)
		}
	}
}

// BenchmarkCheck compares the pass with the draw of an answer of 256 tokens.
func BenchmarkCheck(b *testing.B) {
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": 8192, "max_position_embeddings": 1024,
		"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 8, "num_attention_heads": 8,
		"num_key_value_heads": 8, "head_dim": 32})
	if err != nil {
		b.Fatal(err)
	}
	w := c.Init(1)
	r := generate.Request{Prompt: make([]int32, 64), Tokens: 256,
		Sampling: generate.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 5, Checked: true}}
	var a given.Answer
	b.Run("draw", func(b *testing.B) {
		for b.Loop() {
			a = served(b, c, w, 1, []generate.Request{r})[0]
		}
	})
	x := newChecker(b, c, w)
	p, err := check.Program(c, 512, c.VocabSize(), nil)
	if err != nil {
		b.Fatal(err)
	}
	if x.execs[512], err = cpu.Compile(p, 1); err != nil {
		b.Fatal(err)
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if n := x.wrong(512, a); n != 256 {
				b.Fatal(n)
			}
		}
	})
}
