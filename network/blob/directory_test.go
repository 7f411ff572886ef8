package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	unixfs "github.com/ipfs/boxo/ipld/unixfs/io"
)

// TestDirectory compares a directory with that of the importer of IPFS, and reads it.
func TestDirectory(t *testing.T) {
	want, err := unixfs.NewBasicDirectory(discard{}, unixfs.WithCidBuilder(merkledag.V1CidPrefix()))
	if err != nil {
		t.Fatal(err)
	}
	var files []File
	for _, f := range []File{{Name: "a", Size: 0}, {Name: "b", Size: 1000}, {Name: "c", Size: LeafBytes + 1},
		{Name: "d é", Size: 3 * LeafBytes}} {
		f.CID = Of(make([]byte, f.Size))
		files = append(files, f)
		params := helpers.DagBuilderParams{Maxlinks: Links, RawLeaves: true, CidBuilder: merkledag.V1CidPrefix(),
			Dagserv: discard{}}
		db, err := params.New(chunk.NewSizeSplitter(io.LimitReader(zeros{}, f.Size), LeafBytes))
		if err != nil {
			t.Fatal(err)
		}
		file, err := balanced.Layout(db)
		if err == nil {
			err = want.AddChild(t.Context(), f.Name, file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	node, err := want.GetNode()
	if err != nil {
		t.Fatal(err)
	}
	c, block := Directory(files)
	if !c.Equals(node.Cid()) || !bytes.Equal(block, node.RawData()) {
		t.Errorf("the directory is %v, that of the importer %v", c, node.Cid())
	}
	got, err := ParseDirectory(block)
	if err != nil || len(got) != len(files) {
		t.Fatal(got, err)
	}
	for i, f := range files {
		if got[i].Name != f.Name || !got[i].CID.Equals(f.CID) {
			t.Errorf("file %d is %v, want %v", i, got[i], f)
		}
	}
}

// TestDirectoryBlock stores the block of a directory, which is then found under the name of the directory.
func TestDirectoryBlock(t *testing.T) {
	ctx, store := context.Background(), NewMemory()
	c, block := Directory([]File{{"a", Of([]byte("1")), 1}})
	stored, err := store.Put(ctx, block)
	if err != nil || !stored.Equals(Leaf(c)) {
		t.Fatalf("stored as %v, want %v: %v", stored, Leaf(c), err)
	}
	places := store.Find(c)
	if len(places) != 1 {
		t.Fatal(places)
	}
	if got, err := Block(ctx, store, places[0]); err != nil || !bytes.Equal(got, block) {
		t.Errorf("%x, %v", got, err)
	}
	if err := store.Delete(ctx, stored); err != nil || len(store.Find(c)) != 0 {
		t.Errorf("found after it was deleted: %v", err)
	}
}

func FuzzParseDirectory(f *testing.F) {
	_, block := Directory([]File{{"a", Of([]byte("1")), 1}, {"b", Of(make([]byte, LeafBytes+1)), LeafBytes + 1}})
	f.Add(block)
	f.Add([]byte{0x0a, 2, 8, 1})
	f.Add([]byte{0x12, 0x80, 0x80, 0x80, 0x80, 0x10})
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := ParseDirectory(data)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("untyped error %v", err)
		}
		for _, file := range files {
			if err := Check(file.CID); err != nil {
				t.Error(err)
			}
		}
	})
}
