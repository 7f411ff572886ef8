package proven

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/classes"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/inference"
)

// Network is a network of dense layers that classifies images, as integers, with the folder that it was read from.
type Network struct {
	Labels []string // of the classes

	integers inference.Network
	images   *classes.Images
	dir      string
}

// OpenNetwork reads the network of a folder, and rounds its weights to integers. The error wraps ErrFolder for models
// of other kinds.
func OpenNetwork(dir string) (*Network, error) {
	fail := func(err error) (*Network, error) { return nil, fmt.Errorf("%w: %s: %w", ErrFolder, dir, err) }
	images, err := classes.OpenImages(os.DirFS(dir))
	if err != nil {
		return fail(err)
	}
	config, err := os.ReadFile(dir + "/config.json")
	if err != nil {
		return fail(err)
	}
	v, err := vision.Read(config)
	if err != nil {
		return fail(err)
	}
	if v.Architecture() != vision.MLP {
		return fail(fmt.Errorf("a network of the kind %s has no proofs: %s has", v.Architecture(), vision.MLP))
	}
	tensors, err := folder.ReadExact(os.DirFS(dir), v.Tensors(), train.Param)
	if err != nil {
		return fail(err)
	}
	shape, list := inference.Shape{Widths: []uint32{uint32(v.Size().Values())}}, []inference.Floats{}
	for layer := 1; ; layer++ {
		name := fmt.Sprintf("%sfc%d.", train.Param, layer)
		w, b := tensors[name+"weight"], tensors[name+"bias"]
		if w == nil || b == nil {
			break
		}
		shape.Widths = append(shape.Widths, uint32(len(b.F32())))
		list = append(list, inference.Floats{Weights: w.F32(), Added: b.F32()})
	}
	n, err := inference.Quantise(shape, list)
	return &Network{v.Labels(), n, images, dir}, err
}

// Shape is the shape for which keys are needed.
func (n *Network) Shape() inference.Shape { return n.integers.Shape }

// ReadImage reads an image that fits the network.
func (n *Network) ReadImage(name string) (picture.Picture, error) {
	f, err := os.Open(name)
	if err != nil {
		return picture.Picture{}, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, picture.MaxBytes+1))
	if err != nil {
		return picture.Picture{}, err
	}
	p, err := picture.Decode(raw)
	if err == nil {
		err = n.images.Fits(p)
	}
	if err != nil {
		return p, fmt.Errorf("%w: %s: %w", ErrOther, name, err)
	}
	return p, nil
}

// Answer compares the class that the integers say with that of the engine, in float32.
type Answer struct {
	Label      string  // of the integers
	Engine     string  // label of the engine
	Difference float64 // largest of the probabilities of a class
}

// Said is what a statement about the network says, with the engine's answer.
func (n *Network) Said(ctx context.Context, s inference.Statement, image picture.Picture, threads int) (Answer, error) {
	all, err := n.images.Classify(ctx, []picture.Picture{image}, threads)
	if err != nil {
		return Answer{}, err
	}
	a, best := Answer{Label: n.Labels[s.Best()]}, 0
	for i, p := range probabilities(s.Scores()) {
		a.Difference = max(a.Difference, math.Abs(p-all[0][i]))
		if all[0][i] > all[0][best] {
			best = i
		}
	}
	a.Engine = n.Labels[best]
	return a, nil
}

// probabilities are the softmax of scores.
func probabilities(scores []float64) []float64 {
	top, sum := math.Inf(-1), 0.
	for _, x := range scores {
		top = max(top, x)
	}
	for i, x := range scores {
		scores[i] = math.Exp(x - top)
		sum += scores[i]
	}
	for i := range scores {
		scores[i] /= sum
	}
	return scores
}

// Infer proves what the network says about an image, with the keys of a setup for its shape; for an account, or "".
func (n *Network) Infer(ctx context.Context, image picture.Picture, owner string, v *inference.Verifier,
	pk *groth16.ProvingKey, secret circuit.Secret) (made inference.Proof, err error) {
	if have, want := n.Shape().String(), v.Key().Shape.String(); have != want {
		return made, fmt.Errorf("%w: it is %s, and the keys are for %s", ErrOther, have, want)
	}
	s := inference.Statement{Owner: owner}
	if s.Model, err = describe(ctx, n.dir); err != nil {
		return made, err
	}
	if err := s.Apply(n.integers, image.Values); err != nil {
		return made, err
	}
	p, err := circuit.NewInferrer(v, pk)
	if err != nil {
		return made, err
	}
	return p.Prove(s, n.integers, secret)
}

// Committed checks that a proof is about the files of the network, its commitment to their integers under a secret, and
// that its exponents are theirs.
// The error wraps ErrOther if it is not.
func (n *Network) Committed(ctx context.Context, made inference.Proof, v *inference.Verifier, pk *groth16.ProvingKey,
	secret circuit.Secret) error {
	d, err := describe(ctx, n.dir)
	if err != nil {
		return err
	}
	if s := made.Statement; d != s.Model {
		return fmt.Errorf("%w: the files of %s are %s, and the statement says %s", ErrOther, n.dir, d.Short(),
			s.Model.Short())
	}
	p, err := circuit.NewInferrer(v, pk)
	if err != nil {
		return err
	}
	commitment, err := p.Commit(n.integers, secret)
	if err != nil {
		return err
	}
	again := inference.Statement{}
	if err := again.Apply(n.integers, made.Statement.Pixels); err != nil {
		return fmt.Errorf("%w: %w", ErrOther, err)
	}
	if !bytes.Equal(commitment, made.Commitment) || !bytes.Equal(again.Outputs, made.Statement.Outputs) {
		return fmt.Errorf("%w: the commitment is not to the weights of %s under this secret", ErrOther, n.dir)
	}
	if have, want := made.Statement.Exponents, again.Exponents; !slices.Equal(have, want) { // the circuit has none
		return fmt.Errorf("%w: the exponents of the statement are %v, and those of %s %v: the scores are others", ErrOther,
			have, n.dir, want)
	}
	return nil
}
