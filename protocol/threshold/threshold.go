// Package threshold makes signatures that are the same for any set of signers: BLS signatures (Boneh, Lynn, Shacham
// 2001; RFC 9380 for hashing to the curve) over BLS12-381 with a key that no member holds. The members of a roster
// deal each other shares of it (Feldman 1987, Pedersen 1991), each in proportion to its power, and any members with
// Threshold shares sign.
//
// For a roster of Apportion, members with less than a third of the power cannot sign, and members with more than two
// thirds can. A signature does not show its signers. The package holds no state and decides no order; that is
// chain/x/beacon.
package threshold

import (
	"errors"
	"fmt"
	"math/bits"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/starling-network/starling/canon"
)

// Sizes of messages, in bytes.
const (
	KeySize        = bls.SizeOfG1AffineCompressed // of a member's public key
	SignatureSize  = bls.SizeOfG1AffineCompressed
	CommitmentSize = bls.SizeOfG2AffineCompressed // of one coefficient of a deal, and of a group's public key
	ShareSize      = fr.Bytes
	proofSize      = 2 * fr.Bytes
)

// MaxMembers of a roster. The shares are at most three for each.
const MaxMembers = 200

// ErrInvalid is returned for input of another member that cannot be right.
var ErrInvalid = errors.New("threshold: invalid")

// Member of a roster.
type Member struct {
	Address []byte `cbor:"1,keyasint"`
	Key     []byte `cbor:"2,keyasint"` // to which shares are encrypted: a point of G1, compressed
	Power   int64  `cbor:"3,keyasint"`
	Shares  uint32 `cbor:"4,keyasint"`
}

// Roster is the members that share a key. Its shares are numbered from 1, member by member.
type Roster struct {
	Chain     string   `cbor:"1,keyasint"`
	Epoch     uint64   `cbor:"2,keyasint"`
	Threshold uint32   `cbor:"3,keyasint"` // shares that sign
	Members   []Member `cbor:"4,keyasint"`
}

// NewRoster gives the members, whose Shares it sets, shares in proportion to their power: ErrInvalid for none, for more
// than MaxMembers, for a power below 1, or for powers whose sum overflows.
func NewRoster(chain string, epoch uint64, members []Member) (Roster, error) {
	powers := make([]int64, len(members))
	for i, m := range members {
		powers[i] = m.Power
	}
	shares, threshold, err := Apportion(powers)
	if err != nil {
		return Roster{}, err
	}
	r := Roster{Chain: chain, Epoch: epoch, Threshold: threshold, Members: members}
	for i := range members {
		members[i].Shares = shares[i]
	}
	return r, nil
}

// ID names the roster: deals and signatures for one roster are invalid for another.
func (r Roster) ID() canon.Digest { return canon.Hash("starling/threshold/roster/1", r) }

// Size is the number of shares.
func (r Roster) Size() (n int) {
	for _, m := range r.Members {
		n += int(m.Shares)
	}
	return n
}

// First is the number of the first share of a member.
func (r Roster) First(member int) (n int) {
	for _, m := range r.Members[:member] {
		n += int(m.Shares)
	}
	return n + 1
}

// Apportion gives every power its shares, and says how many sign: members with less than a third of the power have
// fewer, members with more than two thirds have as many.
//
// Member i of power p(i) has floor(W p(i) / P) shares, where P is the sum of the powers, and t = ceil(W/3). Members
// with less than P/3 have less than W/3 shares, so less than t. With S shares in all, the others have more than S -
// W/3, which is t or more where S >= W/3 + t - 1. W is the least for which that holds; S > W - n, so 3n is one.
func Apportion(powers []int64) (shares []uint32, threshold uint32, err error) {
	if len(powers) == 0 || len(powers) > MaxMembers {
		return nil, 0, fmt.Errorf("%w: %d members, wanted 1 to %d", ErrInvalid, len(powers), MaxMembers)
	}
	var total uint64
	for _, p := range powers {
		if p < 1 || total > 1<<62 {
			return nil, 0, fmt.Errorf("%w: a power of %d after a sum of %d", ErrInvalid, p, total)
		}
		total += uint64(p)
	}
	shares = make([]uint32, len(powers))
	for w := uint64(1); ; w++ {
		t, sum := (w+2)/3, uint64(0)
		for i, p := range powers {
			hi, lo := bits.Mul64(uint64(p), w)
			q, _ := bits.Div64(hi, lo, total) // hi < total, because p <= total and w < 2^64
			shares[i] = uint32(q)
			sum += q
		}
		if 3*sum >= w+3*(t-1) {
			return shares, uint32(t), nil
		}
	}
}

// scalar is a digest of the parts as an element of the field of exponents, from 64 bytes: its bias is less than 2^-250.
func scalar(domain string, parts ...[]byte) (s fr.Element) {
	a := canon.Sum("starling/threshold/"+domain+"/a", parts...)
	b := canon.Sum("starling/threshold/"+domain+"/b", parts...)
	s.SetBytes(append(a[:], b[:]...))
	return s
}

func number(n int) []byte {
	return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
}

// ReadG1 reads a point of G1 that is not zero, in its one encoding.
func ReadG1(b []byte) (p bls.G1Affine, err error) {
	if len(b) != bls.SizeOfG1AffineCompressed {
		return p, fmt.Errorf("%w: a point of %d bytes", ErrInvalid, len(b))
	}
	if _, err := p.SetBytes(b); err != nil {
		return p, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if again := p.Bytes(); p.IsInfinity() || string(again[:]) != string(b) {
		return p, fmt.Errorf("%w: a point", ErrInvalid)
	}
	return p, nil
}

// ReadG2 reads a point of G2 that is not zero, in its one encoding.
func ReadG2(b []byte) (p bls.G2Affine, err error) {
	if len(b) != CommitmentSize {
		return p, fmt.Errorf("%w: a point of %d bytes", ErrInvalid, len(b))
	}
	if _, err := p.SetBytes(b); err != nil {
		return p, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if again := p.Bytes(); p.IsInfinity() || string(again[:]) != string(b) {
		return p, fmt.Errorf("%w: a point", ErrInvalid)
	}
	return p, nil
}

func mul1(p *bls.G1Affine, s fr.Element) (out bls.G1Affine) {
	out.ScalarMultiplication(p, bigOf(s))
	return out
}

func mul2(p *bls.G2Affine, s fr.Element) (out bls.G2Affine) {
	out.ScalarMultiplication(p, bigOf(s))
	return out
}
