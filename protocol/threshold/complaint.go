package threshold

import (
	"bytes"
	"io"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/starling-network/starling/canon"
)

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// Complaint shows that a share of a deal is wrong: it reveals the key under which the dealer sent it, with a proof
// that it is the key (Chaum, Pedersen 1992). That key hides no other shares but those of the same dealer for the same
// member.
type Complaint struct {
	Dealer uint32 `cbor:"1,keyasint"` // member that dealt
	Share  uint32 `cbor:"2,keyasint"` // number of the share
	Shared []byte `cbor:"3,keyasint"` // point of G1
	Proof  []byte `cbor:"4,keyasint"` // 64 bytes
}

// Read decrypts the shares of a member in a deal that passed Check. If a share is wrong, it returns the complaint
// instead.
func (d Deal) Read(s Secret, r Roster, dealer, member int) ([]fr.Element, *Complaint, error) {
	ephemeral, err := ReadG1(d.Ephemeral)
	if err != nil {
		return nil, nil, err
	}
	coefficients, err := d.commitments()
	if err != nil {
		return nil, nil, err
	}
	id, shared := r.ID(), mul1(&ephemeral, s.x)
	var out []fr.Element
	for i := range int(r.Members[member].Shares) {
		at := r.First(member) + i
		y, ok := d.open(id, r, dealer, member, at, &shared, coefficients)
		if !ok {
			b := shared.Bytes()
			k := s.derive("nonce of a complaint", id[:], d.Ephemeral)
			t1, t2 := mul1(&base1, k), mul1(&ephemeral, k)
			c := Complaint{Dealer: uint32(dealer), Share: uint32(at), Shared: b[:]}
			c.Proof = answer(k, s.x, c.challenge(id, r.Members[member], d, &t1, &t2))
			return nil, &c, nil
		}
		out = append(out, y)
	}
	return out, nil, nil
}

// open decrypts a share, and reports whether it is on the polynomial that the dealer committed to.
func (d Deal) open(id canon.Digest, r Roster, dealer, member, at int, shared *bls.G1Affine,
	coefficients []bls.G2Affine) (y fr.Element, ok bool) {
	share := bytes.Clone(d.Shares[(at-1)*ShareSize : at*ShareSize])
	hide(share, pad(id, r.Members[dealer], r.Members[member], shared, at))
	if y.SetBytesCanonical(share) != nil {
		return y, false
	}
	have, want := mul2(&base2, y), evaluate2(coefficients, at)
	return y, have.Equal(&want)
}

func (c Complaint) challenge(id canon.Digest, member Member, d Deal, t1, t2 *bls.G1Affine) fr.Element {
	a, b := t1.Bytes(), t2.Bytes()
	return scalar("proof of a complaint", id[:], member.Key, d.Ephemeral, c.Shared, a[:], b[:])
}

// Upheld reports whether a complaint of a member about a deal that passed Check is right.
func (c Complaint) Upheld(d Deal, r Roster, member int) bool {
	first := r.First(member)
	if at := int(c.Share); int(c.Dealer) >= len(r.Members) || at < first || at >= first+int(r.Members[member].Shares) {
		return false
	}
	shared, err := ReadG1(c.Shared)
	if err != nil {
		return false
	}
	key, err := ReadG1(r.Members[member].Key)
	if err != nil {
		return false
	}
	ephemeral, err := ReadG1(d.Ephemeral)
	if err != nil {
		return false
	}
	e, z, err := read(c.Proof)
	if err != nil {
		return false
	}
	id := r.ID()
	t1, t2 := commitment(&base1, &key, e, z), commitment(&ephemeral, &shared, e, z)
	if want := c.challenge(id, r.Members[member], d, &t1, &t2); !want.Equal(&e) {
		return false
	}
	coefficients, err := d.commitments()
	if err != nil {
		return false
	}
	_, ok := d.open(id, r, int(c.Dealer), member, int(c.Share), &shared, coefficients)
	return !ok
}
