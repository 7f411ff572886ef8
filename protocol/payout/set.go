package payout

import (
	"fmt"
	"math/bits"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/starling-network/starling/protocol/threshold"
)

// Member is a validator that signs.
type Member struct {
	Validator []byte `cbor:"1,keyasint" json:"validator"` // its consensus address
	Key       []byte `cbor:"2,keyasint" json:"key"`       // 96 bytes, proven by CheckKey
	Power     uint64 `cbor:"3,keyasint" json:"power"`
}

// Set is the validators whose signatures count together, by their stake when the set was made.
type Set struct {
	Number  uint64   `cbor:"1,keyasint" json:"number"`
	Members []Member `cbor:"2,keyasint" json:"members"` // at least one
	Total   uint64   `cbor:"3,keyasint" json:"total"`   // power of all validators, also of those without a key
}

// Enough reports whether a power is at least two thirds of that of all validators.
func (s Set) Enough(power uint64) bool {
	high, low := bits.Mul64(power, 3)
	high2, low2 := bits.Mul64(s.Total, 2)
	return high > high2 || high == high2 && low >= low2
}

// Power is that of all members.
func (s Set) Power() (sum uint64) {
	for _, m := range s.Members {
		sum += m.Power
	}
	return sum
}

// Same reports whether two sets have the same members, keys and powers.
func (s Set) Same(other Set) bool {
	if len(s.Members) != len(other.Members) || s.Total != other.Total {
		return false
	}
	for i, m := range s.Members {
		o := other.Members[i]
		if string(m.Validator) != string(o.Validator) || string(m.Key) != string(o.Key) || m.Power != o.Power {
			return false
		}
	}
	return true
}

// Index is the place of a validator among the members; -1: it is none.
func (s Set) Index(validator []byte) int {
	for i, m := range s.Members {
		if string(m.Validator) == string(validator) {
			return i
		}
	}
	return -1
}

// leaf is the leaf of a member.
func (m Member) leaf(index int) (Digest, error) {
	key, err := precompiled2(m.Key)
	if err != nil {
		return Digest{}, err
	}
	hash := Keccak(key)
	inner := Keccak(word64(uint64(index)), word64(m.Power), hash[:])
	return Keccak(inner[:]), nil
}

func (s Set) tree() (Tree, error) {
	if len(s.Members) == 0 {
		return Tree{}, fmt.Errorf("%w: no members", ErrSet)
	}
	leaves := make([]Digest, len(s.Members))
	for i, m := range s.Members {
		var err error
		if leaves[i], err = m.leaf(i); err != nil {
			return Tree{}, err
		}
	}
	return NewTree(leaves), nil
}

// sum is the sum of the keys of all members.
func (s Set) sum() ([]byte, error) {
	var sum bls.G2Jac
	for _, m := range s.Members {
		k, err := threshold.ReadG2(m.Key)
		if err != nil {
			return nil, err
		}
		var j bls.G2Jac
		sum.AddAssign(j.FromAffine(&k))
	}
	var k bls.G2Affine
	k.FromJacobian(&sum)
	if k.IsInfinity() {
		return nil, fmt.Errorf("%w: the keys add up to zero", ErrSet)
	}
	b := k.Bytes()
	return b[:], nil
}

// Certificate is the signature of a set under a message, with all that a contract needs which knows the digest of the
// set alone.
type Certificate struct {
	Key       []byte   `cbor:"1,keyasint" json:"key"` // sum of the keys of all members, compressed
	Power     uint64   `cbor:"2,keyasint" json:"power"`
	Total     uint64   `cbor:"3,keyasint" json:"total"`
	Members   Digest   `cbor:"4,keyasint" json:"members"` // root of the tree over the members
	Absent    []Absent `cbor:"5,keyasint,omitempty" json:"absent,omitempty"`
	Signature []byte   `cbor:"6,keyasint" json:"signature"` // compressed
}

