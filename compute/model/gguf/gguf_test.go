package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// reader is a reader of GGUF of its own, from the specification.
type reader struct {
	t    *testing.T
	data []byte
	at   int
}

func (r *reader) bytes(n uint64) []byte {
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}
func (r *reader) u32() uint32  { return binary.LittleEndian.Uint32(r.bytes(4)) }
func (r *reader) u64() uint64  { return binary.LittleEndian.Uint64(r.bytes(8)) }
func (r *reader) text() string { return string(r.bytes(r.u64())) }
func (r *reader) f32() float32 { return math.Float32frombits(r.u32()) }
func (r *reader) align(n int)  { r.at = (r.at + n - 1) / n * n }
func (r *reader) value(kind uint32) any {
	switch kind {
	case 4:
		return r.u32()
	case 5:
		return int32(r.u32())
	case 6:
		return r.f32()
	case 7:
		return r.bytes(1)[0] == 1
	case 8:
		return r.text()
	case 9:
		var list []any
		kind := r.u32()
		for n := r.u64(); n > 0; n-- {
			list = append(list, r.value(kind))
		}
		return list
	}
	r.t.Fatalf("metadata of type %d", kind)
	return nil
}

type stored struct {
	dims []uint64
	kind uint32
	raw  []byte
}

func read(t *testing.T, data []byte) (meta map[string]any, tensors map[string]stored) {
	t.Helper()
	r := &reader{t: t, data: data}
	if string(r.bytes(4)) != "GGUF" || r.u32() != 3 {
		t.Fatal("not GGUF, version 3")
	}
	count, keys := r.u64(), r.u64()
	meta, tensors = map[string]any{}, map[string]stored{}
	for range keys {
		key := r.text()
		meta[key] = r.value(r.u32())
	}
	offsets := map[string]uint64{}
	for range count {
		name := r.text()
		s := stored{dims: make([]uint64, r.u32())}
		for i := range s.dims {
			s.dims[i] = r.u64()
		}
		s.kind = r.u32()
		tensors[name], offsets[name] = s, r.u64()
	}
	r.align(32)
	start, end := r.at, 0
	for name, s := range tensors {
		n := uint64(1)
		for _, d := range s.dims {
			n *= d
		}
		r.at = start + int(offsets[name])
		if offsets[name]%32 != 0 {
			t.Errorf("%s is not aligned", name)
		}
		s.raw = r.bytes(map[uint32]uint64{0: 4 * n, 1: 2 * n, 2: n / 32 * 18, 8: n / 32 * 34}[s.kind])
		tensors[name] = s
		r.align(32)
		end = max(end, r.at)
	}
	if end != len(data) {
		t.Errorf("%d bytes, the tensors end at %d", len(data), end)
	}
	return meta, tensors
}

