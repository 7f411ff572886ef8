// Package vision has networks that classify images: a multilayer perceptron and a convolutional network. It reads the
// config.json of such a network and writes its computation; compute/model makes programs of it.
package vision

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/fields"
)

// The architectures: a chain of dense layers; convolutions before such a chain, each followed by pooling that halves
// the rows and the columns.
const (
	MLP = "mlp"
	CNN = "cnn"
)

// defaults are the widths of the dense layers but the last, by architecture.
var defaults = map[string][]int{MLP: {64}, CNN: {32}}

// Limits of a network.
const (
	maxWidth   = 1 << 16
	maxLayers  = 64
	maxClasses = 1 << 14
	maxKernel  = 15
)

// Network is a classifier of images of one size.
type Network struct {
	architecture string
	size         picture.Size
	labels       []string // of the classes
	hidden       []int    // widths of the dense layers but the last

	channels []int // of the convolutions; an MLP has none
	kernel   int   // rows and columns of each of them: odd
	mean     bool  // pools by the mean, and not by the maximum
}

// Keys of a configuration that follow from the data.
const (
	keySize, keyChannels, keyLabels = "image_size", "num_channels", "id2label"
)

// Parse reads a configuration: the keys of a config.json besides those that follow from the images, which are of the
// given size, and their labels, ascending.
func Parse(name string, config map[string]any, size picture.Size, labels []string) (Network, error) {
	n := Network{architecture: name, size: size, labels: labels}
	dense, known := defaults[name]
	if !known {
		return n, &fields.Error{Key: "model_type", Problem: fmt.Sprintf("%q classifies no images", name),
			Fix: "use mlp or cnn"}
	}
	f := &fields.Reader{Raw: config}
	n.hidden = f.Sizes("hidden_sizes", dense, maxLayers, maxWidth)
	if name == CNN {
		n.channels = f.Sizes("conv_channels", []int{16, 32}, maxLayers, maxWidth)
		if n.kernel = f.Size("kernel_size", 3, maxKernel); n.kernel%2 == 0 {
			f.Fail("kernel_size", fmt.Sprintf("%d is even", n.kernel), "use an odd number, for example 3")
		}
		n.mean = fields.Word(f, "pooling", "max", map[string]bool{"max": false, "mean": true}) == "mean"
	}
	if err := f.Finish(); err != nil {
		return n, err
	}
	return n, n.check()
}

func (n Network) check() error {
	if s := n.size; s.Values() < 1 || s.Rows*s.Columns > picture.MaxPixels {
		return &fields.Error{Key: keySize, Problem: fmt.Sprintf("images of %v", s), Fix: "use smaller images"}
	}
	if rows, columns := n.pooled(); rows < 1 || columns < 1 {
		return &fields.Error{Key: "conv_channels", Problem: fmt.Sprintf("images of %v cannot be halved %d times", n.size,
			len(n.channels)), Fix: "use fewer convolutions"}
	}
	if k := len(n.labels); k < 2 || k > maxClasses {
		return &fields.Error{Key: keyLabels, Problem: fmt.Sprintf("%d classes", k),
			Fix: fmt.Sprintf("there are 2 to %d", maxClasses)}
	}
	return nil
}

// Read reads a config.json.
func Read(raw []byte) (Network, error) {
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return Network{}, err
	}
	var known struct {
		Name     string            `json:"model_type"`
		Size     [2]int            `json:"image_size"`
		Channels int               `json:"num_channels"`
		Labels   map[string]string `json:"id2label"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return Network{}, err
	}
	if _, ok := defaults[known.Name]; !ok {
		return Parse(known.Name, nil, picture.Size{}, nil) // which refuses it
	}
	labels, err := fields.Labels(known.Labels)
	if err != nil {
		return Network{}, err
	}
	if c := known.Channels; c != 1 && c != 3 {
		return Network{}, &fields.Error{Key: keyChannels, Problem: fmt.Sprintf("%d channels", c), Fix: "use 1 or 3"}
	}
	size := picture.Size{Rows: known.Size[0], Columns: known.Size[1], Channels: known.Channels}
	if min(size.Rows, size.Columns) < 1 || max(size.Rows, size.Columns) > picture.MaxPixels {
		return Network{}, &fields.Error{Key: keySize, Problem: fmt.Sprintf("%d x %d", size.Rows, size.Columns),
			Fix: "write rows and columns"}
	}
	for _, key := range []string{"model_type", keySize, keyChannels, keyLabels} {
		delete(config, key)
	}
	return Parse(known.Name, config, size, labels)
}

// JSON is the config.json that Read reads.
func (n Network) JSON() []byte {
	config := map[string]any{"model_type": n.architecture, keySize: []int{n.size.Rows, n.size.Columns},
		keyChannels: n.size.Channels, keyLabels: fields.Numbered(n.labels), "hidden_sizes": n.hidden}
	if n.architecture == CNN {
		config["conv_channels"], config["kernel_size"] = n.channels, n.kernel
		config["pooling"] = map[bool]string{false: "max", true: "mean"}[n.mean]
	}
	raw, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(raw, '\n')
}

// Architecture is the name of the kind of network.
func (n Network) Architecture() string { return n.architecture }

// Size is that of an image.
func (n Network) Size() picture.Size { return n.size }

// Labels are the names of the classes.
func (n Network) Labels() []string { return n.labels }

// Example implements model.Classifier.
func (n Network) Example() int { return n.size.Values() }

// Frozen implements model.Classifier: there is nothing besides the tensors.
func (n Network) Frozen() []architecture.Named { return nil }

// Parameters counts the elements of all tensors.
func (n Network) Parameters() (count int) {
	for _, t := range n.Tensors() {
		count += t.Shape.Elements()
	}
	return count
}

// pooled are the rows and columns after the last convolution.
func (n Network) pooled() (rows, columns int) {
	return n.size.Rows >> len(n.channels), n.size.Columns >> len(n.channels)
}

// Tensors lists the tensors with the names and layouts of PyTorch: for convolution i from 1 "conv<i>.weight" [out, in,
// kernel, kernel] and "conv<i>.bias" [out], then for dense layer i from 1 "fc<i>.weight" [out, in] and "fc<i>.bias"
// [out]. The input of the first dense layer has the rows, then the columns, then the channels. Weights begin so that
// relu keeps the variance (He et al. 2015, equation 10).
func (n Network) Tensors() (list []architecture.Named) {
	in := n.size.Channels
	for i, out := range n.channels {
		name := fmt.Sprintf("conv%d.", i+1)
		std := math.Sqrt(2 / float64(in*n.kernel*n.kernel))
		list = append(list, architecture.Normal(std, name+"weight", out, in, n.kernel, n.kernel),
			architecture.Zeros(name+"bias", out))
		in = out
	}
	rows, columns := n.pooled()
	in *= rows * columns
	for i, out := range append(slices.Clone(n.hidden), len(n.labels)) {
		name := fmt.Sprintf("fc%d.", i+1)
		list = append(list, architecture.Normal(math.Sqrt(2/float64(in)), name+"weight", out, in),
			architecture.Zeros(name+"bias", out))
		in = out
	}
	return list
}
