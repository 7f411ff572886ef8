package textclass

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

var labels = []string{"bad", "fair", "good"}

func parsed(t testing.TB, name string) architecture.Config {
	t.Helper()
	raw := modeltest.GPT2()
	if name != architecture.GPT2 {
		raw = modeltest.Llama()
	}
	c, err := architecture.Parse(name, raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func made(t testing.TB, name string, pad int) Network {
	t.Helper()
	n, err := New(parsed(t, name), labels, 6, pad)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run computes the outputs of a program.
func run(t testing.TB, p *program.Program, err error, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// strong are weights of which every one counts.
func strong(n Network) map[string]*tensor.Tensor {
	w := map[string]*tensor.Tensor{}
	for i, named := range n.Tensors() {
		t := tensor.New(named.Shape)
		philox.NormalTo(t.F32(), 9, uint64(i))
		for k := range t.F32() {
			t.F32()[k] *= 0.3
		}
		w[named.Name] = t
	}
	return w
}

func inputs(w map[string]*tensor.Tensor, tokens []int32, rows int) map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(tokens, rows, len(tokens)/rows)}
	for name, x := range w {
		in[train.Param+name] = x
	}
	return in
}

// Where the linear layer has the first rows of the token embedding, the scores of a text are logits of the language
// model that reads the text alone, without padding, at its last token.
func TestScoresAreOfTheLastToken(t *testing.T) {
	texts := [][]uint32{{3, 1, 4, 1, 5, 9}, {2}, {7, 0, 8}, {6, 5, 3, 5}}
	for _, name := range []string{architecture.GPT2, architecture.Llama, architecture.Qwen3} {
		for _, pad := range []int{0, 10, 11} { // token 0 is inside a text, too; 11 is none of the model
			n := made(t, name, pad)
			w := strong(n)
			embedding := w[n.Language().EmbeddingName()]
			copy(w[ScoreName].F32(), embedding.F32())

			var tokens, examples []int32
			var want [][]float64
			var loss, right float64
			for i, text := range texts {
				row := make([]int32, n.Example())
				for k, id := range n.Row(text) {
					row[k] = int32(id)
				}
				class := int32(i % len(labels))
				tokens = append(tokens, row...)
				examples = append(append(append(examples, class), row...), 99) // the first of the next row
				p, err := model.Logits(n.Language(), 1, len(text))
				read := maps.Clone(w)
				delete(read, ScoreName)
				alone := run(t, p, err, inputs(read, row[:len(text)], 1))["logits"].F32()
				scores, sum := make([]float64, len(labels)), 0.0
				for k := range scores {
					scores[k] = float64(alone[(len(text)-1)*n.Language().VocabSize()+k])
					sum += math.Exp(scores[k])
				}
				want = append(want, scores)
				loss += (math.Log(sum) - scores[class]) / float64(len(texts))
				if scores[class] == slices.Max(scores) {
					right += 1 / float64(len(texts))
				}
			}
			p, err := model.Scores(n, len(texts))
			got := run(t, p, err, inputs(w, tokens, len(texts)))["scores"].F32()
			for i, scores := range want {
				for k, s := range scores {
					if g := float64(got[i*len(labels)+k]); math.Abs(g-s) > 1e-5*(1+math.Abs(s)) {
						t.Errorf("%s, padding %d: text %d has score %v of class %d, want %v", name, pad, i, g, k, s)
					}
				}
			}
			task, err := model.Classify(n, model.Batch{Sequences: len(texts), Micro: 2, Dropout: 0.5})
			if err != nil {
				t.Fatal(err)
			}
			p, err = task.Eval()
			out := run(t, p, err, inputs(w, examples, len(texts)))
			if g := float64(out["loss"].F32()[0]); math.Abs(g-loss) > 1e-5*loss {
				t.Errorf("%s, padding %d: loss %v, want %v", name, pad, g, loss)
			}
			if g := float64(out["accuracy"].F32()[0]); math.Abs(g-right) > 1e-6 {
				t.Errorf("%s, padding %d: accuracy %v, want %v", name, pad, g, right)
			}
		}
	}
}

// A reward model is trained by the differences of the scores of two texts, and its loss by parts is that of all.
func TestRank(t *testing.T) {
	n, err := New(parsed(t, architecture.Llama), []string{"reward"}, 6, 11)
	if err != nil {
		t.Fatal(err)
	}
	w := strong(n)
	pairs := [][2][]uint32{{{3, 1, 4}, {3, 1, 5, 9}}, {{2, 7}, {2}}, {{6, 5, 3, 5, 8, 9}, {6, 5, 3, 5, 8, 8}}, {{4}, {5}}}
	var texts, rows []int32
	for _, pair := range pairs {
		for _, text := range pair {
			for _, id := range n.Row(text) {
				texts, rows = append(texts, int32(id)), append(rows, int32(id))
			}
		}
		rows = append(rows, 99) // the first of the next row
	}
	p, err := model.Scores(n, 2*len(pairs))
	scores := run(t, p, err, inputs(w, texts, 2*len(pairs)))["scores"].F32()
	var loss, won, mean float64
	for i := range pairs {
		margin := float64(scores[2*i] - scores[2*i+1])
		loss += math.Log1p(math.Exp(-margin)) / float64(len(pairs))
		mean += margin / float64(len(pairs))
		if margin > 0 {
			won += 1 / float64(len(pairs))
		}
	}
	task, err := model.Rank(n, model.Batch{Sequences: len(pairs), Micro: 2, Dropout: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	p, err = task.Eval()
	out := run(t, p, err, inputs(w, rows, len(pairs)))
	for name, want := range map[string]float64{"loss": loss, "accuracy": won, "margin": mean} {
		if got := float64(out[name].F32()[0]); math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if won == 0 || won == 1 {
		t.Errorf("%v of the pairs have a margin above 0", won)
	}
	if p, err = task.TrainStep(optimizer.SGD{}); err != nil || len(train.Params(p)) != len(n.Tensors()) {
		t.Errorf("a step: %v", err)
	}
}

// Gradients are the differences of the loss, also of the embedding of a token that is padding elsewhere.
func TestGradients(t *testing.T) {
	const rows, rate = 3, 1.0
	n := made(t, architecture.GPT2, 0)
	w, tokens := strong(n), []int32{}
	for i, text := range [][]uint32{{3, 1, 4}, {2, 0, 7, 7, 1, 5}, {6}} {
		tokens = append(tokens, int32(i))
		for _, id := range append(n.Row(text), 1) {
			tokens = append(tokens, int32(id))
		}
	}
	task, err := model.Classify(n, model.Batch{Sequences: rows})
	if err != nil {
		t.Fatal(err)
	}
	in := inputs(w, tokens, rows)
	for _, name := range []string{"lr", "c1", "c2"} {
		in[name] = tensor.FromF32([]float32{rate})
		in[name].Shape = tensor.Make(tensor.Float32)
	}
	p, err := task.TrainStep(optimizer.SGD{})
	stepped := run(t, p, err, in)
	eval, err := task.Eval()
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(eval, 1)
	if err != nil {
		t.Fatal(err)
	}
	loss := func() float64 {
		out, err := exec.Run(inputs(w, tokens, rows))
		if err != nil {
			t.Fatal(err)
		}
		return float64(out["loss"].F32()[0])
	}
	for _, name := range []string{ScoreName, "transformer.wte.weight", "transformer.h.0.attn.c_attn.weight"} {
		x, after := w[name].F32(), stepped[train.Param+name].F32()
		for _, i := range []int{0, 5, len(x) - 1} {
			const h = 1e-2
			was := x[i]
			x[i] = was + h
			up := loss()
			x[i] = was - h
			down := loss()
			x[i] = was
			want, got := (up-down)/(2*h), float64(was-after[i])/rate
			if math.Abs(got-want) > 2e-3*(1+math.Abs(want)) {
				t.Errorf("%s, element %d: gradient %v, want %v", name, i, got, want)
			}
		}
	}
}

// An adapter and the linear layer are trained together; the scores begin as those of the base model.
func TestAdapted(t *testing.T) {
	whole := made(t, architecture.Llama, 11)
	c, err := whole.Language().Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{"q_proj"}, Dropout: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	n := whole.On(c)
	base := strong(whole)
	begin := n.Begin(base, 5)
	names := slices.Sorted(maps.Keys(begin))
	if len(n.Tensors()) != 2*2+1 || len(names) != 5 || !strings.HasPrefix(names[0], architecture.AdapterPrefix) ||
		names[4] != ScoreName || len(n.Frozen()) != len(c.Tensors()) || n.Parameters() != whole.Parameters() {
		t.Errorf("%q, %d frozen", names, len(n.Frozen()))
	}
	for _, bits := range []int{0, 4} {
		c, err := whole.Language().Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{"q_proj"}, Bits: bits})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []model.Batch{{Sequences: 2}, {Sequences: 2, Half: true},
			{Sequences: 2, Form: exact.Form{Bits: 15, Block: 64}}} {
			task, err := model.Classify(whole.On(c), b)
			if err != nil {
				t.Fatal(err)
			}
			p, err := task.TrainStep(optimizer.SGD{})
			if err != nil || len(train.Params(p)) != 5 {
				t.Errorf("%+v: %v", b, err)
			}
		}
	}
	text := []int32{4, 1, 3, 11, 11, 11}
	p, err := model.Scores(n, 1)
	all := maps.Clone(base)
	maps.Copy(all, begin)
	adapted := run(t, p, err, inputs(all, text, 1))["scores"].F32()
	p, err = model.Scores(whole, 1)
	all = maps.Clone(base)
	all[ScoreName] = begin[ScoreName]
	if plain := run(t, p, err, inputs(all, text, 1))["scores"].F32(); !slices.Equal(plain, adapted) {
		t.Errorf("scores %v begin as %v", plain, adapted)
	}
}

// Weights from scratch draw as one list; a base model keeps its own.
func TestBegin(t *testing.T) {
	n := made(t, architecture.GPT2, 11)
	begin, drawn := n.Begin(nil, 3), architecture.Init(n.Tensors(), 3)
	for name, x := range drawn {
		if !slices.Equal(begin[name].F32(), x.F32()) {
			t.Errorf("%s differs", name)
		}
	}
	base := strong(n)
	from := n.Begin(base, 3)
	if !slices.Equal(from[ScoreName].F32(), drawn[ScoreName].F32()) || from["transformer.wte.weight"] !=
		base["transformer.wte.weight"] || len(from) != len(drawn) {
		t.Error("of a base model")
	}
}

// A configuration is that of transformers, and is read as it was written.
func TestConfig(t *testing.T) {
	for name, class := range map[string]string{architecture.GPT2: "GPT2ForSequenceClassification",
		architecture.Llama: "LlamaForSequenceClassification", architecture.Qwen2: "Qwen2ForSequenceClassification"} {
		n := made(t, name, 3)
		text := string(n.JSON())
		for _, want := range []string{class, `"label2id": {
    "bad": 0,`, `"2": "good"`, `"pad_token_id": 3`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s:\n%s", name, want, text)
			}
		}
		again, err := Read([]byte(text), 6)
		if err != nil || string(again.JSON()) != text || again.Example() != 6 || !slices.Equal(again.Labels(), labels) ||
			again.Parameters() != n.Parameters() {
			t.Errorf("%s\n%v", again.JSON(), err)
		}
		if whole, err := Read([]byte(text), 0); err != nil || whole.Example() != n.Language().Context() ||
			whole.At(2).Example() != 2 || whole.At(99).Example() != whole.Example() {
			t.Errorf("%d tokens, %v", whole.Example(), err)
		}
	}
	if text := string(made(t, architecture.GPT2, 11).JSON()); !strings.Contains(text, `"pad_token_id": null`) {
		t.Error(text)
	}
	whole := string(made(t, architecture.GPT2, 3).JSON())
	for change, want := range map[[2]string]string{
		{`"0": "bad"`, `"7": "bad"`}:                                        "class 0",
		{`"pad_token_id": 3`, `"pad_token_id": 12`}:                         "pad_token_id",
		{`"pad_token_id": 3`, `"pad_token_id": -1`}:                         "pad_token_id",
		{`"n_positions": 8`, `"n_positions": 5`}:                            "5 positions",
		{`"model_type": "gpt2"`, `"model_type": "mlp"`}:                     "mlp",
		{`"scale_attn_weights": true`, `"add_cross_attention": true`}:       "add_cross_attention",
		{`"id2label": {`, `"id2label": {}, "problem_type": null, "was": {`}: "0 classes",
		{`}`, ``}: "JSON",
	} {
		if _, err := Read([]byte(strings.Replace(whole, change[0], change[1], 1)), 6); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
	opt, err := architecture.Parse(architecture.OPT, map[string]any{"vocab_size": 11, "max_position_embeddings": 8,
		"hidden_size": 12, "ffn_dim": 20, "num_hidden_layers": 1, "num_attention_heads": 3, "word_embed_proj_dim": 6})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(opt, labels, 6, 1); err == nil || !strings.Contains(err.Error(), "word_embed_proj_dim") {
		t.Errorf("%v", err)
	}
}

// Every architecture has the name of its classifier in transformers.
func TestClasses(t *testing.T) {
	for _, of := range []struct{ is, want string }{{"GPT2LMHeadModel", "GPT2"}, {"Gemma3ForCausalLM", "Gemma3Text"},
		{"GPTNeoXForCausalLM", "GPTNeoX"}} {
		if got := class([]any{of.is}); got != of.want+"ForSequenceClassification" {
			t.Errorf("%s: %s", of.is, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(made(f, architecture.GPT2, 3).JSON())
	f.Add(made(f, architecture.Llama, 11).JSON())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, err := Read(raw, 4); err == nil {
			if again, err := Read(n.JSON(), 4); err != nil || string(again.JSON()) != string(n.JSON()) {
				t.Fatalf("%s: %v", n.JSON(), err)
			}
		}
	})
}

// A reward model scores drawn answers with their prompts, up to their ends, as it scores these texts alone: to the bit,
// whatever the prompts' lengths are, whichever other models score it.
func TestScoresOfDrawnAnswers(t *testing.T) {
	const rows, length, tokens, group, end = 3, 8, 3, 4, 2
	c := parsed(t, architecture.Llama)
	judge := func(name string, pad int) (Network, map[string]*tensor.Tensor) {
		n, err := New(parsed(t, name), []string{"good"}, length, pad)
		if err != nil {
			t.Fatal(err)
		}
		return n, strong(n)
	}
	one, weights := judge(architecture.GPT2, parsed(t, architecture.GPT2).VocabSize())
	two, others := judge(architecture.Llama, 0)
	batch := make([]int32, rows*(length+1))
	for i := range batch {
		row, at := i/(length+1), i%(length+1)
		if batch[i] = int32(1 + (5*row+3*at)%(c.VocabSize()-1)); at != 2+row {
			batch[i] += int32(c.VocabSize())
		}
	}
	task, err := model.Reinforce(c, model.Batch{Sequences: rows, Length: length, Silent: c.VocabSize()}, model.Rollout{
		Group: group, Tokens: tokens, Temperature: 1, Reward: rollout.Reward{Ends: []int{end}, Judged: []float64{3, 1}}},
		one, two)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(batch, rows, length+1),
		model.Dice: tensor.New(tensor.Make(tensor.Int64, 3))}
	for name, x := range c.Init(5) {
		in[train.Param+name] = x
	}
	for i, w := range []map[string]*tensor.Tensor{weights, others} {
		for name, x := range w {
			in[train.Param+model.JudgePrefix(i)+name] = x
		}
	}
	p, err := task.Drawn()
	drawn := run(t, p, err, in)
	answers, counted := drawn[model.DrawnAnswers].I32(), drawn[model.DrawnCounted].F32()
	for i, got := range drawn[model.DrawnRewards].F32() {
		var want float32
		for k, n := range []Network{one, two} {
			var text []uint32
			for _, id := range batch[i/group*(length+1):][:2+i/group] {
				text = append(text, uint32(id)-uint32(c.VocabSize()))
			}
			for at := range tokens {
				if counted[i*tokens+at] > 0 {
					text = append(text, uint32(answers[i*tokens+at]))
				}
			}
			var row []int32
			for _, id := range n.Row(text) {
				row = append(row, int32(id))
			}
			p, err := model.Scores(n, 1)
			score := run(t, p, err, inputs([]map[string]*tensor.Tensor{weights, others}[k], row, 1))["scores"].F32()[0]
			want += score * []float32{0.75, 0.25}[k]
		}
		if got != want {
			t.Errorf("answer %d has the reward %v, want %v", i, got, want)
		}
	}
	for name, wrong := range map[string]func() error{
		"no weight": func() error {
			_, err := model.Reinforce(c, model.Batch{Sequences: rows, Length: length, Silent: c.VocabSize()},
				model.Rollout{Group: group, Tokens: tokens, Temperature: 1, Reward: rollout.Reward{Exact: 1}}, one)
			return err
		},
		"another length": func() error {
			_, err := model.Reinforce(c, model.Batch{Sequences: rows, Length: length, Silent: c.VocabSize()},
				model.Rollout{Group: group, Tokens: tokens, Temperature: 1, Reward: rollout.Reward{Judged: []float64{1}}},
				one.At(5))
			return err
		},
	} {
		if err := wrong(); !errors.Is(err, model.ErrStep) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
