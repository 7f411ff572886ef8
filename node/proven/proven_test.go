package proven

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/proof"
)

// The inputs of a statement are what the named layer reads: for the first layer of GPT-2, the normalised sum of the
// embeddings of token and position, computed here apart from the engine.
func TestInputsAreThoseOfTheLayer(t *testing.T) {
	const width = 8
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": 256, "n_positions": 12, "n_embd": width,
		"n_layer": 2, "n_head": 2, "initializer_range": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	m := &pretrained.Model{Config: c, Tensors: c.Init(3), Tokenizer: tokenizer.Bytes()}
	for name, gain := range map[string]float32{"transformer.h.0.ln_1.weight": 1.5, "transformer.h.0.ln_1.bias": 0.25} {
		for i := range m.Tensors[name].F32() {
			m.Tensors[name].F32()[i] = gain
		}
	}
	tokens := []uint32{65, 3, 200}
	got, err := inputs(m, "transformer.h.0.attn.c_attn", tokens, 1)
	if err != nil {
		t.Fatal(err)
	}
	words, places := m.Tensors["transformer.wte.weight"].F32(), m.Tensors["transformer.wpe.weight"].F32()
	for at, token := range tokens {
		var x [width]float64
		mean, square := 0.0, 0.0
		for i := range x {
			x[i] = float64(words[int(token)*width+i]) + float64(places[at*width+i])
			mean += x[i] / width
		}
		for i := range x {
			square += (x[i] - mean) * (x[i] - mean) / width
		}
		for i := range x {
			want := (x[i]-mean)/math.Sqrt(square+c.NormEps)*1.5 + 0.25
			unit := math.Ldexp(1, -int(got.Exponent))
			if have := float64(got.Values[at*width+i]) * unit; math.Abs(have-want) > unit/2+1e-5 {
				t.Errorf("token %d, number %d: %g, wanted %g", at, i, have, want)
			}
		}
	}
	for _, layer := range []string{"c_attn", "transformer.h.0.attn", "transformer.h.9.attn.c_attn", ""} {
		if _, err := inputs(m, layer, tokens, 1); err == nil {
			t.Errorf("%q is a layer", layer)
		}
	}
	if _, err := inputs(m, "transformer.h.0.attn.c_attn", []uint32{256}, 1); err == nil {
		t.Error("a token that the model does not have")
	}
}

// Of a text of few tokens the maker has its choice: it tries secrets until the text has no other tokens than those for
// which it made up what the adapter adds, as many as the rank. Such a text does not count as one that follows from the
// commitment.
func TestShortTextsAreChosen(t *testing.T) {
	const vocab, layer, rank = 256, "layer", 64
	s := proof.Statement{Base: canon.Sum("base"), Module: layer, Shape: proof.Shape{Rank: rank}}
	commitment, tries := make([]byte, 32), uint64(0)
	other := func(token uint32) bool { return token >= rank }
	draw := func(size, n int) { s.Tokens = Drawn(s.Base, layer, commitment, size, n) }
	for draw(vocab, 8); slices.ContainsFunc(s.Tokens, other); draw(vocab, 8) {
		tries++
		binary.LittleEndian.PutUint64(commitment, tries)
	}
	if follows(s, commitment, vocab) {
		t.Errorf("a text of 64 bits that was found with %d tries follows from its commitment", tries)
	}
	for of, want := range map[[2]uint32]int{
		{2, 1}: 64, {256, 1}: 8, {256, 16}: 16, {50_257, 1}: 5, {50_257, 16}: 6, {1 << 17, 256}: 8,
	} {
		size := int(of[0])
		s.Shape.Rank = of[1]
		n := Enough(size, int(of[1]))
		if draw(size, n); n != want || !follows(s, commitment, size) {
			t.Errorf("%d tokens of %v, wanted %d", n, of, want)
		}
		if s.Tokens = s.Tokens[:n-1]; follows(s, commitment, size) {
			t.Errorf("%d tokens of %v are enough", n-1, of)
		}
	}
	for _, of := range [][2]int{{256, 256}, {2, 16}, {256, 129}} {
		if n := Enough(of[0], of[1]); n <= proof.MaxTokens {
			t.Errorf("%d tokens of %v are enough", n, of)
		}
	}
}
