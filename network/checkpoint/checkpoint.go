// Package checkpoint stores a model with the state of its optimizer as blobs: shards that hold the bytes of the tensors,
// and a manifest that says where each tensor lies and what its root is. The checkpoint is named by the CID of its
// manifest; the same state has the same name on every machine.
//
// It does not know what the tensors mean: which are parameters, how their roots make up a state root, and whether a
// quorum attested it, is for the caller to check.
package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
)

// ShardBytes is the size of a full shard. A tensor that is larger has a shard of its own. It is part of the format.
const ShardBytes = 64 << 20

// Limits of a checkpoint.
const (
	MaxTensors       = 1 << 16
	MaxNameBytes     = 256 // of a tensor and of a job
	MaxManifestBytes = 32 << 20
	MaxBytes         = 1 << 40 // of all tensors
)

var (
	// ErrManifest is wrapped by every reason why bytes are not a checkpoint's manifest.
	ErrManifest = errors.New("not the manifest of a checkpoint")
	// ErrTensor says that stored bytes are not the tensor that the manifest promises.
	ErrTensor = errors.New("tensor does not match its root")
)

// Manifest describes a checkpoint.
type Manifest struct {
	Job       string       `cbor:"1,keyasint"`
	Round     uint32       `cbor:"2,keyasint"`
	StateRoot canon.Digest `cbor:"3,keyasint"` // as the maker says: Load does not check it
	Tensors   []Tensor     `cbor:"4,keyasint"` // in the order of the state
}

// Tensor is where one tensor is. Tensors are packed in order: each follows the one before it in the same shard if it
// still fits, and else starts the next shard.
type Tensor struct {
	Name   string       `cbor:"1,keyasint"`
	Shape  tensor.Shape `cbor:"2,keyasint"`
	Root   canon.Digest `cbor:"3,keyasint"`
	Shard  string       `cbor:"4,keyasint"` // CID
	Offset int64        `cbor:"5,keyasint"` // in the shard
	Bytes  int64        `cbor:"6,keyasint"`
}

// Encode returns the canonical bytes.
func (m *Manifest) Encode() []byte { return canon.MustMarshal(m) }

