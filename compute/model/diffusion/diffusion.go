// Package diffusion has networks that estimate the noise in images: a multilayer perceptron and a U-Net of
// convolutions, with the schedule of the noise (Ho et al. 2020). It reads the config.json of such a network and writes
// its computation; compute/model makes programs of it.
package diffusion

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/noising"
)

// The architectures: dense layers over all values of an image; convolutions of images of ever smaller sizes, then of
// ever larger ones.
const (
	MLP = "mlp"
	CNN = "cnn"
)

// widths are the keys and the defaults of the widths of the hidden layers, by architecture.
var widths = map[string]struct {
	key  string
	from []int
}{MLP: {"hidden_sizes", []int{256, 256}}, CNN: {"conv_channels", []int{32, 64}}}

// Limits of a network. With fewer times a step of the schedule would be all noise.
const (
	MinTimesteps = 50
	MaxTimesteps = 4000
	maxWidth     = 1 << 16
	maxLayers    = 20
	maxKernel    = 15
)

// timeWidth is the number of sines and cosines that a time is given by.
const timeWidth = 32

// Network estimates the noise in images of one size.
type Network struct {
	architecture string
	size         picture.Size
	timesteps    int
	widths       []int // of the hidden layers
	kernel       int   // rows and columns of each convolution: odd; 0: an MLP has none
}

// Keys of a config.json that are no keys of model.config.
const (
	keySize, keyChannels, keyTimesteps = "image_size", "num_channels", "num_train_timesteps"
)

// Parse reads a configuration: the keys of a config.json besides those that follow from the images, which are of the
// given size, and the number of times.
func Parse(name string, config map[string]any, size picture.Size, timesteps int) (Network, error) {
	n := Network{architecture: name, size: size, timesteps: timesteps}
	layers, known := widths[name]
	if !known {
		return n, &fields.Error{Key: "model_type", Problem: fmt.Sprintf("%q draws no images", name), Fix: "use mlp or cnn"}
	}
	f := &fields.Reader{Raw: config}
	n.widths = f.Sizes(layers.key, layers.from, maxLayers, maxWidth)
	if len(n.widths) == 0 {
		f.Fail(layers.key, "there is no hidden layer", "give at least one width")
	}
	if name == CNN {
		if n.kernel = f.Size("kernel_size", 3, maxKernel); n.kernel%2 == 0 {
			f.Fail("kernel_size", fmt.Sprintf("%d is even", n.kernel), "use an odd number, for example 3")
		}
	}
	if err := f.Finish(); err != nil {
		return n, err
	}
	if s := size; s.Values() < 1 || s.Rows*s.Columns > picture.MaxPixels {
		return n, &fields.Error{Key: keySize, Problem: fmt.Sprintf("images of %v", s), Fix: "use smaller images"}
	}
	if half := len(n.widths) - 1; name == CNN && (size.Rows%(1<<half) != 0 || size.Columns%(1<<half) != 0) {
		return n, &fields.Error{Key: layers.key, Problem: fmt.Sprintf("images of %v cannot be halved %d times", size, half),
			Fix: "use fewer convolutions"}
	}
	if timesteps < MinTimesteps || timesteps > MaxTimesteps {
		return n, &fields.Error{Key: keyTimesteps, Problem: fmt.Sprint(timesteps),
			Fix: fmt.Sprintf("use %d to %d", MinTimesteps, MaxTimesteps)}
	}
	return n, nil
}

