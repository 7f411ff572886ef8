// Package checkpoint stores a model with the state of its optimizer as a folder of files that an ordinary IPFS client
// can fetch: a UnixFS directory with shards, which are safetensors files of the tensors, and a manifest that says
// what the root of each tensor is. The checkpoint is named by the CID of the directory; the same state has the same
// name on every machine.
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

// ShardBytes is the size of the tensors of a full shard. A tensor that is larger has a shard of its own. It is part
// of the format.
const ShardBytes = 64 << 20

// Limits of a checkpoint.
const (
	MaxTensors       = 1 << 16
	MaxNameBytes     = 256 // of a tensor and of a job
	MaxManifestBytes = 32 << 20
	MaxBytes         = 1 << 40 // of all tensors
	MaxShards        = 1 << 13 // so that the directory is one leaf
)

var (
	// ErrManifest is wrapped by every reason why bytes are not a checkpoint's directory or manifest.
	ErrManifest = errors.New("not the manifest of a checkpoint")
	// ErrTensor says that stored bytes are not the tensor that the manifest promises.
	ErrTensor = errors.New("tensor does not match its root")
)

// Manifest describes a checkpoint. The tensors are packed in order: each follows the one before it in the same shard
// if it still fits, and else starts the next shard.
type Manifest struct {
	Job       string       `cbor:"1,keyasint"`
	Round     uint32       `cbor:"2,keyasint"`
	StateRoot canon.Digest `cbor:"3,keyasint"` // as the maker says: Load does not check it
	Tensors   []Tensor     `cbor:"4,keyasint"` // in the order of the state
}

// Tensor is what is known of a tensor before it is fetched.
type Tensor struct {
	Name  string       `cbor:"1,keyasint"`
	Shape tensor.Shape `cbor:"2,keyasint"`
	Root  canon.Digest `cbor:"3,keyasint"`
}

// Encode returns the canonical bytes.
func (m *Manifest) Encode() []byte { return canon.MustMarshal(m) }

// Decode reads an untrusted manifest. A returned manifest has valid shapes and distinct names. The errors wrap
// ErrManifest.
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
		if t.Name == "" || len(t.Name) > MaxNameBytes || names[t.Name] {
			return fmt.Errorf("checkpoint: %w: tensor %d: name %.40q repeated, or of %d bytes", ErrManifest, i, t.Name,
				len(t.Name))
		}
		if err := t.Shape.Check(blob.MaxBytes); err != nil {
			return fmt.Errorf("checkpoint: %w: tensor %d: %w", ErrManifest, i, err)
		}
		if total += t.bytes(); total > MaxBytes {
			return fmt.Errorf("checkpoint: %w: more than %d bytes", ErrManifest, int64(MaxBytes))
		}
		names[t.Name] = true
	}
	if n := len(m.shards()); n > MaxShards {
		return fmt.Errorf("checkpoint: %w: %d shards, at most %d", ErrManifest, n, MaxShards)
	}
	return nil
}

func (t *Tensor) bytes() int64 { return int64(t.Shape.Bytes()) }

// shards groups the tensors by the shard that the rule of packing gives them. The groups share m's memory.
func (m *Manifest) shards() []shard {
	var list []shard
	var size int64
	first := 0
	for i := range m.Tensors {
		n := m.Tensors[i].bytes()
		if i > first && size+n > ShardBytes {
			list = append(list, m.Tensors[first:i])
			first, size = i, 0
		}
		size += n
	}
	return append(list, m.Tensors[first:])
}

// Getter returns the bytes of a blob.
type Getter = func(context.Context, blob.CID) ([]byte, error)

// Blobs lists the blobs of the checkpoint named c: the block of its directory, its manifest, and the shards in their
// order. Of the blobs it takes the first two from get, and verifies them against c.
func Blobs(ctx context.Context, get Getter, c blob.CID) ([]blob.CID, error) {
	f, err := open(ctx, get, c)
	if err != nil {
		return nil, err
	}
	return append([]blob.CID{blob.Leaf(c), f.manifest}, f.shards...), nil
}

