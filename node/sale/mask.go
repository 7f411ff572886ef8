package sale

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/binary"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/protocol/sale"
)

// NewSealKey returns a private key to which buyers encrypt their masks: hybrid public-key encryption (RFC 9180) with
// X25519, HKDF-SHA256 and AES-256-GCM.
func NewSealKey() (hpke.PrivateKey, error) { return hpke.DHKEM(ecdh.X25519()).GenerateKey() }

// boxInfo binds a box to an offer and a buyer: a copy of another buyer does not open.
func boxInfo(offer uint64, buyer string) []byte {
	d := canon.Sum("starling/sale/box/1", binary.BigEndian.AppendUint64(nil, offer), []byte(buyer))
	return d[:]
}

// BoxMask encrypts a mask to the public key of an offer: sale.MaskBoxBytes.
func BoxMask(public []byte, offer uint64, buyer string, mask []byte) ([]byte, error) {
	k, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(public)
	var box []byte
	if err == nil {
		box, err = hpke.Seal(k, hpke.HKDFSHA256(), hpke.AES256GCM(), boxInfo(offer, buyer), mask)
	}
	if err == nil && len(box) != sale.MaskBoxBytes {
		err = fmt.Errorf("a mask of %d bytes, wanted %d", len(mask), sale.KeyBytes)
	}
	if err != nil {
		return nil, &fault.Error{Code: fault.BadBox, What: "a mask cannot be encrypted to the key of the offer", Err: err,
			Fix: "buy from another seller: nothing is paid"}
	}
	return box, nil
}

// OpenMask decrypts the mask of a buyer.
func OpenMask(private hpke.PrivateKey, offer uint64, buyer string, box []byte) ([]byte, error) {
	if len(box) != sale.MaskBoxBytes {
		return nil, fmt.Errorf("sale: a sealed mask of %d bytes, wanted %d", len(box), sale.MaskBoxBytes)
	}
	mask, err := hpke.Open(private, hpke.HKDFSHA256(), hpke.AES256GCM(), boxInfo(offer, buyer), box)
	if err != nil {
		return nil, fmt.Errorf("sale: a sealed mask does not open: %w", err)
	}
	return mask, nil
}
