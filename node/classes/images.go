// Package classes names the classes of images and of texts with trained networks. It trains none.
package classes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// ErrModel wraps every reason why a folder holds no model that classifies images.
var ErrModel = errors.New("not a model that classifies images")

// ErrSize is wrapped by reasons why an image does not fit a model.
var ErrSize = errors.New("the image does not fit the model")

// atOnce is how many images are classified at a time.
const atOnce = 32

// Images is a trained network that names the classes of images.
type Images struct {
	network vision.Network
	weights map[string]*tensor.Tensor
}

// OpenImages reads config.json and model.safetensors. Errors wrap ErrModel.
func OpenImages(dir fs.FS) (*Images, error) {
	config, err := fs.ReadFile(dir, "config.json")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	m := &Images{}
	if m.network, err = vision.Read(config); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrModel, err)
	}
	if m.weights, err = folder.ReadExact(dir, m.network.Tensors(), train.Param); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
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
	s := newScorer(m.weights, threads)
	for len(images) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some := images[:min(len(images), atOnce)]
		images = images[len(some):]
		each, err := s.probabilities(m.network, len(some), func(tokens []int32) {
			for i, image := range some {
				for j, v := range image.Values {
					tokens[i*m.network.Example()+j] = int32(v)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		all = append(all, each...)
	}
	return all, nil
}
