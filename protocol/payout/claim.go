package payout

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
)

// Claim is what an account may have claimed of a token in all since the beginning, in base units of the token.
type Claim struct {
	Account Address
	Token   Address
	Total   *big.Int
}

// word is a number as 32 bytes, big-endian.
func word(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

func word64(n uint64) []byte { return word(new(big.Int).SetUint64(n)) }

func (a Address) word() []byte { return append(make([]byte, 12, 32), a[:]...) }

// Leaf is the leaf of a claim: its ABI encoding, hashed twice, so that no inner node of a tree is a leaf. It is the
// leaf that OpenZeppelin's StandardMerkleTree has for (address, address, uint256).
func (c Claim) Leaf() Digest {
	inner := Keccak(c.Account.word(), c.Token.word(), word(c.Total))
	return Keccak(inner[:])
}

// Proof is a claim with its path to the root of an epoch.
type Proof struct {
	Account Address  `cbor:"1,keyasint"`
	Token   Address  `cbor:"2,keyasint"`
	Total   []byte   `cbor:"3,keyasint"` // big-endian
	Path    []Digest `cbor:"4,keyasint"`
}

// maxPath is the most steps from a leaf to a root.
const maxPath = 64

// Check wraps ErrClaim if no contract takes one of the claims: a node, which may be dishonest, gave them.
func Check(claims ...Proof) error {
	for _, p := range claims {
		if len(p.Total) > 32 || len(p.Path) > maxPath {
			return fmt.Errorf("%w: a total of %d bytes, and a path of %d", ErrClaim, len(p.Total), len(p.Path))
		}
	}
	return nil
}

// Tree is a binary Merkle tree whose pairs are hashed in the order of their bytes. A node without a pair moves up.
type Tree struct{ levels [][]Digest }

// NewTree is the tree over leaves, of which there is at least one.
func NewTree(leaves []Digest) Tree {
	t := Tree{[][]Digest{leaves}}
	for level := leaves; len(level) > 1; {
		var up []Digest
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				up = append(up, level[i])
			} else {
				up = append(up, pair(level[i], level[i+1]))
			}
		}
		t.levels = append(t.levels, up)
		level = up
	}
	return t
}

func pair(a, b Digest) Digest {
	if bytes.Compare(a[:], b[:]) > 0 {
		a, b = b, a
	}
	return Keccak(a[:], b[:])
}

// Root is the root of the tree.
func (t Tree) Root() Digest { return t.levels[len(t.levels)-1][0] }

// Proof is the path from a leaf to the root, from below.
func (t Tree) Proof(leaf int) []Digest {
	path := []Digest{}
	for _, level := range t.levels[:len(t.levels)-1] {
		if other := leaf ^ 1; other < len(level) {
			path = append(path, level[other])
		}
		leaf /= 2
	}
	return path
}

// RootOf is the root of the tree that has a leaf under a path.
func RootOf(leaf Digest, path []Digest) Digest {
	for _, other := range path {
		leaf = pair(leaf, other)
	}
	return leaf
}

// Claims are all claims of an epoch on one chain, in the order of their accounts and tokens.
type Claims []Claim

// Sort puts the claims into their order.
func (c Claims) Sort() {
	slices.SortFunc(c, func(a, b Claim) int {
		if n := bytes.Compare(a.Account[:], b.Account[:]); n != 0 {
			return n
		}
		return bytes.Compare(a.Token[:], b.Token[:])
	})
}

// Proof is a claim with its path in the tree over the claims.
func (c Claims) Proof(t Tree, claim int) Proof {
	return Proof{c[claim].Account, c[claim].Token, c[claim].Total.Bytes(), t.Proof(claim)}
}

// Tree is the tree over the claims, of which there is at least one.
func (c Claims) Tree() Tree {
	leaves := make([]Digest, len(c))
	for i := range c {
		leaves[i] = c[i].Leaf()
	}
	return NewTree(leaves)
}
