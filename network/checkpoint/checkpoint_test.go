package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/ipfs/go-cid"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
)

// odd is a name that JSON writes in another way.
const odd = "\"é\u2028<"

// state is a small state with a scalar, a NaN, and integers.
func state() ([]string, map[string]*tensor.Tensor) {
	return []string{"p/w", "p/b", "m/w", odd}, map[string]*tensor.Tensor{
		"p/w": tensor.FromF32([]float32{1, 2, 3, 4, 5, 6}, 2, 3),
		"p/b": tensor.Scalar(float32(math.NaN())),
		"m/w": tensor.New(tensor.Make(tensor.Float32, 3000)),
		odd:   tensor.FromI64([]int64{7, -1}, 2),
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
		if m.Tensors[i].Name != name || !got[name].Shape.Equal(tensors[name].Shape) ||
			got[name].Root() != tensors[name].Root() {
			t.Errorf("%s: %v", name, m.Tensors[i])
		}
	}
	if list, err := store.List(t.Context()); err != nil || len(list) != 3 {
		t.Errorf("blobs of a small checkpoint: %v, %v", list, err)
	}
	if again := save(t, blob.NewMemory(), names, got); !again.Equals(c) {
		t.Errorf("the loaded state is named %v, the saved one %v", again, c)
	}
}

