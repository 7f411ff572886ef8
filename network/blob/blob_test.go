package blob_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

func TestMemory(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return blob.NewMemory() })
}

func TestParse(t *testing.T) {
	c := blob.Of([]byte("starling"))
	if got, err := blob.Parse(c.String()); err != nil || !got.Equals(c) {
		t.Errorf("Parse: %v, %v", got, err)
	}
	if got, err := blob.FromBytes(c.Bytes()); err != nil || !got.Equals(c) {
		t.Errorf("FromBytes: %v, %v", got, err)
	}
	long, err := multihash.Sum([]byte("starling"), multihash.SHA2_512, -1)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty":     "",
		"text":      "not a CID",
		"version 0": cid.NewCidV0(c.Hash()).String(),
		"codec":     cid.NewCidV1(cid.DagCBOR, c.Hash()).String(),
		"hash":      cid.NewCidV1(cid.Raw, long).String(),
		"long":      strings.Repeat("b", 1000),
	} {
		if _, err := blob.Parse(bad); !errors.Is(err, blob.ErrBadCID) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckLeaf(t *testing.T) {
	data := []byte("one leaf")
	if err := blob.CheckLeaf(blob.Of(data), data); err != nil {
		t.Error(err)
	}
	if err := blob.CheckLeaf(blob.Of(data), data[1:]); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("another leaf: %v", err)
	}
	two := blobtest.Data(1, blob.LeafBytes+1)
	if err := blob.CheckLeaf(blob.Of(two), two); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("two leaves: %v", err)
	}
}