// Drop deletes the blobs of a checkpoint from a store, but for those that a kept one shares. Of a checkpoint that is
// not in the store it deletes nothing.
func Drop(ctx context.Context, store blob.Store, drop string, keep []string) error {
	blobs := func(name string) []blob.CID {
		c, err := blob.Parse(name)
		if err != nil {
			return nil
		}
		list, _ := Blobs(ctx, store.Get, c) // none if it is not here
		return list
	}
	kept := map[blob.CID]bool{}
	for _, name := range keep {
		for _, c := range blobs(name) {
			kept[c] = true
		}
	}
	for _, c := range blobs(drop) {
		if kept[c] {
			continue
		}
		if err := store.Delete(ctx, c); err != nil {
			return fmt.Errorf("checkpoint: drop %s: %w", drop, err)
		}
	}
	return nil
}

// Store is what Save needs of a blob.Store.
type Store interface {
	Put(ctx context.Context, data []byte) (blob.CID, error)
}

// Save stores the named tensors in the order of names and returns the CID of the directory, whose manifest is meta,
// with Tensors filled in. NaNs are stored as tensor.CanonicalNaN.
func Save(ctx context.Context, store Store, meta Manifest, names []string,
	tensors map[string]*tensor.Tensor) (blob.CID, error) {
	return SaveRooted(ctx, store, meta, names, tensors, nil)
}

// SaveRooted is Save of tensors whose roots are known, in the order of names; nil: they are computed.
func SaveRooted(ctx context.Context, store Store, meta Manifest, names []string, tensors map[string]*tensor.Tensor,
	roots []canon.Digest) (blob.CID, error) {
	meta.Tensors = make([]Tensor, len(names))
	for i, name := range names {
		t, ok := tensors[name]
		if !ok {
			return blob.CID{}, fmt.Errorf("checkpoint: save: no tensor %q among those given", name)
		}
		meta.Tensors[i] = Tensor{Name: name, Shape: t.Shape}
		if roots != nil {
			meta.Tensors[i].Root = roots[i]
		} else {
			meta.Tensors[i].Root = t.Root()
		}
	}
	if err := meta.check(); err != nil {
		return blob.CID{}, err
	}
	var f folder
	for _, s := range meta.shards() {
		data, err := s.encode(tensors)
		if err != nil {
			return blob.CID{}, err
		}
		c, err := store.Put(ctx, data)
		if err != nil {
			return blob.CID{}, fmt.Errorf("checkpoint: save: %w", err)
		}
		f.shards = append(f.shards, c)
		tensor.Dropped(len(data))
	}
	var err error
	manifest := meta.Encode()
	if f.manifest, err = store.Put(ctx, manifest); err != nil {
		return blob.CID{}, fmt.Errorf("checkpoint: save: %w", err)
	}
	c, block, err := f.directory(&meta, len(manifest))
	if err != nil {
		return blob.CID{}, err
	}
	if _, err := store.Put(ctx, block); err != nil {
		return blob.CID{}, fmt.Errorf("checkpoint: save: %w", err)
	}
	return c, nil
}

// Each calls do for 0 to n-1, maybe several at the same time, and returns when all calls have returned.
type Each func(n int, do func(i int))

// InTurn makes one call after the other.
func InTurn(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

// Load reads the checkpoint named c, taking its blobs from get, the shards as each allows, and verifies the directory
// against c and every tensor against its root. The tensors are the caller's.
func Load(ctx context.Context, get Getter, each Each, c blob.CID) (Manifest, map[string]*tensor.Tensor, error) {
	return LoadTo(ctx, get, each, c, func(t *tensor.Tensor) *tensor.Tensor { return t })
}

// LoadTo is Load that gives every verified tensor to lay, some of them at the same time, and takes what that returns.
func LoadTo(ctx context.Context, get Getter, each Each, c blob.CID,
	lay func(*tensor.Tensor) *tensor.Tensor) (Manifest, map[string]*tensor.Tensor, error) {
	f, err := open(ctx, get, c)
	if err != nil {
		return Manifest{}, nil, err
	}
	shards := f.of.shards()
	parts, errs := make([][]*tensor.Tensor, len(shards)), make([]error, len(shards))
	each(len(shards), func(i int) {
		data, err := get(ctx, f.shards[i])
		if err == nil {
			parts[i], err = shards[i].decode(data, lay)
			tensor.Dropped(len(data))
		}
		errs[i] = err
	})
	tensors := make(map[string]*tensor.Tensor, len(f.of.Tensors))
	for i, s := range shards {
		if errs[i] != nil {
			return Manifest{}, nil, fmt.Errorf("checkpoint: load %s: shard %s: %w", c, f.shards[i], errs[i])
		}
		for k, t := range s {
			tensors[t.Name] = parts[i][k]
		}
	}
	return *f.of, tensors, nil
}
