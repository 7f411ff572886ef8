// Package proven makes and checks proofs about adapters of models in folders: it reads the files, computes what a layer
// of the base model reads, and leaves the algebra to package proof.
package proven

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/push/published"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/circuit"
)

// Errors of proofs about folders.
var (
	ErrFolder = errors.New("not the folder of a model")
	ErrOther  = errors.New("the proof is about something else")
	ErrSecret = errors.New("not a secret of proofs")
)

// adapterDir is where the output folder of a run has its adapter.
const adapterDir = "adapter"

// adapterOf reads the adapter of a folder, in itself or below it.
func adapterOf(dir string, base *pretrained.Model) (*folder.Adapter, error) {
	inner := filepath.Join(dir, adapterDir)
	if _, err := os.Stat(filepath.Join(inner, "adapter_config.json")); err == nil {
		dir = inner
	}
	a, err := folder.ReadAdapter(os.DirFS(dir), base.Config)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, dir, err)
	}
	return a, nil
}

// describe is the digest by which a listing names the files of a folder.
func describe(ctx context.Context, dir string) (canon.Digest, error) {
	files, err := published.Files(dir)
	if err != nil {
		return canon.Digest{}, err
	}
	if len(files) == 0 {
		return canon.Digest{}, fmt.Errorf("%w: %s has no files of a model", ErrFolder, dir)
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return canon.Digest{}, err
	}
	source := goods.Source{Folder: path}
	for _, f := range files {
		source.Files = append(source.Files, f.Name)
	}
	return goods.Describe(ctx, source, nil)
}

// Layers lists the layers that the adapter of a folder changes, with their shapes.
func Layers(dir string, base *pretrained.Model) (names []string, shapes []proof.Shape, err error) {
	a, err := adapterOf(dir, base)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range a.Config.Adapted() {
		names, shapes = append(names, architecture.Module(n)), append(shapes, shapeOf(a.Config, n))
	}
	return names, shapes, nil
}

func shapeOf(c architecture.Config, n architecture.Named) proof.Shape {
	in, out := architecture.InOut(c, n)
	l, _ := c.LoRA()
	return proof.Shape{Rank: uint32(l.Rank), In: uint32(in), Out: uint32(out)}
}

// weightsOf are the integers of the adapter of a layer.
func weightsOf(a *folder.Adapter, layer string) (w proof.Weights, err error) {
	list := a.Config.Adapted()
	i := slices.IndexFunc(list, func(n architecture.Named) bool { return architecture.Module(n) == layer })
	if i < 0 {
		return w, fmt.Errorf("%w: the adapter does not change the layer %q, but %s", ErrOther, layer,
			architecture.Module(list[0]))
	}
	w.Shape = shapeOf(a.Config, list[i])
	if w.A, err = proof.Quantise(a.Tensors[architecture.AdapterPrefix+layer+architecture.DownSuffix].F32()); err != nil {
		return w, err
	}
	w.B, err = proof.Quantise(a.Tensors[architecture.AdapterPrefix+layer+architecture.UpSuffix].F32())
	return w, err
}

// inputs are what a layer of the base model, without adapters, reads at each token of a text.
func inputs(base *pretrained.Model, layer string, tokens []uint32, threads int) (proof.Fixed, error) {
	ids := make([]int32, len(tokens))
	for i, t := range tokens {
		if int64(t) >= int64(base.Config.VocabSize()) {
			return proof.Fixed{}, fmt.Errorf("%w: token %d of a vocabulary of %d", ErrOther, t, base.Config.VocabSize())
		}
		ids[i] = int32(t)
	}
	p, err := model.LayerInput(base.Config, layer, 1, len(ids))
	if err != nil {
		return proof.Fixed{}, fmt.Errorf("%w: %w", ErrOther, err)
	}
	x, err := cpu.Compile(p, threads)
	if err != nil {
		return proof.Fixed{}, err
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(ids, 1, len(ids))}
	for name, t := range base.Tensors {
		in[train.Param+name] = t
	}
	out, err := x.Run(in)
	if err != nil {
		return proof.Fixed{}, err
	}
	return proof.Quantise(out["input"].F32())
}

