package drawn

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/diffusion"
	"github.com/starling-network/starling/compute/model/safetensors"
)

// trained is the folder of a network whose last layer gives something.
func trained(t *testing.T) fstest.MapFS {
	t.Helper()
	n, err := diffusion.Parse(diffusion.MLP, map[string]any{"hidden_sizes": []any{5}},
		picture.Size{Rows: 3, Columns: 2, Channels: 3}, 50)
	if err != nil {
		t.Fatal(err)
	}
	weights := architecture.Init(n.Tensors(), 7)
	for i := range weights["out.bias"].F32() {
		weights["out.bias"].F32()[i] = 0.2
	}
	var file bytes.Buffer
	if err := safetensors.EncodeAs(&file, slices.Sorted(maps.Keys(weights)), weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"config.json": {Data: n.JSON()}, "model.safetensors": {Data: file.Bytes()}}
}

// An image has the same bits whatever the number of images and of threads is, and another seed draws another.
func TestSample(t *testing.T) {
	m, err := Open(trained(t))
	if err != nil {
		t.Fatal(err)
	}
	draw := func(count int, seed uint64, threads int) []picture.Picture {
		t.Helper()
		all, err := m.Sample(t.Context(), count, seed, threads)
		if err != nil || len(all) != count {
			t.Fatalf("%d images of %d, %v", len(all), count, err)
		}
		return all
	}
	many, few, other := draw(atOnce+2, 3, 2), draw(1, 3, 1), draw(1, 4, 1)
	if !slices.Equal(many[0].Values, few[0].Values) || slices.Equal(few[0].Values, other[0].Values) ||
		slices.Equal(many[0].Values, many[1].Values) || slices.Equal(many[0].Values, many[atOnce].Values) {
		t.Errorf("%v, %v, %v", many[0], few, other)
	}
	raw, err := PNG(many[:3], 2)
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := picture.Decode(raw)
	if err != nil || sheet.Size != (picture.Size{Rows: 7, Columns: 5, Channels: 3}) {
		t.Fatalf("%v, %v", sheet.Size, err)
	}
	at := func(row, column int) []byte { return sheet.Values[(row*5+column)*3:][:3] }
	if !bytes.Equal(at(1, 1), many[0].Values[(1*2+1)*3:][:3]) || !bytes.Equal(at(4, 0), many[2].Values[:3]) ||
		!bytes.Equal(at(0, 3), many[1].Values[:3]) || !bytes.Equal(at(3, 0), []byte{0, 0, 0}) {
		t.Errorf("%v", sheet.Values)
	}
}

// A step back from an image with noise that is estimated rightly gives the image at the last step, held to its values.
func TestBack(t *testing.T) {
	s := diffusion.Step{Kept: 0.5, Added: 0.5, OfImage: 0.75, OfOld: 0.25, Deviation: 2}
	x := []float32{1, 4}
	back(x, []float32{1, 0}, []float32{0.5, 0}, s)
	if want := []float32{0.75*1 + 0.25*1 + 1, 0.75*1 + 0.25*4}; !slices.Equal(x, want) {
		t.Errorf("%v, want %v", x, want)
	}
}

func TestOtherFoldersAreRefused(t *testing.T) {
	for name, change := range map[string]func(fstest.MapFS){
		"no config":  func(d fstest.MapFS) { delete(d, "config.json") },
		"no weights": func(d fstest.MapFS) { delete(d, "model.safetensors") },
		"cut off":    func(d fstest.MapFS) { d["model.safetensors"].Data = d["model.safetensors"].Data[:40] },
		"a classifier": func(d fstest.MapFS) {
			d["config.json"] = &fstest.MapFile{Data: []byte(`{"model_type": "mlp", "image_size": [3, 2], "num_channels": 3}`)}
		},
		"another width": func(d fstest.MapFS) {
			d["config.json"] = &fstest.MapFile{Data: bytes.Replace(d["config.json"].Data, []byte("5\n"), []byte("6\n"), 1)}
		},
	} {
		dir := trained(t)
		change(dir)
		if _, err := Open(dir); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
