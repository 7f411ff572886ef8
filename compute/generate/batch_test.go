package generate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/model/adapter"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// adapted returns an adapter of a model with weights far from nothing.
func adapted(t *testing.T, c architecture.Config, l architecture.LoRA, seed uint64) Adapter {
	t.Helper()
	a, err := c.Adapt(l)
	if err != nil {
		t.Fatal(err)
	}
	tensors := a.InitAdapters(seed)
	for i, n := range a.Adapters() {
		philox.NormalTo(tensors[n.Name].F32(), seed, uint64(100+i))
		for j := range tensors[n.Name].F32() {
			tensors[n.Name].F32()[j] *= 0.3
		}
	}
	return Adapter{a, tensors}
}

// adaptersOf are three that differ in layers, rank and scale.
func adaptersOf(t *testing.T, c architecture.Config) []Adapter {
	layer := map[string]string{architecture.GPT2: "c_fc", architecture.Llama: "v_proj"}[c.Architecture()]
	return []Adapter{
		adapted(t, c, architecture.LoRA{Rank: 2, Alpha: 3, Targets: []string{architecture.AllLinear}}, 1),
		adapted(t, c, architecture.LoRA{Rank: 5, Alpha: 5, Targets: []string{layer}}, 2),
		adapted(t, c, architecture.LoRA{Rank: 1, Alpha: 7, Targets: []string{architecture.AllLinear}}, 3),
	}
}

func batch(t *testing.T, c architecture.Config, adapters ...Adapter) *Batch {
	t.Helper()
	b := NewBatch(c, 1)
	if err := b.SetWeights(weights(c), adapters...); err != nil {
		t.Fatal(err)
	}
	return b
}

// requests are texts of all lengths, samplings and adapters.
func requests(c architecture.Config, n, adapters int) (all []Request) {
	random := philox.New(11, 0)
	for i := range n {
		r := Request{Prompt: make([]int32, 1+random.Uint64n(100)), Tokens: 1 + int(random.Uint64n(40)),
			Adapter: i % (adapters + 1), Sampling: Sampling{Temperature: float64(i%3) / 2, TopP: 0.9, Seed: uint64(i)}}
		for j := range r.Prompt {
			r.Prompt[j] = int32(random.Uint64n(uint64(c.VocabSize())))
		}
		all = append(all, r)
	}
	return all
}

// alone generates one text in a batch of its own.
func alone(t *testing.T, b *Batch, r Request) (ids []int32, finish Finish) {
	t.Helper()
	s := b.Sequence(b.Context(), r.Adapter)
	for next := r.Prompt; ; next = ids[len(ids)-1:] {
		logits, err := b.Read(s, next)
		if err != nil {
			t.Fatal(err)
		}
		id := r.Sampling.Pick(logits, uint64(len(ids)))
		ids = append(ids, id)
		switch {
		case slices.Contains(r.Ends, id):
			return ids, FinishEnd
		case len(ids) == r.Tokens || s.Len() == b.Context():
			return ids, FinishLength
		}
	}
}

// TestScheduledTextsAreThoseAlone lets many texts come and go, with and without adapters, in little and in much room.
func TestScheduledTextsAreThoseAlone(t *testing.T) {
	for name, c := range models(t) {
		adapters := adaptersOf(t, c)
		one := batch(t, c, adapters...)
		asked := requests(c, 8, len(adapters))
		want := make([][]int32, len(asked))
		for i, r := range asked {
			want[i], _ = alone(t, one, r)
		}
		for _, l := range []Limits{{3, 1 << 30}, {16, 2 * one.Memory(context)}} {
			s := NewScheduler(batch(t, c, adapters...), l)
			texts, got := map[*Text]int{}, make([][]int32, len(asked))
			for i, r := range asked {
				text, err := s.Submit(r)
				if err != nil {
					t.Fatal(err)
				}
				texts[text] = i
				if i%4 == 3 {
					step(t, s, texts, got) // the next ones come later
				}
			}
			for waiting, running := s.Load(); waiting+running > 0; waiting, running = s.Load() {
				step(t, s, texts, got)
				if s.memory > l.Memory || len(s.running) > l.Texts {
					t.Fatalf("%s: %d texts with %d bytes, the limits are %+v", name, len(s.running), s.memory, l)
				}
			}
			for i := range asked {
				if !slices.Equal(got[i], want[i]) {
					t.Fatalf("%s, %+v: text %d is %v, alone %v", name, l, i, got[i], want[i])
				}
			}
			if s.memory != 0 {
				t.Errorf("%s: %d bytes are left", name, s.memory)
			}
		}
	}
}

