package blob

import (
	"fmt"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	format "github.com/ipfs/go-ipld-format"

	"github.com/starling-network/starling/canon"
)

// File is a blob with a name in a directory.
type File struct {
	Name string
	CID  CID
	Size int64 // bytes of the blob
}

// Directory returns the CID of the UnixFS directory of the files, the one that IPFS gives them under these names, and
// its block. A directory is not a blob: its block is stored as one, of one leaf, which has the same digest (Leaf).
func Directory(files []File) (c CID, block []byte) {
	dir := unixfs.EmptyDirNode()
	must(dir.SetCidBuilder(merkledag.V1CidPrefix()))
	for _, f := range files {
		must(dir.AddRawLink(f.Name, &format.Link{Size: blocksOf(f.Size), Cid: f.CID}))
	}
	return dir.Cid(), dir.RawData()
}

// ParseDirectory returns the files of a stranger's directory, without their sizes, in the order of the block:
// ErrCorrupt if it is no block of links. A caller who knows the sizes makes sure with Directory that it is a directory
// of just these files.
func ParseDirectory(block []byte) ([]File, error) {
	dir, err := merkledag.DecodeProtobuf(block)
	if err != nil {
		return nil, fmt.Errorf("blob: directory: %w: %w", ErrCorrupt, err)
	}
	files := make([]File, len(dir.Links()))
	for i, l := range dir.Links() {
		if err := Check(l.Cid); err != nil {
			return nil, fmt.Errorf("blob: directory: %w: %w", ErrCorrupt, err)
		}
		files[i] = File{Name: l.Name, CID: l.Cid}
	}
	return files, nil
}

// Leaf is the blob whose bytes are the block c: the leaf with the same digest.
func Leaf(c CID) CID { return LeafOf(digestOf(c)) }

// isDirectory reports whether bytes are the block of a directory.
func isDirectory(block []byte) bool {
	node, err := merkledag.DecodeProtobuf(block)
	if err != nil {
		return false
	}
	dir, err := unixfs.FSNodeFromBytes(node.Data())
	return err == nil && dir.Type() == unixfs.TDirectory
}

// directoryCID is the CID of the directory whose block is a leaf.
func directoryCID(leaf CID) CID { return cid.NewCidV1(cid.DagProtobuf, leaf.Hash()) }

// blocksOf is the number of bytes of the blocks of a blob, inner nodes included. It depends on its size alone.
func blocksOf(size int64) uint64 {
	return walk(size, make([]canon.Digest, leafCount(size)), nil).total
}
