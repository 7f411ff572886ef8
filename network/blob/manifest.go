package blob

import (
	"crypto/sha256"
	"fmt"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	format "github.com/ipfs/go-ipld-format"

	"github.com/starling-network/starling/canon"
)

// The layout of a blob. It is part of the format: another value gives other CIDs.
const (
	LeafBytes = 1 << 20 // bytes of a leaf, the last one excepted: the unit of verification, resumption and blame
	Links     = 1024    // children of an inner node
)

// Limits of one blob.
const (
	MaxBytes         = 32 << 30
	MaxLeaves        = MaxBytes / LeafBytes
	MaxManifestBytes = 34*MaxLeaves + 64 // encoded
)

// Manifest lists the leaves of a blob. The inner nodes of its DAG follow from the list: leaves of LeafBytes, grouped by
// Links from the left until one node, the root, is left. A manifest is therefore verified by rebuilding the root, and
// a stranger's DAG nodes are never parsed. Manifests come from Describe and ParseManifest and are not modified.
type Manifest struct {
	Root   CID
	Size   int64          // bytes of the blob
	Leaves []canon.Digest // SHA-256 of each leaf, in order; an empty blob has one empty leaf
}

// manifestForm is the stored and transferred form of a Manifest: the requester knows the root.
type manifestForm struct {
	Size   int64          `cbor:"1,keyasint"`
	Leaves []canon.Digest `cbor:"2,keyasint"`
}

// Of returns the CID of data without storing it.
func Of(data []byte) CID { return Describe(data).Root }

// Describe computes the manifest of data.
func Describe(data []byte) *Manifest {
	m := &Manifest{Size: int64(len(data)), Leaves: make([]canon.Digest, leafCount(int64(len(data))))}
	for i := range m.Leaves {
		lo := i * LeafBytes
		m.Leaves[i] = digest(data[lo:min(lo+LeafBytes, len(data))])
	}
	m.Root = rootOf(m.Size, m.Leaves)
	return m
}

// leafManifest is the manifest of a blob of one leaf and the given size.
func leafManifest(c CID, size int64) *Manifest {
	return &Manifest{Root: c, Size: size, Leaves: []canon.Digest{digestOf(c)}}
}

// ParseManifest reads and verifies a stranger's manifest of the blob root: ErrCorrupt unless its leaves give root.
func ParseManifest(root CID, data []byte) (*Manifest, error) {
	if len(data) > MaxManifestBytes {
		return nil, fmt.Errorf("blob: manifest of %s: %d bytes, more than %d: %w", root, len(data), MaxManifestBytes,
			ErrCorrupt)
	}
	var f manifestForm
	if err := canon.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("blob: manifest of %s: %w: %w", root, ErrCorrupt, err)
	}
	if f.Size < 0 || f.Size > MaxBytes || leafCount(f.Size) != len(f.Leaves) {
		return nil, fmt.Errorf("blob: manifest of %s: %d leaves for %d bytes: %w", root, len(f.Leaves), f.Size, ErrCorrupt)
	}
	if !rootOf(f.Size, f.Leaves).Equals(root) {
		return nil, fmt.Errorf("blob: manifest of %s has another root: %w", root, ErrCorrupt)
	}
	return &Manifest{Root: root, Size: f.Size, Leaves: f.Leaves}, nil
}

// Encode returns the canonical bytes that ParseManifest reads.
func (m *Manifest) Encode() []byte { return canon.MustMarshal(manifestForm{m.Size, m.Leaves}) }

// LeafSize is the number of bytes of leaf i.
func (m *Manifest) LeafSize(i int) int {
	return int(min(LeafBytes, m.Size-int64(i)*LeafBytes))
}

// Check reports whether data is leaf i (ErrCorrupt).
func (m *Manifest) Check(i int, data []byte) error {
	if i < 0 || i >= len(m.Leaves) || len(data) != m.LeafSize(i) || digest(data) != m.Leaves[i] {
		return fmt.Errorf("blob: leaf %d of %s: %w", i, m.Root, ErrCorrupt)
	}
	return nil
}

func digest(data []byte) canon.Digest { return sha256.Sum256(data) }

func leafCount(size int64) int { return max(1, int((size+LeafBytes-1)/LeafBytes)) }

// node is a vertex of the DAG as its parent sees it.
type node struct {
	cid   CID
	file  uint64 // bytes of the file below it
	total uint64 // bytes of the blocks below it, its own included
}

// rootOf builds the DAG over the leaves and returns its root.
func rootOf(size int64, leaves []canon.Digest) CID { return walk(size, leaves, nil).cid }

// walk builds the DAG over the leaves, level by level, and returns its root. visit, unless nil, sees every block: a
// leaf (level 0), whose bytes are not known here, or an inner node.
func walk(size int64, leaves []canon.Digest, visit func(c CID, level, i int, block []byte)) node {
	if visit == nil {
		visit = func(CID, int, int, []byte) {}
	}
	nodes := make([]node, len(leaves))
	for i, d := range leaves {
		n := uint64(min(LeafBytes, size-int64(i)*LeafBytes))
		nodes[i] = node{LeafOf(d), n, n}
		visit(nodes[i].cid, 0, i, nil)
	}
	for level := 1; len(nodes) > 1; level++ {
		above := make([]node, 0, (len(nodes)+Links-1)/Links)
		for lo := 0; lo < len(nodes); lo += Links {
			parent, block := parentOf(nodes[lo:min(lo+Links, len(nodes))])
			visit(parent.cid, level, len(above), block)
			above = append(above, parent)
		}
		nodes = above
	}
	return nodes[0]
}

// parentOf builds one inner node: a dag-pb block holding a UnixFS file header.
func parentOf(children []node) (node, []byte) {
	file := unixfs.NewFSNode(unixfs.TFile)
	block := new(merkledag.ProtoNode)
	must(block.SetCidBuilder(merkledag.V1CidPrefix()))
	for _, c := range children {
		file.AddBlockSize(c.file)
		must(block.AddRawLink("", &format.Link{Size: c.total, Cid: c.cid}))
	}
	header, err := file.GetBytes()
	must(err)
	block.SetData(header)
	total, err := block.Size()
	must(err)
	return node{block.Cid(), file.FileSize(), total}, block.RawData()
}

// must guards calls that fail only on input this package never makes.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