// Drawn are n tokens for the text of a proof, which follow from a commitment: if they are Enough, its maker cannot
// choose them.
func Drawn(base canon.Digest, layer string, commitment []byte, vocab, n int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		d := canon.Sum("starling/proof/tokens/1", base[:], []byte(layer), commitment,
			binary.LittleEndian.AppendUint32(nil, uint32(i)))
		tokens[i] = uint32(binary.LittleEndian.Uint64(d[:]) % uint64(vocab))
	}
	return tokens
}

// chosenBits is how many bits a maker cannot search: it tries secrets, each of which gives another commitment and
// another text, until it has one of this many texts.
const chosenBits = 64

// Enough is the least number of tokens of a vocabulary that a maker of matrices of some rank cannot choose by trying
// secrets. A maker can make up the outputs of the matrices for as many inputs of the layer as their rank. Where the
// token alone gives the input, it looks for a text that has these tokens and no other: of the texts of n tokens one in
// (vocab/rank)^n. The result is above proof.MaxTokens if no text is long enough.
func Enough(vocab, rank int) int {
	if vocab <= rank {
		return proof.MaxTokens + 1
	}
	return int(min(math.Ceil(chosenBits/math.Log2(float64(vocab)/float64(rank))), proof.MaxTokens+1))
}

// follows reports whether the text of a statement follows from the commitment, and is long enough.
func follows(s proof.Statement, commitment []byte, vocab int) bool {
	return len(s.Tokens) >= Enough(vocab, int(s.Shape.Rank)) &&
		slices.Equal(s.Tokens, Drawn(s.Base, s.Module, commitment, vocab, len(s.Tokens)))
}

// Options of a proof.
type Options struct {
	Adapter, Base string // folders
	Layer         string
	Owner         string // account for which the proof is made; "": none
	Text          string // "": Tokens tokens that follow from the commitment
	Tokens        int    // 0: Enough
	Threads       int
}

// Make makes a proof about one layer of an adapter, with the keys of a setup for its shape.
func Make(ctx context.Context, o Options, v *proof.Verifier, pk *groth16.ProvingKey, secret circuit.Secret,
	say func(string)) (made proof.Proof, err error) {
	say("reads the models")
	base, err := pretrained.Load(o.Base)
	if err != nil {
		return made, err
	}
	a, err := adapterOf(o.Adapter, base)
	if err != nil {
		return made, err
	}
	w, err := weightsOf(a, o.Layer)
	if err != nil {
		return made, err
	}
	if want := v.Key().Shape; w.Shape != want {
		return made, fmt.Errorf("%w: the layer has %s, and the keys are for %s", ErrOther, w.Shape, want)
	}
	s := proof.Statement{Module: o.Layer, Factor: math.Float64bits(a.Config.Scale()), Owner: o.Owner}
	if s.Base, err = describe(ctx, o.Base); err != nil {
		return made, err
	}
	if s.Adapter, err = describe(ctx, o.Adapter); err != nil {
		return made, err
	}
	p, err := circuit.NewProver(v, pk)
	if err != nil {
		return made, err
	}
	if o.Text != "" {
		s.Tokens = base.Tokenizer.Encode(o.Text)
	} else {
		commitment, err := p.Commit(w, o.Layer, secret)
		if err != nil {
			return made, err
		}
		vocab := base.Config.VocabSize()
		n := cmp.Or(o.Tokens, Enough(vocab, int(w.Shape.Rank)))
		if n > proof.MaxTokens {
			return made, fmt.Errorf("%w: with rank %d and %d tokens in the vocabulary its maker can choose every text of "+
				"at most %d tokens; name their number or a text", proof.ErrStatement, w.Shape.Rank, vocab, proof.MaxTokens)
		}
		s.Tokens = Drawn(s.Base, o.Layer, commitment, vocab, n)
	}
	if n := len(s.Tokens); n < 1 || n > proof.MaxTokens || n > base.Config.Context() {
		return made, fmt.Errorf("%w: a text of %d tokens, wanted 1 to %d", proof.ErrStatement, n,
			min(proof.MaxTokens, base.Config.Context()))
	}
	say("computes what the layer reads")
	x, err := inputs(base, o.Layer, s.Tokens, o.Threads)
	if err != nil {
		return made, err
	}
	if err := s.Apply(w, x); err != nil {
		return made, err
	}
	say("makes the proof")
	if made, err = p.Prove(s, w, secret); err != nil {
		return made, err
	}
	return made, v.Verify(made)
}

