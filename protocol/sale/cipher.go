package sale

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/opening"
)

// LeafBytes is the size of a leaf of the files; the last leaf of a part may be shorter. KeyBytes is the size of the key
// and of a mask.
const (
	LeafBytes = 4096
	KeyBytes  = 32
)

// Scheme is how leaves are encrypted. Its numbers are part of the format.
type Scheme uint32

// Schemes. In both AES-256 in counter mode (NIST SP 800-38A) encrypts.
const (
	// OneKey encrypts all leaves with the key of the files, the first block of leaf i with the counter i times 2^64.
	OneKey Scheme = iota
	// LeafKeys encrypts each leaf with a key of its own, from the counter 0 on, which follows from that of the files as
	// package opening says: a proof shows that keys of single leaves are right.
	LeafKeys
)

// KeyDigest commits to the key of the files; zero: it is no key of the scheme.
func (s Scheme) KeyDigest(key []byte) canon.Digest {
	switch s {
	case OneKey:
		return canon.Sum("starling/sale/key/1", key)
	case LeafKeys:
		if k, err := opening.ParseKey(key); err == nil {
			return k.Digest()
		}
	}
	return canon.Digest{}
}

// MaskDigest commits to the mask of a buyer.
func MaskDigest(mask []byte) canon.Digest { return canon.Sum("starling/sale/mask/1", mask) }

// Cipher encrypts and decrypts the leaves of files.
type Cipher struct {
	block cipher.Block // nil: each leaf has its key
	key   opening.Key
}

// NewCipher returns the cipher of a key of KeyBytes.
func (s Scheme) NewCipher(key []byte) (c Cipher, err error) {
	switch {
	case len(key) != KeyBytes:
		return c, fmt.Errorf("sale: a key of %d bytes, wanted %d", len(key), KeyBytes)
	case s == LeafKeys:
		c.key, err = opening.ParseKey(key)
	default:
		c.block, err = aes.NewCipher(key)
	}
	return c, err
}

// Leaf encrypts leaf i from plain to sealed, or decrypts it the other way. Both may be the same memory.
func (c Cipher) Leaf(i uint64, to, from []byte) {
	var counter [aes.BlockSize]byte
	if c.block == nil {
		k := c.key.Leaf(i)
		OpenLeaf(k[:], to, from)
		return
	}
	binary.BigEndian.PutUint64(counter[:], i)
	cipher.NewCTR(c.block, counter[:]).XORKeyStream(to, from)
}

// OpenLeaf decrypts a leaf with its own key of opening.KeyBytes.
func OpenLeaf(key, to, from []byte) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // it is for another size of keys
	}
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(to, from)
}

// Draw is the number from which the drawn leaves of an offer follow, by the beacon of a block after that of the offer:
// its seller did not know it when it committed to the leaves.
func (o Offer) Draw(beacon canon.Digest) canon.Digest {
	return canon.Sum("starling/sale/draw/1", beacon[:], binary.LittleEndian.AppendUint64(nil, o.ID),
		canon.MustMarshal(o.Terms.Content))
}

// Draws reports whether the offer is about leaves with keys of their own, of which none are drawn yet.
func (o Offer) Draws() bool { return o.Terms.Content.Scheme == LeafKeys && len(o.Drawing) == 0 }

// Drawn are n drawn leaves of the offer, of which some may be the same; none before they are drawn.
func (o Offer) Drawn(n int) (leaves []uint64) {
	if len(o.Drawing) == 0 {
		return nil
	}
	for i := range n {
		d := canon.Sum("starling/sale/leaf/1", o.Drawing, binary.LittleEndian.AppendUint32(nil, uint32(i)))
		leaves = append(leaves, binary.LittleEndian.Uint64(d[:])%o.Terms.Content.Leaves)
	}
	return leaves
}
