package blob

import "os"

// place is the file that a blob becomes: one of its CID, or, for the block of a directory, of the CID of the directory,
// by which a lineage and IPFS name it. data are the bytes of a blob of one leaf.
func (s *Disk) place(c CID, data []byte) string {
	if IsLeaf(c) && isDirectory(data) {
		return s.path(directoryCID(c), "")
	}
	return s.path(c, "")
}

// file is where a blob lies if it is stored. A block of a directory that was stored under its CID as a leaf is read,
// too.
func (s *Disk) file(c CID) string {
	switch {
	case IsLeaf(c):
		if d := directoryCID(c); s.holdsDirectory(d) {
			return s.path(d, "")
		}
	case s.holdsDirectory(c):
		return s.path(c, ".none") // a directory is not a blob
	}
	return s.path(c, "")
}

// holdsDirectory reports whether the file of a CID is the block of a directory. A blob of that CID would have several
// leaves, and a file with their manifest.
func (s *Disk) holdsDirectory(c CID) bool {
	if IsLeaf(c) {
		return false
	}
	info, err := os.Stat(s.path(c, ""))
	if err != nil || info.Size() > LeafBytes {
		return false
	}
	_, err = os.Stat(s.path(c, leavesSuffix))
	return err != nil
}
