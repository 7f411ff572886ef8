package classes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// ErrModel wraps every reason why a folder holds no model that classifies images.
var ErrModel = errors.New("not a model that classifies images")

// ErrSize is wrapped by reasons why an image does not fit a model.
var ErrSize = errors.New("the image does not fit the model")

// Images is a trained network that names the classes of images.
type Images struct {
	network vision.Network
	weights map[string]*tensor.Tensor
}

// scorer computes the scores of the classes of a number of images.
type scorer struct {
	executor *cpu.Exec
	images   int
}

// OpenImages reads config.json and model.safetensors. Errors wrap ErrModel.
func OpenImages(dir fs.FS) (*Images, error) {
	config, err := fs.ReadFile(dir, "config.json")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	m := &Images{weights: map[string]*tensor.Tensor{}}
	if m.network, err = vision.Read(config); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrModel, err)
	}
	raw, err := fs.ReadFile(dir, "model.safetensors")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	f, err := safetensors.Open(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: model.safetensors: %w", ErrModel, err)
	}
	for _, n := range m.network.Tensors() {
		w, err := f.Tensor(n.Name)
		if err == nil && !w.Shape.Equal(n.Shape) {
			err = fmt.Errorf("tensor %q is %v, and config.json asks for %v", n.Name, w.Shape, n.Shape)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: model.safetensors: %w", ErrModel, err)
		}
		m.weights[train.Param+n.Name] = w
	}
	return m, nil
}

// Labels are the names of the classes.
func (m *Images) Labels() []string { return m.network.Labels() }

// Fits returns an error that wraps ErrSize if an image has another size than those that the model was trained on.
func (m *Images) Fits(p picture.Picture) error {
	if want := m.network.Size(); p.Size != want {
		return fmt.Errorf("%w: it is %v, and the model takes %v", ErrSize, p.Size, want)
	}
	return nil
}

// Classify returns the probabilities of the classes, in the order of Labels, for each of some images that fit.
func (m *Images) Classify(ctx context.Context, images []picture.Picture, threads int) (all [][]float64, err error) {
	var s scorer
	for len(images) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some := images[:min(len(images), evalImages)]
		images = images[len(some):]
		if s.images != len(some) {
			if s, err = m.scorer(len(some), threads); err != nil {
				return nil, err
			}
		}
		scores, err := m.scores(s.executor, some)
		if err != nil {
			return nil, err
		}
		for k := len(m.Labels()); len(scores) > 0; scores = scores[k:] {
			all = append(all, probabilities(scores[:k]))
		}
	}
	return all, nil
}

func (m *Images) scorer(images, threads int) (scorer, error) {
	p, err := model.Scores(m.network, images)
	if err != nil {
		return scorer{}, err
	}
	x, err := cpu.Compile(p, threads)
	return scorer{x, images}, err
}

// scores are those of the classes of some images, one after the other.
func (m *Images) scores(x *cpu.Exec, images []picture.Picture) ([]float32, error) {
	in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, len(images), m.network.Example()))}
	values := in["tokens"].I32()
	for _, image := range images {
		for i, v := range image.Values {
			values[i] = int32(v)
		}
		values = values[len(image.Values):]
	}
	for name, w := range m.weights {
		in[name] = w
	}
	out, err := x.Run(in)
	if err != nil {
		return nil, err
	}
	return out["scores"].F32(), nil
}

// probabilities is the softmax of scores.
func probabilities(scores []float32) []float64 {
	top, sum := math.Inf(-1), 0.
	for _, s := range scores {
		top = max(top, float64(s))
	}
	out := make([]float64, len(scores))
	for i, s := range scores {
		out[i] = math.Exp(float64(s) - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
