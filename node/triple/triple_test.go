package triple

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/exchange/replicated"
)

// network is a drawn network in a folder, whose first bias has a value.
func network(t *testing.T, kind string, bias float32) fs.FS {
	t.Helper()
	n, err := vision.Parse(kind, map[string]any{"hidden_sizes": []any{5}}, picture.Size{Rows: 4, Columns: 4, Channels: 1},
		[]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	weights := architecture.Init(n.Tensors(), 3)
	weights["fc1.bias"].F32()[0] = bias
	var file bytes.Buffer
	if err := safetensors.EncodeAs(&file, slices.Sorted(maps.Keys(weights)), weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"config.json": {Data: n.JSON()}, "model.safetensors": {Data: file.Bytes()}}
}

// The folders of the parties have shares of the weights, and one of them alone shares that are drawn.
func TestDivide(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	m, err := Divide(network(t, vision.MLP, 1.5), out)
	if err != nil {
		t.Fatal(err)
	}
	var of [replicated.Parties]replicated.Vector
	for i := range of {
		s, err := Open(filepath.Join(out, Name(i)))
		if err != nil || s.Party != i || s.Split != m.Split || !slices.Equal(s.Widths, []int{16, 5, 2}) {
			t.Fatalf("%+v, %v", s, err)
		}
		of[i] = s.values
	}
	values, err := replicated.Join(of)
	if err != nil || len(values) != 16*5+5+5*2+2 || values[16*5] != replicated.Fixed(1.5, true) {
		t.Errorf("%d numbers: %v", len(values), err)
	}
	for i, v := range of {
		if slices.Contains(v[0], values[16*5]) || slices.Contains(v[1], values[16*5]) {
			t.Errorf("party %d has a weight", i)
		}
	}
	if i, err := os.Stat(filepath.Join(out, Name(0), fileShares)); err != nil ||
		runtime.GOOS != "windows" && i.Mode().Perm() != 0o600 {
		t.Errorf("others may read shares: %v, %v", i.Mode(), err)
	}
	if _, err := Divide(network(t, vision.MLP, 1.5), out); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v", err)
	}
	dir := filepath.Join(out, Name(1))
	if err := os.Truncate(filepath.Join(dir, fileShares), 8); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrShare) {
		t.Errorf("short shares: %v", err)
	}
	if _, err := Open(out); !errors.Is(err, ErrShare) {
		t.Errorf("no party: %v", err)
	}
}

func TestModelsThatAreNotDivided(t *testing.T) {
	for name, model := range map[string]fs.FS{"convolutions": network(t, vision.CNN, 0), "a large bias": network(t,
		vision.MLP, 1e6), "nothing": fstest.MapFS{}} {
		if _, err := Divide(model, filepath.Join(t.TempDir(), "out")); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add([]byte(`{"party":0,"split":"00112233445566778899aabbccddeeff","image":[1,2,1],"labels":["a"],"widths":[2,1]}`))
	f.Add([]byte(`{"party":3,"widths":[1000000,1000000]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadManifest(b)
		if err != nil {
			return
		}
		if m.words() > replicated.MaxWords || m.Size().Values() != m.Widths[0] {
			t.Errorf("%+v", m)
		}
		again, err := json.Marshal(m)
		if err == nil {
			_, err = ReadManifest(again)
		}
		if err != nil {
			t.Error(err)
		}
	})
}