// Absent is a member that has not signed.
type Absent struct {
	Index uint64   `cbor:"1,keyasint" json:"index"`
	Power uint64   `cbor:"2,keyasint" json:"power"`
	Key   []byte   `cbor:"3,keyasint" json:"key"` // compressed
	Proof []Digest `cbor:"4,keyasint,omitempty" json:"proof,omitempty"`
}

// certificate is that of a set without signatures, and the tree over its members.
func (s Set) certificate() (c Certificate, t Tree, err error) {
	if t, err = s.tree(); err != nil {
		return c, t, err
	}
	c = Certificate{Power: s.Power(), Total: s.Total, Members: t.Root()}
	c.Key, err = s.sum()
	return c, t, err
}

// Certify makes the certificate of signatures, one for each member; nil for those that have not signed.
func (s Set) Certify(signatures [][]byte) (Certificate, error) {
	c, t, err := s.certificate()
	if err != nil {
		return c, err
	}
	var given [][]byte
	for i, m := range s.Members {
		if signatures[i] != nil {
			given = append(given, signatures[i])
			continue
		}
		c.Absent = append(c.Absent, Absent{Index: uint64(i), Power: m.Power, Key: m.Key, Proof: t.Proof(i)})
	}
	c.Signature, err = Add(given)
	return c, err
}

// Digest is how contracts know a set.
func (s Set) Digest() (Digest, error) {
	c, _, err := s.certificate()
	if err != nil {
		return Digest{}, err
	}
	return c.set()
}

func (c Certificate) set() (Digest, error) {
	key, err := precompiled2(c.Key)
	if err != nil {
		return Digest{}, err
	}
	hash := Keccak(key)
	return Keccak(hash[:], word64(c.Power), word64(c.Total), c.Members[:]), nil
}

// Check returns why a certificate does not show that the set with a digest has signed a message. It is what contracts
// check.
func (c Certificate) Check(set, message Digest) error {
	if is, err := c.set(); err != nil || is != set {
		return fmt.Errorf("%w: the certificate is of another set", ErrSet)
	}
	key, err := threshold.ReadG2(c.Key)
	if err != nil {
		return err
	}
	power := c.Power
	var sum bls.G2Jac
	sum.FromAffine(&key)
	for i, a := range c.Absent {
		leaf, err := Member{Key: a.Key, Power: a.Power}.leaf(int(a.Index))
		if err != nil || RootOf(leaf, a.Proof) != c.Members || a.Power > power || i > 0 && a.Index <= c.Absent[i-1].Index {
			return fmt.Errorf("%w: member %d", ErrSet, a.Index)
		}
		power -= a.Power
		k, err := threshold.ReadG2(a.Key)
		if err != nil {
			return err
		}
		var j bls.G2Jac
		sum.SubAssign(j.FromAffine(&k))
	}
	if !(Set{Total: c.Total}).Enough(power) {
		return fmt.Errorf("%w: members with %d of %d have signed", ErrSignature, power, c.Total)
	}
	key.FromJacobian(&sum)
	s, err := threshold.ReadG1(c.Signature)
	if err != nil || key.IsInfinity() || !threshold.VerifyUnder(suite, &key, message[:], &s) {
		return ErrSignature
	}
	return nil
}

// Network names a network by its chain ID.
func Network(chain string) Digest { return Keccak([]byte(chain)) }

// RootMessage is what validators sign for the root of an epoch, bound to one contract of one chain.
func RootMessage(network Digest, evm uint64, contract Address, epoch uint64, root Digest) Digest {
	kind := Keccak([]byte("starling payout root 1"))
	return Keccak(kind[:], network[:], word64(evm), contract.word(), word64(epoch), root[:])
}

// HandoverMessage is what validators sign for the set with the next number. It holds for all contracts: a network has
// one set at a time.
func HandoverMessage(network Digest, number uint64, next Digest) Digest {
	kind := Keccak([]byte("starling payout handover 1"))
	return Keccak(kind[:], network[:], word64(number), next[:])
}
