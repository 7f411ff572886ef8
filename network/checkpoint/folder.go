package checkpoint

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/network/blob"
)

// manifestName is the file of the manifest. The names are part of the format.
const manifestName = "manifest.cbor"

// shardName is the file of shard i of n, named as those of models in several files are.
func shardName(i, n int) string { return fmt.Sprintf("state-%05d-of-%05d.safetensors", i+1, n) }

// folder is the directory of a checkpoint.
type folder struct {
	of       *Manifest
	manifest blob.CID
	shards   []blob.CID
}

// open fetches and verifies the directory and the manifest of the checkpoint c.
func open(ctx context.Context, get Getter, c blob.CID) (*folder, error) {
	if err := blob.Check(c); err != nil {
		return nil, err
	}
	block, err := getLeaf(ctx, get, blob.Leaf(c))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: load %s: directory: %w", c, err)
	}
	files, err := blob.ParseDirectory(block)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: load %s: %w: %w", c, ErrManifest, err)
	}
	if len(files) < 2 || len(files) > MaxShards+1 {
		return nil, fmt.Errorf("checkpoint: load %s: %w: a directory of %d files", c, ErrManifest, len(files))
	}
	f := &folder{manifest: files[0].CID}
	for _, s := range files[1:] {
		f.shards = append(f.shards, s.CID)
	}
	data, err := get(ctx, f.manifest)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: load %s: manifest: %w", c, err)
	}
	if !blob.Of(data).Equals(f.manifest) {
		return nil, fmt.Errorf("checkpoint: load %s: manifest: %w", c, blob.ErrCorrupt)
	}
	if f.of, err = Decode(data); err != nil {
		return nil, err
	}
	made, _, err := f.directory(f.of, len(data))
	if err != nil {
		return nil, err
	}
	if !made.Equals(c) {
		return nil, fmt.Errorf("checkpoint: load %s: %w: its files make the directory %s", c, ErrManifest, made)
	}
	return f, nil
}

// getLeaf gets a blob of one leaf, and verifies it.
func getLeaf(ctx context.Context, get Getter, c blob.CID) ([]byte, error) {
	data, err := get(ctx, c)
	if err != nil {
		return nil, err
	}
	return data, blob.CheckLeaf(c, data)
}

// directory returns the one directory of the files, whose manifest has so many bytes: its CID and its block.
func (f *folder) directory(m *Manifest, manifestBytes int) (blob.CID, []byte, error) {
	shards := m.shards()
	if len(shards) != len(f.shards) {
		return blob.CID{}, nil, fmt.Errorf("checkpoint: %w: %d shards for a manifest of %d", ErrManifest, len(f.shards),
			len(shards))
	}
	files := []blob.File{{Name: manifestName, CID: f.manifest, Size: int64(manifestBytes)}}
	for i, s := range shards {
		_, size, err := s.head()
		if err != nil {
			return blob.CID{}, nil, err
		}
		files = append(files, blob.File{Name: shardName(i, len(shards)), CID: f.shards[i], Size: size})
	}
	c, block := blob.Directory(files)
	return c, block, nil
}
