package proven

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/inference"
)

func networkFolder(t *testing.T, kind string, config map[string]any, seed uint64) string {
	t.Helper()
	n, err := vision.Parse(kind, config, picture.Size{Rows: 6, Columns: 4, Channels: 1}, []string{"cat", "dog", "owl"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeTensors(t, filepath.Join(dir, "model.safetensors"), architecture.Init(n.Tensors(), seed))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), n.JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeTensors(t *testing.T, name string, tensors map[string]*tensor.Tensor) {
	t.Helper()
	var file bytes.Buffer
	if err := safetensors.EncodeAs(&file, slices.Sorted(maps.Keys(tensors)), tensors, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func imageFile(t *testing.T, rows, columns, seed int) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, columns, rows))
	for y := range rows {
		for x := range columns {
			img.SetGray(x, y, color.Gray{Y: uint8(seed + 37*x + 61*y*y)})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "image.png")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// An answer is proven about the files of a folder, with the class and nearly the probabilities of the engine; a party
// with the network and the secret finds its weights under the commitment, and no others.
func TestAnswersAreThoseOfTheEngine(t *testing.T) {
	hidden := map[string]any{"hidden_sizes": []any{5, 4}}
	dir := networkFolder(t, vision.MLP, hidden, 7)
	n, err := OpenNetwork(dir)
	if err != nil {
		t.Fatal(err)
	}
	key, pk, _, err := circuit.SetupInference(n.Shape())
	if err != nil {
		t.Fatal(err)
	}
	v, err := inference.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	var made inference.Proof
	for seed := range 3 {
		p, err := n.ReadImage(imageFile(t, 6, 4, 50*seed))
		if err != nil {
			t.Fatal(err)
		}
		if made, err = n.Infer(t.Context(), p, "owner", v, pk, circuit.Secret{3}); err != nil {
			t.Fatal(err)
		}
		a, err := n.Said(t.Context(), made.Statement, p, 1)
		if err != nil || a.Label != a.Engine || a.Difference > 1e-4 {
			t.Errorf("image %d: %+v, %v", seed, a, err)
		}
	}
	if err := n.Committed(t.Context(), made, v, pk, circuit.Secret{3}); err != nil {
		t.Error(err)
	}
	if err := n.Committed(t.Context(), made, v, pk, circuit.Secret{4}); !errors.Is(err, ErrOther) {
		t.Errorf("under another secret: %v", err)
	}
	scaled := made
	scaled.Statement.Exponents = slices.Clone(made.Statement.Exponents)
	scaled.Statement.Exponents[2] -= 10 // scores a thousand times as large, and so a probability of one
	if err := n.Committed(t.Context(), scaled, v, pk, circuit.Secret{3}); !errors.Is(err, ErrOther) {
		t.Errorf("other exponents: %v", err)
	}
	other, err := OpenNetwork(networkFolder(t, vision.MLP, hidden, 8))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Committed(t.Context(), made, v, pk, circuit.Secret{3}); !errors.Is(err, ErrOther) {
		t.Errorf("another network: %v", err)
	}
	if _, err := n.ReadImage(imageFile(t, 4, 6, 1)); !errors.Is(err, ErrOther) {
		t.Errorf("an image on its side: %v", err)
	}
	for name, dir := range map[string]string{"nothing": t.TempDir(),
		"convolutions": networkFolder(t, vision.CNN, map[string]any{"conv_channels": []any{2}}, 1)} {
		if _, err := OpenNetwork(dir); !errors.Is(err, ErrFolder) {
			t.Errorf("a folder with %s: %v", name, err)
		}
	}
}

// Updates in files are added as federated jobs add them, and each owner finds its own in the proof.
func TestSumsAreThoseOfTheGrid(t *testing.T) {
	model := networkFolder(t, vision.MLP, map[string]any{"hidden_sizes": []any{3}}, 1)
	key, pk, _, err := circuit.SetupAggregation(aggregation.Shape{Updates: 2, Length: 8})
	if err != nil {
		t.Fatal(err)
	}
	v, err := aggregation.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	var updates []Update
	want := make([]float64, 7)
	for i, weight := range []float64{1, 0.5} {
		tensors := map[string]*tensor.Tensor{"a": tensor.New(tensor.Make(tensor.Float32, 2, 3)),
			"b": tensor.New(tensor.Make(tensor.Float32, 1))}
		for j := range want {
			x := float32(i+1) / float32(10+3*j)
			if tensors["b"].F32()[0] = x; j < 6 {
				tensors["a"].F32()[j] = x
			}
			want[j] += float64(x) * weight / 1.5
		}
		name := filepath.Join(t.TempDir(), "update.safetensors")
		writeTensors(t, name, tensors)
		u, err := EncodeUpdate(name, 1, weight)
		if err != nil {
			t.Fatal(err)
		}
		u.Place, u.Key, u.Secret = i, v.Digest(), circuit.Secret{byte(i)}
		file := filepath.Join(t.TempDir(), "update")
		if err := os.WriteFile(file, u.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		if u, err = ReadUpdate(file); err != nil {
			t.Fatal(err)
		}
		updates = append(updates, u)
	}
	made, err := Sum(t.Context(), []Update{updates[1], updates[0]}, model, "all", "", v, pk)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range updates {
		if err := u.Added(made, v, pk); err != nil {
			t.Error(err)
		}
	}
	stranger := updates[0]
	stranger.Secret = circuit.Secret{9}
	if err := stranger.Added(made, v, pk); !errors.Is(err, ErrOther) {
		t.Errorf("another secret: %v", err)
	}
	var file bytes.Buffer
	if err := WriteMean(&file, made.Statement, updates[0]); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Tensor("a")
	if err != nil {
		t.Fatal(err)
	}
	for j, x := range a.F32() {
		if math.Abs(float64(x)-want[j]) > 4./fixedpoint.Unit {
			t.Errorf("element %d has the mean %g, wanted %g", j, x, want[j])
		}
	}
	refuse := func(name string, list []Update) {
		t.Helper()
		if _, err := Sum(t.Context(), list, model, "all", "", v, pk); err == nil {
			t.Errorf("a sum with %s", name)
		}
	}
	changed := func(change func(*Update)) []Update {
		list := slices.Clone(updates)
		change(&list[1])
		return list
	}
	refuse("one place twice", []Update{updates[0], updates[0]})
	refuse("one update", updates[:1])
	refuse("another key", changed(func(u *Update) { u.Key = canon.Sum("x") }))
	refuse("another norm", changed(func(u *Update) { u.Clip = math.Float64bits(2) }))
	refuse("other tensors", changed(func(u *Update) { u.Names = []string{"a", "c"} }))
}

// One owner of a sum does not decide it: an update beyond the norm, or with a weight that takes those of others away,
// is read by no adder.
func TestUpdatesOfStrangersFitTheGrid(t *testing.T) {
	for name, values := range map[string][]int32{"twice the norm": {2 * fixedpoint.Unit, 0, fixedpoint.Unit},
		"the largest numbers": {math.MaxInt32, math.MinInt32, 1}, "a negative weight": {1, 2, -1},
		"a weight above one": {1, 2, fixedpoint.Unit + 1}, "the norm": {0, -fixedpoint.Unit, fixedpoint.Unit}} {
		u := Update{Clip: math.Float64bits(1), Names: []string{"a"}, Shapes: [][]int{{2}}, Values: values}
		if _, err := DecodeUpdate(u.Encode()); (err == nil) != (name == "the norm") || err != nil &&
			!errors.Is(err, ErrUpdate) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeUpdate(f *testing.F) {
	f.Add(Update{Clip: math.Float64bits(1), Names: []string{"a"}, Shapes: [][]int{{2}}, Values: []int32{1, 2, 3}}.Encode())
	f.Add([]byte(updateMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := DecodeUpdate(data)
		if err != nil {
			return
		}
		if string(u.Encode()) != string(data) {
			t.Error("another encoding of the same update")
		}
	})
}