// Decode reads a stranger's manifest. What it returns has valid shapes and CIDs, distinct names, and the one layout
// that Save makes. The errors wrap ErrManifest.
func Decode(data []byte) (*Manifest, error) {
	if len(data) > MaxManifestBytes {
		return nil, fmt.Errorf("checkpoint: %w: %d bytes, more than %d", ErrManifest, len(data), MaxManifestBytes)
	}
	m := new(Manifest)
	if err := canon.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("checkpoint: %w: %w", ErrManifest, err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// check reports what is wrong with the manifest.
func (m *Manifest) check() error {
	if len(m.Tensors) == 0 || len(m.Tensors) > MaxTensors || len(m.Job) > MaxNameBytes {
		return fmt.Errorf("checkpoint: %w: %d tensors, job of %d bytes", ErrManifest, len(m.Tensors), len(m.Job))
	}
	names := make(map[string]bool, len(m.Tensors))
	var total int64
	for i := range m.Tensors {
		t := &m.Tensors[i]
		if err := t.check(); err != nil {
			return fmt.Errorf("checkpoint: %w: tensor %d: %w", ErrManifest, i, err)
		}
		if total += t.Bytes; names[t.Name] || total > MaxBytes {
			return fmt.Errorf("checkpoint: %w: tensor %d, %q: name repeated, or more than %d bytes", ErrManifest, i, t.Name, int64(MaxBytes))
		}
		names[t.Name] = true
	}
	for _, shard := range m.shards() {
		var offset int64
		for _, t := range shard {
			if t.Offset != offset || t.Shard != shard[0].Shard {
				return fmt.Errorf("checkpoint: %w: %q is not where it belongs", ErrManifest, t.Name)
			}
			offset += t.Bytes
		}
	}
	return nil
}

func (t *Tensor) check() error {
	if t.Name == "" || len(t.Name) > MaxNameBytes {
		return fmt.Errorf("name of %d bytes", len(t.Name))
	}
	if err := t.Shape.Check(blob.MaxBytes); err != nil {
		return err
	}
	if t.Bytes != int64(t.Shape.Bytes()) {
		return fmt.Errorf("%d bytes for %s", t.Bytes, t.Shape)
	}
	_, err := blob.Parse(t.Shard)
	return err
}

// shards groups the tensors by the shard that the rule of packing gives them. The groups share m's memory.
func (m *Manifest) shards() [][]Tensor {
	var list [][]Tensor
	var size int64
	first := 0
	for i, t := range m.Tensors {
		if i > first && size+t.Bytes > ShardBytes {
			list = append(list, m.Tensors[first:i])
			first, size = i, 0
		}
		size += t.Bytes
	}
	return append(list, m.Tensors[first:])
}

// Blobs lists the blobs of the checkpoint named c: its manifest, and the shards in their order. Of the blobs it takes the
// manifest alone from get, and verifies it against c.
func Blobs(ctx context.Context, get func(context.Context, blob.CID) ([]byte, error), c blob.CID) ([]blob.CID, error) {
	m, err := loadManifest(ctx, get, c)
	if err != nil {
		return nil, err
	}
	list := []blob.CID{c}
	for _, shard := range m.shards() {
		s, err := blob.Parse(shard[0].Shard)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func loadManifest(ctx context.Context, get func(context.Context, blob.CID) ([]byte, error), c blob.CID) (*Manifest, error) {
	raw, err := get(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: load %s: %w", c, err)
	}
	if !blob.Of(raw).Equals(c) {
		return nil, fmt.Errorf("checkpoint: load %s: manifest: %w", c, blob.ErrCorrupt)
	}
	return Decode(raw)
}

// Store is what Save needs of a blob.Store.
type Store interface {
	Put(ctx context.Context, data []byte) (blob.CID, error)
}

// Save stores the named tensors in the order of names and returns the CID of the manifest: that is meta, with Tensors
// filled in. NaNs are stored as tensor.CanonicalNaN.
func Save(ctx context.Context, store Store, meta Manifest, names []string, tensors map[string]*tensor.Tensor) (blob.CID, error) {
	meta.Tensors = make([]Tensor, len(names))
	for i, name := range names {
		t, ok := tensors[name]
		if !ok {
			return blob.CID{}, fmt.Errorf("checkpoint: save: no tensor %q among those given", name)
		}
		meta.Tensors[i] = Tensor{Name: name, Shape: t.Shape, Root: t.Root(), Bytes: int64(len(t.Bytes()))}
	}
	for _, shard := range meta.shards() {
		if err := saveShard(ctx, store, shard, tensors); err != nil {
			return blob.CID{}, fmt.Errorf("checkpoint: save: %w", err)
		}
	}
	if err := meta.check(); err != nil {
		return blob.CID{}, err
	}
	c, err := store.Put(ctx, meta.Encode())
	if err != nil {
		return blob.CID{}, fmt.Errorf("checkpoint: save: %w", err)
	}
	return c, nil
}

// saveShard stores one shard and fills in where its tensors lie.
func saveShard(ctx context.Context, store Store, shard []Tensor, tensors map[string]*tensor.Tensor) error {
	var size int64
	for _, t := range shard {
		size += t.Bytes
	}
	data := make([]byte, 0, size)
	for i := range shard {
		shard[i].Offset = int64(len(data))
		t := tensors[shard[i].Name]
		for leaf := range (len(t.Bytes()) + tensor.LeafBytes - 1) / tensor.LeafBytes {
			data = append(data, t.Leaf(leaf)...)
		}
	}
	c, err := store.Put(ctx, data)
	if err != nil {
		return err
	}
	for i := range shard {
		shard[i].Shard = c.String()
	}
	return nil
}

// Each calls do for 0 to n-1, maybe several at the same time, and returns when all calls have returned.
type Each func(n int, do func(i int))

// InTurn makes one call after the other.
func InTurn(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

// Load reads the checkpoint named c, taking its blobs from get, the shards as each allows, and verifies the manifest against
// c and every tensor against its root. The tensors are the caller's.
func Load(ctx context.Context, get func(context.Context, blob.CID) ([]byte, error), each Each, c blob.CID) (Manifest, map[string]*tensor.Tensor, error) {
	m, err := loadManifest(ctx, get, c)
	if err != nil {
		return Manifest{}, nil, err
	}
	shards := m.shards()
	parts, errs := make([][]*tensor.Tensor, len(shards)), make([]error, len(shards))
	each(len(shards), func(i int) { parts[i], errs[i] = loadShard(ctx, get, shards[i]) })
	tensors := make(map[string]*tensor.Tensor, len(m.Tensors))
	for i, shard := range shards {
		if errs[i] != nil {
			return Manifest{}, nil, fmt.Errorf("checkpoint: load %s: %w", c, errs[i])
		}
		for k, t := range shard {
			tensors[t.Name] = parts[i][k]
		}
	}
	return *m, tensors, nil
}

// loadShard returns the tensors of one shard.
func loadShard(ctx context.Context, get func(context.Context, blob.CID) ([]byte, error), shard []Tensor) ([]*tensor.Tensor, error) {
	c, err := blob.Parse(shard[0].Shard)
	if err != nil {
		return nil, err
	}
	data, err := get(ctx, c)
	if err != nil {
		return nil, err
	}
	last := shard[len(shard)-1]
	if int64(len(data)) != last.Offset+last.Bytes {
		return nil, fmt.Errorf("shard %s: %d bytes of %d: %w", c, len(data), last.Offset+last.Bytes, ErrTensor)
	}
	tensors := make([]*tensor.Tensor, len(shard))
	for i, t := range shard {
		x, err := tensor.FromBytes(t.Shape, data[t.Offset:t.Offset+t.Bytes])
		if err != nil {
			return nil, err
		}
		if x.Root() != t.Root {
			return nil, fmt.Errorf("shard %s: %q: %w", c, t.Name, ErrTensor)
		}
		x.Canonicalize() // the root does not tell one NaN from another
		tensors[i] = x
	}
	return tensors, nil
}
