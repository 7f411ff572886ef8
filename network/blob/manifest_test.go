package blob

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	format "github.com/ipfs/go-ipld-format"

	"github.com/starling-network/starling/canon"
)

// discard is a DAG service that forgets what the importer adds.
type discard struct{ format.DAGService }

func (discard) Add(context.Context, format.Node) error       { return nil }
func (discard) AddMany(context.Context, []format.Node) error { return nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestImporter compares our CIDs with those of the importer of IPFS, on zeros, whose leaves need hashing once only.
func TestImporter(t *testing.T) {
	full := digest(make([]byte, LeafBytes))
	for _, size := range []int64{0, 1, 1000, LeafBytes - 1, LeafBytes, LeafBytes + 1, 5 * LeafBytes, 7*LeafBytes + 99,
		Links * LeafBytes, Links*LeafBytes + 1} {
		leaves := make([]canon.Digest, leafCount(size))
		for i := range leaves {
			leaves[i] = full
		}
		last := len(leaves) - 1
		leaves[last] = digest(make([]byte, size-int64(last)*LeafBytes))
		got := rootOf(size, leaves)

		params := helpers.DagBuilderParams{Maxlinks: Links, RawLeaves: true, CidBuilder: merkledag.V1CidPrefix(),
			Dagserv: discard{}}
		db, err := params.New(chunk.NewSizeSplitter(io.LimitReader(zeros{}, size), LeafBytes))
		if err != nil {
			t.Fatal(err)
		}
		want, err := balanced.Layout(db)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equals(want.Cid()) {
			t.Errorf("%d bytes: %v, the importer gives %v", size, got, want.Cid())
		}
	}
}

// TestFormat holds CIDs that must never change.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"},
		{[]byte("hello world"), "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"},
		{make([]byte, 2*LeafBytes+1), "bafybeif3dv52qu4uoqvhg2upq6r7pr5ggh7hwh75dpmoxdux4hmtriybga"},
	} {
		if got := Of(c.data).String(); got != c.want {
			t.Errorf("CID of %d bytes: %s, want %s", len(c.data), got, c.want)
		}
	}
}

func TestManifest(t *testing.T) {
	data := make([]byte, 2*LeafBytes+3)
	m := Describe(data)
	got, err := ParseManifest(m.Root, m.Encode())
	if err != nil || got.Size != m.Size || len(got.Leaves) != 3 || got.LeafSize(2) != 3 {
		t.Fatalf("ParseManifest: %v, %v", got, err)
	}
	refused := func(name string, f manifestForm) {
		t.Helper()
		if _, err := ParseManifest(m.Root, canon.MustMarshal(f)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("no leaves", manifestForm{m.Size, nil})
	refused("negative size", manifestForm{-1, m.Leaves[:1]})
	refused("other size", manifestForm{m.Size + 1, m.Leaves})
	refused("smallest size", manifestForm{-1 << 63, m.Leaves})
	refused("greatest size", manifestForm{1<<63 - 1, m.Leaves})
	refused("leaf left out", manifestForm{2 * LeafBytes, m.Leaves[:2]})
	refused("leaves swapped", manifestForm{m.Size, []canon.Digest{m.Leaves[2], m.Leaves[1], m.Leaves[0]}})
	if _, err := ParseManifest(m.Root, make([]byte, MaxManifestBytes+1)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("too long: %v", err)
	}
}

func TestLimits(t *testing.T) {
	m := &Manifest{Size: MaxBytes, Leaves: make([]canon.Digest, MaxLeaves)}
	m.Root = rootOf(m.Size, m.Leaves)
	data := m.Encode()
	if len(data) > MaxManifestBytes {
		t.Errorf("the greatest manifest has %d bytes, the limit is %d", len(data), MaxManifestBytes)
	}
	if _, err := ParseManifest(m.Root, data); err != nil {
		t.Error(err)
	}
}

func FuzzParseManifest(f *testing.F) {
	m := Describe(make([]byte, 2*LeafBytes+3))
	f.Add(m.Encode())
	f.Add(Describe(nil).Encode())
	f.Add([]byte{0xa2, 1, 0, 2, 0x9b, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ParseManifest(m.Root, data)
		if err == nil && string(got.Encode()) != string(m.Encode()) {
			t.Errorf("two manifests of one root: %v", got)
		}
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("untyped error %v", err)
		}
	})
}

func FuzzCID(f *testing.F) {
	c := Of(nil)
	f.Add(c.String(), c.Bytes())
	f.Fuzz(func(t *testing.T, text string, binary []byte) {
		if c, err := Parse(text); err == nil && Check(c) != nil {
			t.Errorf("Parse gave %v", c)
		}
		if c, err := FromBytes(binary); err == nil && Check(c) != nil {
			t.Errorf("FromBytes gave %v", c)
		}
	})
}