// Checked is what was checked of a proof.
type Checked struct {
	Base    bool // its inputs are those of the base model, whose files are those of the statement
	Drawn   bool // its text follows from the commitment, and is too long for its maker to have chosen it
	Weights bool // its commitment is to the adapter, whose files are those of the statement
}

// Sources are what a proof is compared with. Folders that are empty are not compared.
type Sources struct {
	Base, Adapter string
	Secret        circuit.Secret // of the maker, with Adapter
	Proving       *groth16.ProvingKey
	Threads       int
}

// Check verifies a proof, and compares it with folders. The error wraps proof.ErrInvalid if the proof does not hold,
// and ErrOther if it is not about the folders.
func Check(ctx context.Context, p proof.Proof, v *proof.Verifier, from Sources) (c Checked, err error) {
	if err := v.Verify(p); err != nil || from.Base == "" {
		return c, err
	}
	s := p.Statement
	same := func(dir string, want canon.Digest) error {
		d, err := describe(ctx, dir)
		if err == nil && d != want {
			err = fmt.Errorf("%w: the files of %s are %s, and the statement says %s", ErrOther, dir, d.Short(), want.Short())
		}
		return err
	}
	if err := same(from.Base, s.Base); err != nil {
		return c, err
	}
	base, err := pretrained.Load(from.Base)
	if err != nil {
		return c, err
	}
	x, err := inputs(base, s.Module, s.Tokens, from.Threads)
	if err != nil {
		return c, err
	}
	mine := s
	mine.Inputs = nil
	for _, n := range x.Values {
		mine.Inputs = binary.LittleEndian.AppendUint16(mine.Inputs, uint16(n))
	}
	if x.Exponent != s.Exponents[2] || !bytes.Equal(mine.Inputs, s.Inputs) {
		return c, fmt.Errorf("%w: layer %s of %s reads other numbers", ErrOther, s.Module, from.Base)
	}
	c.Base = true
	c.Drawn = follows(s, p.Commitment, base.Config.VocabSize())
	if from.Adapter == "" {
		return c, nil
	}
	if err := same(from.Adapter, s.Adapter); err != nil {
		return c, err
	}
	a, err := adapterOf(from.Adapter, base)
	if err != nil {
		return c, err
	}
	w, err := weightsOf(a, s.Module)
	if err != nil {
		return c, err
	}
	prover, err := circuit.NewProver(v, from.Proving)
	if err != nil {
		return c, err
	}
	commitment, err := prover.Commit(w, s.Module, from.Secret)
	if err != nil {
		return c, err
	}
	if !bytes.Equal(commitment, p.Commitment) || w.A.Exponent != s.Exponents[0] || w.B.Exponent != s.Exponents[1] ||
		math.Float64bits(a.Config.Scale()) != s.Factor {
		return c, fmt.Errorf("%w: the commitment is not to the weights of %s under this secret", ErrOther, from.Adapter)
	}
	c.Weights = true
	return c, nil
}

// ReadSecret reads the secret of a file. With create it makes one where there is no file.
func ReadSecret(name string, create bool) (s circuit.Secret, err error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		if _, err := rand.Read(s[:]); err != nil {
			return s, err
		}
		return s, os.WriteFile(name, fmt.Appendf(nil, "%x\n", s), 0o600)
	}
	if err != nil {
		return s, err
	}
	var d canon.Digest
	if err := d.UnmarshalText(bytes.TrimSpace(data)); err != nil {
		return s, fmt.Errorf("%w: %s: %w", ErrSecret, name, err)
	}
	return circuit.Secret(d), nil
}
