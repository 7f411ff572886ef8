package account

import (
	"errors"
	"fmt"

	"github.com/cometbft/cometbft/crypto/secp256k1"

	"github.com/starling-network/starling/canon"
)

// ErrSignature is returned for a signature that is not what it should be.
var ErrSignature = errors.New("client: wrong signature")

// Verify checks that the account with an address signed a digest, as the votes of a lineage are signed. It needs no
// network.
func Verify(address string, publicKey []byte, digest canon.Digest, signature []byte) error {
	if len(publicKey) != secp256k1.PubKeySize {
		return fmt.Errorf("%w: a public key has %d bytes, not %d", ErrSignature, secp256k1.PubKeySize, len(publicKey))
	}
	key := secp256k1.PubKey(publicKey)
	if owner := Address(key.Address()); owner != address {
		return fmt.Errorf("%w: the key is that of %s, not of %s", ErrSignature, owner, address)
	}
	if !key.VerifySignature(digest[:], signature) {
		return fmt.Errorf("%w of %s over %s", ErrSignature, address, digest.Short())
	}
	return nil
}

// VerifyJoined is Verify for a signature that follows the public key.
func VerifyJoined(address string, joined []byte, digest canon.Digest) error {
	n := min(secp256k1.PubKeySize, len(joined))
	return Verify(address, joined[:n], digest, joined[n:])
}