// fromF16 widens IEEE-754 binary16.
func fromF16(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exponent, fraction := int(h>>10&31), float64(h&1023)
	if exponent == 0 {
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

func (s stored) values() []float64 {
	var out []float64
	switch s.kind {
	case 0:
		for b := range slices.Chunk(s.raw, 4) {
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	case 1:
		for b := range slices.Chunk(s.raw, 2) {
			out = append(out, fromF16(binary.LittleEndian.Uint16(b)))
		}
	case 2:
		for b := range slices.Chunk(s.raw, 18) {
			scale := fromF16(binary.LittleEndian.Uint16(b))
			for _, q := range b[2:] {
				out = append(out, scale*(float64(q&15)-8))
			}
			for _, q := range b[2:] {
				out = append(out, scale*(float64(q>>4)-8))
			}
		}
	case 8:
		for b := range slices.Chunk(s.raw, 34) {
			scale := fromF16(binary.LittleEndian.Uint16(b))
			for _, q := range b[2:] {
				out = append(out, scale*float64(int8(q)))
			}
		}
	}
	return out
}

func sample(t testing.TB, changes map[string]any) Model {
	t.Helper()
	raw := map[string]any{"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
		"intermediate_size": 96, "max_position_embeddings": 32, "vocab_size": 300, "rope_theta": 500000.0,
		"tie_word_embeddings": false}
	for k, v := range changes {
		raw[k] = v
	}
	c, err := architecture.Parse(architecture.Llama, raw)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.TrainBPE(slices.Values([]string{"the cat sat on the mat, the cat"}), 270)
	if err != nil {
		t.Fatal(err)
	}
	return Model{Name: "tiny", Config: c, Tensors: c.Init(1), Tokenizer: tok}
}

func encode(t testing.TB, m Model, kind Type) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Encode(&out, m, kind); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTensors(t *testing.T) {
	m := sample(t, nil)
	for kind, tolerance := range map[Type]float64{F32: 0, F16: 1.0 / 2048, Q8_0: 0.5/127 + 1.0/2048,
		Q4_0: 1.0/8 + 1.0/2048} {
		_, tensors := read(t, encode(t, m, kind))
		if len(tensors) != len(m.Config.Tensors()) {
			t.Errorf("%s: %d tensors, want %d", kind, len(tensors), len(m.Config.Tensors()))
		}
		for file, name := range map[string]string{
			"token_embd.weight":        "model.embed_tokens.weight",
			"output.weight":            "lm_head.weight",
			"output_norm.weight":       "model.norm.weight",
			"blk.1.attn_v.weight":      "model.layers.1.self_attn.v_proj.weight",
			"blk.0.attn_output.weight": "model.layers.0.self_attn.o_proj.weight",
			"blk.0.ffn_gate.weight":    "model.layers.0.mlp.gate_proj.weight",
			"blk.0.ffn_up.weight":      "model.layers.0.mlp.up_proj.weight",
			"blk.1.ffn_down.weight":    "model.layers.1.mlp.down_proj.weight",
			"blk.1.attn_norm.weight":   "model.layers.1.input_layernorm.weight",
			"blk.1.ffn_norm.weight":    "model.layers.1.post_attention_layernorm.weight",
		} {
			s, want := tensors[file], m.Tensors[name]
			dims := slices.Clone(want.Shape.Dims)
			slices.Reverse(dims)
			if fmt.Sprint(s.dims) != fmt.Sprint(dims) {
				t.Errorf("%s: dimensions %v, want %v", file, s.dims, dims)
			}
			expected := kind
			if kind == Q4_0 && !strings.HasPrefix(file, "blk.") {
				expected = Q8_0
			}
			if matrix := len(dims) > 1; matrix != (s.kind == uint32(expected)) && kind != F32 {
				t.Errorf("%s: %s is of type %d", kind, file, s.kind)
			}
			near(t, kind.String()+" "+file, s.values(), want.F32(), tolerance)
		}
	}
}

// near compares in rows of 32, relative to the largest value of each.
func near(t *testing.T, what string, got []float64, want []float32, tolerance float64) {
	t.Helper()
	for i := range want {
		largest := float32(0)
		for _, x := range want[i/32*32 : min(len(want), i/32*32+32)] {
			largest = max(largest, x, -x)
		}
		if math.Abs(got[i]-float64(want[i])) > tolerance*float64(largest) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// llama.cpp must compute from the rows of the file (neighbours turn together) the values that the model computes from
// its own (the halves of a head turn together): the same products of queries and keys at all distances.
func TestRotaryPositionsSurviveThePermutation(t *testing.T) {
	m := sample(t, nil)
	_, tensors := read(t, encode(t, m, F32))
	const width, headDim = 64, 16
	x := make([]float64, width)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range x {
		x[i] = r.NormFloat64()
	}
	project := func(w []float64) []float64 {
		y := make([]float64, len(w)/width)
		for i := range w {
			y[i/width] += w[i] * x[i%width]
		}
		return y
	}
	wide := func(f []float32) (out []float64) {
		for _, v := range f {
			out = append(out, float64(v))
		}
		return out
	}
	turn := func(head []float64, position float64, pair func(i int) (int, int)) []float64 {
		out := make([]float64, headDim)
		for i := range headDim / 2 {
			angle := position * math.Pow(500000, -2*float64(i)/headDim)
			a, b := pair(i)
			out[a] = head[a]*math.Cos(angle) - head[b]*math.Sin(angle)
			out[b] = head[a]*math.Sin(angle) + head[b]*math.Cos(angle)
		}
		return out
	}
	halves := func(i int) (int, int) { return i, i + headDim/2 }
	neighbours := func(i int) (int, int) { return 2 * i, 2*i + 1 }
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	ours, theirs := [2][]float64{}, [2][]float64{}
	for i, part := range []string{"q", "k"} {
		ours[i] = project(wide(m.Tensors["model.layers.1.self_attn."+part+"_proj.weight"].F32()))
		theirs[i] = project(tensors["blk.1.attn_"+part+".weight"].values())
	}
	for head := range 4 {
		q, k := head*headDim, head/2*headDim
		for position := range 5 {
			a := dot(turn(ours[0][q:q+headDim], float64(position), halves), turn(ours[1][k:k+headDim], 2, halves))
			b := dot(turn(theirs[0][q:q+headDim], float64(position), neighbours), turn(theirs[1][k:k+headDim], 2, neighbours))
			if math.Abs(a-b) > 1e-12*(1+math.Abs(a)) {
				t.Fatalf("head %d, position %d: %v and %v", head, position, a, b)
			}
		}
	}
}

func TestMetadata(t *testing.T) {
	m := sample(t, nil)
	m.Template = "{{ messages[0].content }}"
	meta, _ := read(t, encode(t, m, Q8_0))
	for key, want := range map[string]any{
		"general.architecture": "llama", "general.name": "tiny", "general.file_type": uint32(7),
		"general.quantization_version": uint32(2),
		"general.alignment":            uint32(32),
		"llama.vocab_size":             uint32(300), "llama.context_length": uint32(32), "llama.embedding_length": uint32(64),
		"llama.block_count":         uint32(2),
		"llama.feed_forward_length": uint32(96), "llama.attention.head_count": uint32(4),
		"llama.attention.head_count_kv": uint32(2),
		"llama.rope.dimension_count":    uint32(16), "llama.attention.key_length": uint32(16),
		"llama.rope.freq_base": float32(500000), "llama.attention.layer_norm_rms_epsilon": float32(1e-6),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.chat_template": m.Template,
		"tokenizer.ggml.add_bos_token": false,
	} {
		if !reflect.DeepEqual(meta[key], want) {
			t.Errorf("%s is %v, want %v", key, meta[key], want)
		}
	}
	tokens, types := meta["tokenizer.ggml.tokens"].([]any), meta["tokenizer.ggml.token_type"].([]any)
	end, _ := m.Tokenizer.EndOfText()
	if meta["tokenizer.ggml.eos_token_id"] != end || tokens[end] != tokenizer.EndOfText ||
		types[end] != int32(tokenControl) {
		t.Errorf("a text ends with %v: %v", meta["tokenizer.ggml.eos_token_id"], tokens[end])
	}
	if len(tokens) != 300 || len(types) != 300 || tokens[' '] != "Ġ" || types[' '] != int32(tokenNormal) ||
		types[299] != int32(tokenUnused) {
		t.Errorf("%d tokens, %d types; a space is %v", len(tokens), len(types), tokens[' '])
	}
	if merges := meta["tokenizer.ggml.merges"].([]any); merges[0] != m.Tokenizer.Vocabulary().Merges[0] {
		t.Errorf("the first merge is %q", merges[0])
	}
}

func llama3(t *testing.T, changes ...string) *tokenizer.Tokenizer {
	t.Helper()
	raw, err := os.ReadFile("../../data/tokenizer/testdata/llama3.json")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, flag := range []string{"single_word", "lstrip", "rstrip"} {
		text = strings.ReplaceAll(text, `"`+flag+`": true`, `"`+flag+`": false`)
	}
	return parse(t, strings.NewReplacer(changes...).Replace(text))
}

func TestTokenizers(t *testing.T) {
	for name, c := range map[string]struct {
		tok  *tokenizer.Tokenizer
		pre  string
		adds bool
	}{
		"bytes":                 {tokenizer.Bytes(), "gpt-2", false},
		"llama 3":               {llama3(t), "llama-bpe", true},
		"llama 3 without words": {llama3(t, `"ignore_merges": true`, `"ignore_merges": false`), "dbrx", true},
	} {
		m := sample(t, map[string]any{"vocab_size": 512})
		m.Tokenizer = c.tok
		meta, _ := read(t, encode(t, m, F32))
		if meta["tokenizer.ggml.pre"] != c.pre || meta["tokenizer.ggml.add_bos_token"] != c.adds {
			t.Errorf("%s: pattern %v, add_bos_token %v", name, meta["tokenizer.ggml.pre"], meta["tokenizer.ggml.add_bos_token"])
		}
	}
	good := string(tokenizer.Bytes().JSON())
	for name, tok := range map[string]*tokenizer.Tokenizer{
		"space before the text": parse(t, strings.Replace(good, `"add_prefix_space": false`, `"add_prefix_space": true`, 1)),
		"stripping token": parse(t, strings.Replace(good, `"added_tokens": [`,
			`"added_tokens": [{"id":256,"content":"<x>","lstrip":true}`, 1)),
		"more tokens": llama3(t),
	} {
		m := sample(t, nil)
		m.Tokenizer = tok
		if err := Encode(io.Discard, m, F32); !errors.Is(err, ErrTokenizer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func parse(t *testing.T, text string) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestRowsThatAreNoBlocksAreF16(t *testing.T) {
	_, tensors := read(t, encode(t, sample(t, map[string]any{"intermediate_size": 100}), Q8_0))
	if down, up := tensors["blk.0.ffn_down.weight"].kind, tensors["blk.0.ffn_up.weight"].kind; down != 1 || up != 8 {
		t.Errorf("rows of 100 are of type %d, of 64 of type %d", down, up)
	}
}

func TestEncodeRefuses(t *testing.T) {
	const name = "model.layers.0.mlp.up_proj.weight"
	for what, c := range map[string]struct {
		change func(m *Model)
		kind   Type
		want   error
	}{
		"another type":   {func(*Model) {}, 3, ErrModel},
		"missing":        {func(m *Model) { delete(m.Tensors, name) }, F32, ErrModel},
		"another shape":  {func(m *Model) { m.Tensors[name] = tensor.Scalar(1) }, F32, ErrModel},
		"too large":      {func(m *Model) { m.Tensors[name].F32()[5] = 70000 }, F16, ErrRange},
		"not a number":   {func(m *Model) { m.Tensors[name].F32()[5] = float32(math.NaN()) }, Q8_0, ErrRange},
		"infinite":       {func(m *Model) { m.Tensors[name].F32()[5] = float32(math.Inf(1)) }, F32, ErrRange},
		"another family": {func(m *Model) { m.Config, _ = architecture.Parse(architecture.GPT2, nil) }, F32, ErrModel},
	} {
		m := sample(t, nil)
		c.change(&m)
		var out bytes.Buffer
		if err := Encode(&out, m, c.kind); !errors.Is(err, c.want) || out.Len() > 0 {
			t.Errorf("%s: %v, %d bytes written", what, err, out.Len())
		}
	}
}

func TestTinyBlocksAreZero(t *testing.T) {
	row := make([]float32, 32)
	row[3], row[4] = 0x1p-149, -0x1p-130
	if got := appendBlock(nil, row); !bytes.Equal(got, make([]byte, 34)) {
		t.Errorf("got %x", got)
	}
}

// Positions that are scaled as Llama 3's are slowed pair by pair, and linearly by one factor.
func TestScaledPositions(t *testing.T) {
	scaled := func(more map[string]any) (map[string]any, map[string]stored) {
		more["factor"] = 8.0
		return read(t, encode(t, sample(t, map[string]any{"max_position_embeddings": 4096, "rope_scaling": more}), Q8_0))
	}
	meta, tensors := scaled(map[string]any{"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0,
		"original_max_position_embeddings": 512})
	factors := tensors["rope_freqs.weight"].values()
	if len(factors) != 8 || factors[0] != 1 || factors[7] != 8 || !slices.IsSorted(factors) ||
		meta["llama.rope.scaling.type"] != nil {
		t.Errorf("llama3: %v, %v", factors, meta["llama.rope.scaling.type"])
	}
	meta, tensors = scaled(map[string]any{"rope_type": "linear"})
	if meta["llama.rope.scaling.type"] != "linear" || meta["llama.rope.scaling.factor"] != float32(8) ||
		tensors["rope_freqs.weight"].raw != nil {
		t.Errorf("linear: %v", meta["llama.rope.scaling.factor"])
	}
	m := sample(t, map[string]any{"rope_scaling": map[string]any{"rope_type": "yarn", "factor": 8.0}})
	if err := Encode(io.Discard, m, F32); !errors.Is(err, ErrModel) {
		t.Errorf("yarn: %v", err)
	}
}

// BPE over characters is a vocabulary of SentencePiece, whose scores give the order of its merges.
func TestPieces(t *testing.T) {
	raw, err := os.ReadFile("../../../node/compat/tokenizers/llama2.json")
	if err != nil {
		t.Fatal(err)
	}
	m := sample(t, map[string]any{"vocab_size": 1024})
	m.Tokenizer = parse(t, string(raw))
	meta, _ := read(t, encode(t, m, F32))
	tokens, types := meta["tokenizer.ggml.tokens"].([]any), meta["tokenizer.ggml.token_type"].([]any)
	scores := meta["tokenizer.ggml.scores"].([]any)
	if meta["tokenizer.ggml.model"] != "llama" || meta["tokenizer.ggml.add_space_prefix"] != true ||
		meta["tokenizer.ggml.add_bos_token"] != true ||
		meta["tokenizer.ggml.eos_token_id"] != uint32(2) || len(scores) != 1024 {
		t.Errorf("%v, %v, %v", meta["tokenizer.ggml.model"], meta["tokenizer.ggml.add_space_prefix"],
			meta["tokenizer.ggml.add_bos_token"])
	}
	if tokens[0] != "<unk>" || types[0] != int32(tokenUnknown) || types[1] != int32(tokenControl) ||
		tokens[3] != "<0x00>" || types[3] != int32(tokenByte) {
		t.Errorf("%v %v", tokens[:4], types[:4])
	}
	left, right, _ := strings.Cut(m.Tokenizer.Vocabulary().Merges[0], " ")
	if first := slices.Index(tokens, any(left+right)); scores[first] != float32(0) || types[first] != int32(tokenNormal) {
		t.Errorf("the first merge has the score %v", scores[first])
	}
}
