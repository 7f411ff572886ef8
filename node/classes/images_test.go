package classes

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

var size = picture.Size{Rows: 6, Columns: 4, Channels: 1}

// trained is the folder of a convolutional network, with its weights.
func trained(t *testing.T) (vision.Network, map[string]*tensor.Tensor, fstest.MapFS) {
	n, err := vision.Parse(vision.CNN, map[string]any{"conv_channels": []any{2}, "hidden_sizes": []any{3}}, size,
		[]string{"cat", "dog", "owl"})
	if err != nil {
		t.Fatal(err)
	}
	weights := architecture.Init(n.Tensors(), 7)
	var file bytes.Buffer
	names := slices.Sorted(maps.Keys(weights))
	if err := safetensors.EncodeAs(&file, names, weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	return n, weights, fstest.MapFS{"config.json": {Data: n.JSON()}, "model.safetensors": {Data: file.Bytes()}}
}

func pictures(n int) (all []picture.Picture) {
	for i := range n {
		p := picture.Picture{Size: size, Values: make([]byte, size.Values())}
		for k := range p.Values {
			p.Values[k] = byte(i*31 + k*k*7)
		}
		all = append(all, p)
	}
	return all
}

// The probabilities are those whose logarithm is the loss of an evaluation, for more images than are computed at once.
func TestProbabilitiesAreThoseOfTheLoss(t *testing.T) {
	n, weights, dir := trained(t)
	m, err := OpenImages(dir)
	if err != nil {
		t.Fatal(err)
	}
	images := pictures(atOnce + 3)
	all, err := m.Classify(t.Context(), images, 2)
	if err != nil || len(all) != len(images) {
		t.Fatalf("%d of %d images: %v", len(all), len(images), err)
	}
	task, err := model.Classify(n, model.Batch{Sequences: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := task.Eval()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, image := range images {
		sum := 0.
		for class, got := range all[i] {
			in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, 1, n.Example()+2))}
			row := in["tokens"].I32()
			row[0] = int32(class)
			for k, v := range image.Values {
				row[1+k] = int32(v)
			}
			for name, w := range weights {
				in[train.Param+name] = w
			}
			out, err := x.Run(in)
			if err != nil {
				t.Fatal(err)
			}
			if want := math.Exp(-float64(out["loss"].F32()[0])); math.Abs(got-want) > 1e-5 {
				t.Errorf("image %d is of class %d with %v, wanted %v", i, class, got, want)
			}
			sum += got
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("the probabilities of image %d are %v in sum", i, sum)
		}
	}
}

// A folder without a model, a tensor of another shape and an image of another size are refused.
func TestOtherFoldersAreRefused(t *testing.T) {
	_, _, dir := trained(t)
	m, err := OpenImages(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Fits(picture.Picture{Size: picture.Size{Rows: 4, Columns: 6, Channels: 1}}); !errors.Is(err, ErrSize) {
		t.Errorf("an image on its side: %v", err)
	}
	for name, change := range map[string]func(fstest.MapFS){
		"no config":  func(d fstest.MapFS) { delete(d, "config.json") },
		"no weights": func(d fstest.MapFS) { delete(d, "model.safetensors") },
		"cut off":    func(d fstest.MapFS) { d["model.safetensors"].Data = d["model.safetensors"].Data[:40] },
		"a language model": func(d fstest.MapFS) {
			d["config.json"] = &fstest.MapFile{Data: []byte(`{"model_type": "gpt2"}`)}
		},
		"another width": func(d fstest.MapFS) {
			n, err := vision.Parse(vision.CNN, map[string]any{"conv_channels": []any{2}, "hidden_sizes": []any{4}}, size,
				[]string{"cat", "dog", "owl"})
			if err != nil {
				t.Fatal(err)
			}
			d["config.json"] = &fstest.MapFile{Data: n.JSON()}
		},
	} {
		_, _, dir := trained(t)
		change(dir)
		if _, err := OpenImages(dir); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
