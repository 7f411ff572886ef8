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

// Of a text of few tokens the maker has its choice: it tries secrets until the text is the one that it wants, for which
// it made up what the adapter adds. Such a text does not count as one that follows from the commitment.
func TestShortTextsAreChosen(t *testing.T) {
	const vocab, layer = 256, "layer"
	base, wanted := canon.Sum("base"), []uint32{7, 9}
	commitment, tries := make([]byte, 32), uint64(0)
	for ; !slices.Equal(Drawn(base, layer, commitment, vocab, len(wanted)), wanted); tries++ {
		binary.LittleEndian.PutUint64(commitment, tries)
	}
	s := proof.Statement{Base: base, Module: layer, Tokens: wanted}
	if follows(s, commitment, vocab) {
		t.Errorf("a text that was found with %d tries follows from its commitment", tries)
	}
	for size, want := range map[int]int{2: 64, 256: 8, 50_257: 5, 1 << 17: 4} {
		n := Enough(size)
		if s.Tokens = Drawn(base, layer, commitment, size, n); n != want || !follows(s, commitment, size) {
			t.Errorf("%d tokens of %d, wanted %d", n, size, want)
		}
		if s.Tokens = s.Tokens[:n-1]; follows(s, commitment, size) {
			t.Errorf("%d tokens of %d are enough", n-1, size)
		}
	}
}