func step(t *testing.T, s *Scheduler, texts map[*Text]int, got [][]int32) {
	t.Helper()
	tokens, err := s.Step()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if token.Err != nil {
			t.Fatal(token.Err)
		}
		i := texts[token.Text]
		got[i] = append(got[i], token.ID)
	}
}

// TestNextGivesTheBitsOfRead compares logits, not tokens, and of adapters with those of a batch that knows no others.
func TestNextGivesTheBitsOfRead(t *testing.T) {
	for name, c := range models(t) {
		adapters := adaptersOf(t, c)
		many := batch(t, c, adapters...)
		var all []*Sequence
		for i := range 7 {
			all = append(all, many.Sequence(20+i*(context-20)/6, i%4))
		}
		for n := range 20 {
			tokens := make([]int32, len(all))
			for i := range tokens {
				tokens[i] = int32((5*n + 3*i) % c.VocabSize())
			}
			logits, err := many.Next(all, tokens)
			if err != nil {
				t.Fatal(err)
			}
			if n < 19 {
				continue
			}
			for i := range all {
				b, own := batch(t, c), 0
				if a := i % 4; a > 0 {
					b, own = batch(t, c, adapters[a-1]), 1
				}
				s := b.Sequence(context, own)
				var want []float32
				for m := range 20 {
					if want, err = b.Read(s, []int32{int32((5*m + 3*i) % c.VocabSize())}); err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(logits[i], want) {
					t.Errorf("%s: sequence %d has other logits beside others", name, i)
				}
			}
		}
	}
}

// TestAdapterIsThatOfTheMergedModel compares with weights in which the adapter is merged.
func TestAdapterIsThatOfTheMergedModel(t *testing.T) {
	for name, c := range models(t) {
		adapters := adaptersOf(t, c)
		b := batch(t, c, adapters...)
		tokens := []int32{1, 7, 3, 30, 2}
		plain, err := b.Read(b.Sequence(context, 0), tokens)
		if err != nil {
			t.Fatal(err)
		}
		plain = slices.Clone(plain)
		for i, a := range adapters {
			merged := weights(c)
			for n, x := range merged {
				if merged[n], err = adapter.Merge(a.Config, n, x, a.Tensors); err != nil {
					t.Fatal(err)
				}
			}
			own := NewBatch(c, 1)
			if err := own.SetWeights(merged); err != nil {
				t.Fatal(err)
			}
			r := NewReader(own)
			want, err := r.Read(tokens)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.Read(b.Sequence(context, i+1), tokens)
			if err != nil {
				t.Fatal(err)
			}
			checkClose(t, fmt.Sprintf("%s with adapter %d", name, i+1), got, want)
			if slices.Equal(got, plain) {
				t.Errorf("%s: adapter %d changes nothing", name, i+1)
			}
		}
	}
}

func TestSchedulerEndsAndCancels(t *testing.T) {
	c := models(t)["llama"]
	b := batch(t, c)
	s := NewScheduler(b, Limits{Texts: 2, Memory: 1 << 30})
	greedy, _ := alone(t, batch(t, c), Request{Prompt: []int32{1}, Tokens: 20})
	submit := func(r Request) *Text {
		text, err := s.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	end := submit(Request{Prompt: []int32{1}, Tokens: 20, Ends: []int32{greedy[3]}})
	gone := submit(Request{Prompt: []int32{2}, Tokens: 50})
	waits := submit(Request{Prompt: make([]int32, context), Tokens: 50}) // the context is full at once
	finish := map[*Text]Finish{}
	for n := 0; ; n++ {
		if waiting, running := s.Load(); waiting+running == 0 {
			break
		}
		if n == 2 {
			s.Cancel(gone)
			s.Cancel(gone)
		}
		tokens, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			if token.Text == gone && n >= 2 {
				t.Error("a cancelled text goes on")
			}
			finish[token.Text] = token.Finish
		}
	}
	if finish[end] != FinishEnd || finish[waits] != FinishLength || finish[gone] != "" {
		t.Errorf("texts ended by %q, %q and %q", finish[end], finish[waits], finish[gone])
	}
	if tokens, err := s.Step(); len(tokens) > 0 || err != nil {
		t.Errorf("nothing to do: %v, %v", tokens, err)
	}
}

func TestSubmitRefusals(t *testing.T) {
	c := models(t)["gpt2"]
	b := batch(t, c)
	s := NewScheduler(b, Limits{Texts: 2, Memory: b.Memory(64)})
	for name, bad := range map[string]struct {
		request Request
		want    error
	}{
		"sampling":    {Request{Prompt: []int32{1}, Tokens: 1, Sampling: Sampling{Temperature: -1}}, ErrSampling},
		"no tokens":   {Request{Prompt: []int32{1}}, ErrSampling},
		"adapter":     {Request{Prompt: []int32{1}, Tokens: 1, Adapter: 1}, ErrSampling},
		"no prompt":   {Request{Tokens: 1}, ErrToken},
		"token":       {Request{Prompt: []int32{31}, Tokens: 1}, ErrToken},
		"long prompt": {Request{Prompt: make([]int32, context+1), Tokens: 1}, ErrContext},
		"memory":      {Request{Prompt: make([]int32, 60), Tokens: 6}, ErrMemory},
	} {
		if _, err := s.Submit(bad.request); !errors.Is(err, bad.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Submit(Request{Prompt: make([]int32, 60), Tokens: 5}); err != nil {
		t.Error(err)
	}
}

// TestBrokenTextHarmsNoOther gives an adapter weights that are no numbers.
func TestBrokenTextHarmsNoOther(t *testing.T) {
	c := models(t)["llama"]
	bad := adaptersOf(t, c)[0]
	bad.Tensors[bad.Config.Adapters()[1].Name].F32()[0] = float32(math.Inf(1))
	s := NewScheduler(batch(t, c, bad), Limits{Texts: 4, Memory: 1 << 30})
	want, _ := alone(t, batch(t, c), Request{Prompt: []int32{1}, Tokens: 9})
	texts := map[*Text]int{}
	for i := range 2 {
		text, err := s.Submit(Request{Prompt: []int32{1}, Tokens: 9, Adapter: i})
		if err != nil {
			t.Fatal(err)
		}
		texts[text] = i
	}
	var got []int32
	failed := 0
	for waiting, running := s.Load(); waiting+running > 0; waiting, running = s.Load() {
		tokens, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			switch {
			case texts[token.Text] == 0:
				got = append(got, token.ID)
			case errors.Is(token.Err, ErrNumbers):
				failed++
			default:
				t.Errorf("%+v", token)
			}
		}
	}
	if failed != 1 || !slices.Equal(got, want) {
		t.Errorf("%d failures, the other text is %v, alone %v", failed, got, want)
	}
}

func TestChances(t *testing.T) {
	logits := []float32{0, 2, -1, 2, 1}
	log, likely := chances(logits, 2, 3)
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x))
	}
	of := func(id int32) float64 { return float64(logits[id]) - math.Log(sum) }
	if math.Abs(log-of(2)) > 1e-12 || len(likely) != 3 {
		t.Fatalf("%v, %v", log, likely)
	}
	for i, id := range []int32{1, 3, 4} {
		if likely[i].ID != id || math.Abs(likely[i].Log-of(id)) > 1e-12 {
			t.Errorf("likely %d is %+v", i, likely[i])
		}
	}
	if _, all := chances(logits, 0, 9); len(all) != len(logits) {
		t.Errorf("%d of %d tokens are likely", len(all), len(logits))
	}
}

func TestBatchRefusesAdaptersOfOtherModels(t *testing.T) {
	c := models(t)["gpt2"]
	a := adaptersOf(t, c)[0]
	delete(a.Tensors, a.Config.Adapters()[0].Name)
	if err := NewBatch(c, 1).SetWeights(weights(c), a); !errors.Is(err, ErrWeights) {
		t.Error(err)
	}
	a = adaptersOf(t, c)[1]
	a.Tensors[a.Config.Adapters()[0].Name] = tensor.New(tensor.Make(tensor.Float32, 3, 3))
	if err := NewBatch(c, 1).SetWeights(weights(c), a); !errors.Is(err, ErrWeights) {
		t.Error(err)
	}
}
