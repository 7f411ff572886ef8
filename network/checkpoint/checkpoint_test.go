package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
)

// state is a small state with a scalar, a NaN, and integers.
func state() ([]string, map[string]*tensor.Tensor) {
	return []string{"p/w", "p/b", "m/w", "step"}, map[string]*tensor.Tensor{
		"p/w":  tensor.FromF32([]float32{1, 2, 3, 4, 5, 6}, 2, 3),
		"p/b":  tensor.Scalar(float32(math.NaN())),
		"m/w":  tensor.New(tensor.Make(tensor.Float32, 3000)),
		"step": tensor.FromI64([]int64{7, -1}, 2),
	}
}

func save(t *testing.T, store Store, names []string, tensors map[string]*tensor.Tensor) blob.CID {
	t.Helper()
	c, err := Save(t.Context(), store, Manifest{Job: "job", Round: 3, StateRoot: canon.Digest{1}}, names, tensors)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSaveLoad(t *testing.T) {
	names, tensors := state()
	store := blob.NewMemory()
	c := save(t, store, names, tensors)
	m, got, err := Load(t.Context(), store.Get, InTurn, c)
	if err != nil {
		t.Fatal(err)
	}
	if m.Job != "job" || m.Round != 3 || m.StateRoot != (canon.Digest{1}) || len(m.Tensors) != len(names) {
		t.Errorf("manifest: %+v", m)
	}
	for i, name := range names {
		if m.Tensors[i].Name != name || !got[name].Shape.Equal(tensors[name].Shape) || got[name].Root() != tensors[name].Root() {
			t.Errorf("%s: %v", name, m.Tensors[i])
		}
	}
	if list, err := store.List(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("blobs of a small checkpoint: %v, %v", list, err)
	}
	if again := save(t, blob.NewMemory(), names, got); !again.Equals(c) {
		t.Errorf("the loaded state is named %v, the saved one %v", again, c)
	}
}

// TestFormat holds a name that must never change, whatever NaN the processor makes.
func TestFormat(t *testing.T) {
	const want = "bafkreid5aol3tcb6czm5qol3wcaahztjhjmzbohzyslv7ihvr3cqwzhjka"
	names, tensors := state()
	for _, nan := range []uint32{0x7fc00000, 0xffc00000, 0x7f800001} {
		tensors["p/b"] = tensor.Scalar(math.Float32frombits(nan))
		if got := save(t, blob.NewMemory(), names, tensors); got.String() != want {
			t.Errorf("NaN %x: %v, want %s", nan, got, want)
		}
	}
}

// TestShards packs tensors around the edges of a shard.
func TestShards(t *testing.T) {
	const mib = 1 << 20 / 4 // float32 elements
	names := []string{"a", "b", "c", "huge", "d", "e"}
	tensors := map[string]*tensor.Tensor{}
	for i, n := range []int{40 * mib, 24 * mib, 1, 65 * mib, 1, 64*mib - 1} {
		x := tensor.New(tensor.Make(tensor.Float32, n))
		x.F32()[n-1] = float32(i)
		tensors[names[i]] = x
	}
	store := blob.NewMemory()
	m, got, err := Load(t.Context(), store.Get, InTurn, save(t, store, names, tensors))
	if err != nil {
		t.Fatal(err)
	}
	var layout string
	for _, shard := range m.shards() {
		for _, x := range shard {
			layout += fmt.Sprintf("%s@%d ", x.Name, x.Offset)
			if !bytes.Equal(got[x.Name].Bytes(), tensors[x.Name].Bytes()) {
				t.Errorf("%s differs", x.Name)
			}
		}
		layout += "| "
	}
	if want := "a@0 b@41943040 | c@0 | huge@0 | d@0 e@4 | "; layout != want {
		t.Errorf("layout %s, want %s", layout, want)
	}
}

func TestSaveRefuses(t *testing.T) {
	names, tensors := state()
	full := errors.New("disk is full")
	for name, c := range map[string]struct {
		store Store
		names []string
		want  error
	}{
		"nothing":   {blob.NewMemory(), nil, ErrManifest},
		"unknown":   {blob.NewMemory(), []string{"x"}, nil},
		"twice":     {blob.NewMemory(), []string{names[0], names[0]}, ErrManifest},
		"disk full": {failing{full}, names, full},
	} {
		if _, err := Save(t.Context(), c.store, Manifest{}, c.names, tensors); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Put(context.Context, []byte) (blob.CID, error) { return blob.CID{}, f.err }

// TestLoadRefuses gives Load blobs that are not what they should be.
func TestLoadRefuses(t *testing.T) {
	names, tensors := state()
	store := blob.NewMemory()
	c := save(t, store, names, tensors)
	change := func(manifest bool, f func([]byte) []byte) func(context.Context, blob.CID) ([]byte, error) {
		return func(ctx context.Context, id blob.CID) ([]byte, error) {
			data, err := store.Get(ctx, id)
			if id.Equals(c) == manifest {
				data = f(data)
			}
			return data, err
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for name, x := range map[string]struct {
		get  func(context.Context, blob.CID) ([]byte, error)
		want error
	}{
		"absent":          {blob.NewMemory().Get, blob.ErrNotFound},
		"other manifest":  {change(true, flip), blob.ErrCorrupt},
		"other shard":     {change(false, flip), ErrTensor},
		"short shard":     {change(false, func(b []byte) []byte { return b[1:] }), ErrTensor},
		"long shard":      {change(false, func(b []byte) []byte { return append(b, 0) }), ErrTensor},
		"no shard at all": {change(false, func([]byte) []byte { return nil }), ErrTensor},
	} {
		if _, got, err := Load(t.Context(), x.get, InTurn, c); !errors.Is(err, x.want) || got != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// valid returns a manifest of two tensors in one shard.
func valid() Manifest {
	shard := blob.Of(make([]byte, 20)).String()
	return Manifest{Job: "job", Tensors: []Tensor{
		{Name: "a", Shape: tensor.Make(tensor.Float32, 3), Shard: shard, Bytes: 12},
		{Name: "b", Shape: tensor.Make(tensor.Int64), Shard: shard, Offset: 12, Bytes: 8},
	}}
}

func TestDecodeRefuses(t *testing.T) {
	good := valid()
	if _, err := Decode(good.Encode()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Manifest){
		"no tensors":    func(m *Manifest) { m.Tensors = nil },
		"long job":      func(m *Manifest) { m.Job = string(make([]byte, MaxNameBytes+1)) },
		"no name":       func(m *Manifest) { m.Tensors[0].Name = "" },
		"long name":     func(m *Manifest) { m.Tensors[0].Name = string(make([]byte, MaxNameBytes+1)) },
		"same name":     func(m *Manifest) { m.Tensors[1].Name = "a" },
		"no type":       func(m *Manifest) { m.Tensors[0].Shape.DType = 0 },
		"zero dim":      func(m *Manifest) { m.Tensors[0].Shape.Dims = []int{3, 0} },
		"overflow":      func(m *Manifest) { m.Tensors[0].Shape.Dims = []int{1 << 40, 1 << 40} },
		"other bytes":   func(m *Manifest) { m.Tensors[0].Bytes = 8 },
		"overlap":       func(m *Manifest) { m.Tensors[1].Offset = 8 },
		"hole":          func(m *Manifest) { m.Tensors[1].Offset = 16 },
		"negative":      func(m *Manifest) { m.Tensors[0].Offset = -1 },
		"first not 0":   func(m *Manifest) { m.Tensors[0].Offset, m.Tensors[1].Offset = 4, 16 },
		"shard of one":  func(m *Manifest) { m.Tensors[1].Shard, m.Tensors[1].Offset = blob.Of(nil).String(), 0 },
		"shard no CID":  func(m *Manifest) { m.Tensors[0].Shard, m.Tensors[1].Shard = "x", "x" },
		"no shard":      func(m *Manifest) { m.Tensors[0].Shard, m.Tensors[1].Shard = "", "" },
		"huge together": func(m *Manifest) { m.Tensors = huge() },
	} {
		m := valid()
		spoil(&m)
		if _, err := Decode(m.Encode()); !errors.Is(err, ErrManifest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Decode(make([]byte, MaxManifestBytes+1)); !errors.Is(err, ErrManifest) {
		t.Errorf("too long: %v", err)
	}
}

// huge are tensors of which each is allowed, but not all.
func huge() []Tensor {
	list := make([]Tensor, MaxBytes/blob.MaxBytes+1)
	for i := range list {
		list[i] = Tensor{
			Name: fmt.Sprint(i), Shape: tensor.Make(tensor.Uint8, blob.MaxBytes),
			Shard: blob.Of(nil).String(), Bytes: blob.MaxBytes,
		}
	}
	return list
}

func FuzzDecode(f *testing.F) {
	good := valid()
	f.Add(good.Encode())
	f.Add([]byte{0xa4, 1, 0x60, 2, 0, 3, 0x40, 4, 0x9a, 0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			if !errors.Is(err, ErrManifest) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if !bytes.Equal(m.Encode(), data) {
			t.Errorf("%x encodes as %x", data, m.Encode())
		}
		get := func(context.Context, blob.CID) ([]byte, error) { return data, nil }
		if _, _, err := Load(t.Context(), get, InTurn, blob.Of(data)); err == nil {
			t.Error("a checkpoint of nothing was loaded")
		}
	})
}