// Read reads a config.json.
func Read(raw []byte) (Network, error) {
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return Network{}, err
	}
	var known struct {
		Name      string `json:"model_type"`
		Size      [2]int `json:"image_size"`
		Channels  int    `json:"num_channels"`
		Timesteps int    `json:"num_train_timesteps"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return Network{}, err
	}
	if _, ok := config[keyTimesteps]; !ok {
		return Network{}, &fields.Error{Key: keyTimesteps, Problem: "it is missing", Fix: "use a model of task: diffusion"}
	}
	if c := known.Channels; c != 1 && c != 3 {
		return Network{}, &fields.Error{Key: keyChannels, Problem: fmt.Sprintf("%d channels", c), Fix: "use 1 or 3"}
	}
	size := picture.Size{Rows: known.Size[0], Columns: known.Size[1], Channels: known.Channels}
	if min(size.Rows, size.Columns) < 1 || max(size.Rows, size.Columns) > picture.MaxPixels {
		return Network{}, &fields.Error{Key: keySize, Problem: fmt.Sprintf("%d x %d", size.Rows, size.Columns),
			Fix: "write rows and columns"}
	}
	for _, key := range []string{"model_type", keySize, keyChannels, keyTimesteps} {
		delete(config, key)
	}
	return Parse(known.Name, config, size, known.Timesteps)
}

// JSON is the config.json that Read reads.
func (n Network) JSON() []byte {
	config := map[string]any{"model_type": n.architecture, keySize: []int{n.size.Rows, n.size.Columns},
		keyChannels: n.size.Channels, keyTimesteps: n.timesteps, widths[n.architecture].key: n.widths}
	if n.architecture == CNN {
		config["kernel_size"] = n.kernel
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

// Timesteps is the number of steps from an image to noise.
func (n Network) Timesteps() int { return n.timesteps }

// Example implements model.Denoiser.
func (n Network) Example() int { return n.size.Values() }

// Parameters counts the elements of all tensors.
func (n Network) Parameters() (count int) {
	for _, t := range n.Tensors() {
		count += t.Shape.Elements()
	}
	return count
}

// layer is a hidden layer with its numbers of inputs and outputs.
type layer struct {
	name    string
	in, out int
}

// layers lists the hidden layers.
func (n Network) layers() (list []layer) {
	if n.architecture == MLP {
		in := n.Example()
		for i, out := range n.widths {
			list = append(list, layer{fmt.Sprintf("layer%d", i+1), in, out})
			in = out
		}
		return list
	}
	in := n.size.Channels
	for i, out := range n.widths {
		list = append(list, layer{fmt.Sprintf("down%d", i+1), in, out})
		in = out
	}
	list = append(list, layer{"middle", in, in})
	for i := len(n.widths) - 2; i >= 0; i-- {
		list = append(list, layer{fmt.Sprintf("up%d", i+1), in + n.widths[i], n.widths[i]})
		in = n.widths[i]
	}
	return list
}

// Tensors lists the tensors with the layouts of PyTorch: of each hidden layer ".weight" and ".bias", and those of the
// map of the time, ".time.weight" [out, timeWidth] and ".time.bias"; then "out.weight" and "out.bias". Hidden layers of
// an MLP are "layer<i>" from 1; those of a CNN "down<i>", "middle" and "up<i>", with i for the size of their images,
// from 1. Weights begin so that relu keeps the variance (He et al. 2015, equation 10), and the last layer gives 0.
func (n Network) Tensors() (list []architecture.Named) {
	shape := func(out, in int) []int {
		if n.architecture == MLP {
			return []int{out, in}
		}
		return []int{out, in, n.kernel, n.kernel}
	}
	layers, last := n.layers(), n.size.Channels
	for _, l := range layers {
		fan := l.in * max(1, n.kernel*n.kernel)
		list = append(list, architecture.Normal(math.Sqrt(2/float64(fan)), l.name+".weight", shape(l.out, l.in)...),
			architecture.Zeros(l.name+".bias", l.out),
			architecture.Normal(math.Sqrt(1/float64(timeWidth)), l.name+".time.weight", l.out, timeWidth),
			architecture.Zeros(l.name+".time.bias", l.out))
	}
	if n.architecture == MLP {
		last = n.Example()
	}
	in := layers[len(layers)-1].out
	return append(list, architecture.Zeros("out.weight", shape(last, in)...), architecture.Zeros("out.bias", last))
}

// frequencies are those of the sines and cosines of times, from 1 to 1/10000.
func frequencies() []float32 {
	const half = timeWidth / 2
	each := make([]float32, half)
	for i := range each {
		each[i] = float32(detmath.Exp64(float64(-float64(i) / half * math.Ln10 * 4)))
	}
	return each
}

// A Step says how an image is drawn at one time: see Steps.
type Step struct {
	Kept, Added    float32 // factors of an image and of the noise in one that is noisy
	OfImage, OfOld float32 // factors of the estimated image and of the noisy one in the mean of the next
	Deviation      float32 // of the noise that is added to that mean
}

// Steps is the schedule of times from 0: the variance of the noise of a step rises in a line from 0.1/timesteps to
// 20/timesteps, which is that of Ho et al. 2020, section 4, for 1000 times (for other numbers as Nichol and Dhariwal
// 2021 have it). The mean is that of equation 7, and the deviation the root of that variance; at time 0 it is 0.
func (n Network) Steps() []Step {
	steps, product := make([]Step, n.timesteps), 1.0
	for t := range steps {
		share := float64(t) / float64(n.timesteps-1)
		beta := float64(0.1+float64(share*19.9)) / float64(n.timesteps)
		before := product
		product = float64(product * float64(1-beta))
		s := Step{Kept: float32(math.Sqrt(product)), Added: float32(math.Sqrt(1 - product)),
			OfImage: float32(float64(math.Sqrt(before)*beta) / (1 - product)),
			OfOld:   float32(float64(math.Sqrt(1-beta)*float64(1-before)) / (1 - product))}
		if t > 0 {
			s.Deviation = float32(math.Sqrt(beta))
		}
		steps[t] = s
	}
	return steps
}

// Schedule implements model.Denoiser.
func (n Network) Schedule() (all noising.Schedule) {
	for _, s := range n.Steps() {
		all.Kept, all.Added = append(all.Kept, s.Kept), append(all.Added, s.Added)
	}
	return all
}