// TestFormat holds a name that must never change, whatever NaN the processor makes. A name that JSON escapes is part of
// it.
func TestFormat(t *testing.T) {
	const want = "bafybeiakxgxmuhuzpa7zcjazcgrcbuae67pfzqldlujh32lqppioytm75i"
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
			layout += x.Name + " "
			if !bytes.Equal(got[x.Name].Bytes(), tensors[x.Name].Bytes()) {
				t.Errorf("%s differs", x.Name)
			}
		}
		layout += "| "
	}
	if want := "a b | c | huge | d e | "; layout != want {
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
		if _, err := Save(t.Context(), c.store, Manifest{}, c.names, tensors); err == nil || c.want != nil &&
			!errors.Is(err, c.want) {
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
	blobs, err := Blobs(t.Context(), store.Get, c)
	if err != nil {
		t.Fatal(err)
	}
	change := func(which int, f func([]byte) []byte) func(context.Context, blob.CID) ([]byte, error) {
		return func(ctx context.Context, id blob.CID) ([]byte, error) {
			data, err := store.Get(ctx, id)
			if id.Equals(blobs[which]) {
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
		"other directory": {change(0, flip), blob.ErrCorrupt},
		"other manifest":  {change(1, flip), blob.ErrCorrupt},
		"other shard":     {change(2, flip), ErrTensor},
		"short shard":     {change(2, func(b []byte) []byte { return b[1:] }), ErrTensor},
		"long shard":      {change(2, func(b []byte) []byte { return append(b, 0) }), ErrTensor},
		"no shard at all": {change(2, func([]byte) []byte { return nil }), ErrTensor},
	} {
		if _, got, err := Load(t.Context(), x.get, InTurn, c); !errors.Is(err, x.want) || got != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// valid returns a manifest of two tensors in one shard.
func valid() Manifest {
	return Manifest{Job: "job", Tensors: []Tensor{
		{Name: "a", Shape: tensor.Make(tensor.Float32, 3)},
		{Name: "b", Shape: tensor.Make(tensor.Int64)},
	}}
}

func TestDecodeRefuses(t *testing.T) {
	good := valid()
	if _, err := Decode(good.Encode()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Manifest){
		"no tensors":      func(m *Manifest) { m.Tensors = nil },
		"long job":        func(m *Manifest) { m.Job = string(make([]byte, MaxNameBytes+1)) },
		"no name":         func(m *Manifest) { m.Tensors[0].Name = "" },
		"long name":       func(m *Manifest) { m.Tensors[0].Name = string(make([]byte, MaxNameBytes+1)) },
		"same name":       func(m *Manifest) { m.Tensors[1].Name = "a" },
		"no type":         func(m *Manifest) { m.Tensors[0].Shape.DType = 0 },
		"zero dim":        func(m *Manifest) { m.Tensors[0].Shape.Dims = []int{3, 0} },
		"overflow":        func(m *Manifest) { m.Tensors[0].Shape.Dims = []int{1 << 40, 1 << 40} },
		"huge together":   func(m *Manifest) { m.Tensors = equal(MaxBytes/blob.MaxBytes+1, blob.MaxBytes) },
		"too many shards": func(m *Manifest) { m.Tensors = equal(MaxShards+1, ShardBytes) },
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

// equal are n tensors of the given number of bytes.
func equal(n, bytes int) []Tensor {
	list := make([]Tensor, n)
	for i := range list {
		list[i] = Tensor{Name: fmt.Sprint(i), Shape: tensor.Make(tensor.Uint8, bytes)}
	}
	return list
}

// TestLargestDirectory: a directory of as many shards as there may be is one leaf, which peers give in one piece.
func TestLargestDirectory(t *testing.T) {
	m := Manifest{Tensors: equal(MaxShards, ShardBytes)}
	f := folder{manifest: blob.Of(nil)}
	for range MaxShards {
		f.shards = append(f.shards, blob.Of(make([]byte, 1)))
	}
	c, block, err := f.directory(&m, MaxManifestBytes)
	if err == nil {
		err = blob.CheckLeaf(blob.Leaf(c), block)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestDirectoryRefuses gives Load directories that Save would not make of the same files.
func TestDirectoryRefuses(t *testing.T) {
	names, tensors := state()
	store := blob.NewMemory()
	c := save(t, store, names, tensors)
	list, err := Blobs(t.Context(), store.Get, c)
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	manifest, shard := blob.File{Name: manifestName, CID: list[1]}, blob.File{Name: shardName(0, 1), CID: list[2]}
	for f := range map[*blob.File]bool{&manifest: true, &shard: true} {
		data, err := store.Get(t.Context(), f.CID)
		if err != nil {
			t.Fatal(err)
		}
		f.Size = int64(len(data))
	}
	if same, _ := blob.Directory([]blob.File{manifest, shard}); !same.Equals(c) {
		t.Fatalf("the directory is %v, the checkpoint %v", same, c)
	}
	renamed, longer := shard, shard
	renamed.Name, longer.Size = "weights", shard.Size+1
	for name, files := range map[string][]blob.File{
		"nothing":       nil,
		"no shard":      {manifest},
		"no manifest":   {shard, renamed},
		"another shard": {manifest, shard, renamed},
		"another name":  {manifest, renamed},
		"another size":  {manifest, longer},
	} {
		c, block := blob.Directory(files)
		if _, err := store.Put(t.Context(), block); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(t.Context(), store.Get, InTurn, c); !errors.Is(err, ErrManifest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Load(t.Context(), store.Get, InTurn, list[0]); !errors.Is(err, ErrManifest) {
		t.Errorf("the block under another name: %v", err)
	}
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
	})
}

// FuzzLoad loads the checkpoint that a stranger's block names, if it is one.
func FuzzLoad(f *testing.F) {
	names, tensors := state()
	store := blob.NewMemory()
	c, err := Save(f.Context(), store, Manifest{Job: "job"}, names, tensors)
	if err != nil {
		f.Fatal(err)
	}
	good, err := store.Get(f.Context(), blob.Leaf(c))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0x0a, 2, 8, 1})
	f.Add([]byte{0x12, 0x7f, 0x0a})
	f.Fuzz(func(t *testing.T, block []byte) {
		id, _ := blob.Directory(nil)
		id = cid.NewCidV1(id.Prefix().Codec, blob.Of(block).Hash())
		get := func(ctx context.Context, c blob.CID) ([]byte, error) {
			if c.Equals(blob.Leaf(id)) {
				return block, nil
			}
			return store.Get(ctx, c)
		}
		_, _, err := Load(t.Context(), get, InTurn, id)
		if err == nil != bytes.Equal(block, good) {
			t.Errorf("%x: %v", block, err)
		}
		if err != nil && !errors.Is(err, ErrManifest) && !errors.Is(err, blob.ErrNotFound) &&
			!errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("untyped error %v", err)
		}
	})
}
