package payout

import (
	"fmt"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// WalletSignatureSize is the size of a signature of a wallet in bytes: R, S and the recovery code.
const WalletSignatureSize = 65

// Text is the text that the owner of an address signs in a wallet, to have the coins of an account paid out there.
func Text(chain, account string, a fmt.Stringer) string {
	return fmt.Sprintf("Starling: pay out the coins of an account to my address.\n\nNetwork: %s\nAccount: %s\nAddress: %s",
		chain, account, a)
}

// personal is the digest of a text that a wallet signs (EIP-191, version 0x45).
func personal(text string) Digest {
	return Keccak(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(text), text))
}

// CheckText returns why a signature does not show that the owner of an address has signed a text (EIP-191).
func CheckText(text string, a Address, signature []byte) error {
	if len(signature) != WalletSignatureSize {
		return fmt.Errorf("%w: %d bytes, wanted %d", ErrSignature, len(signature), WalletSignatureSize)
	}
	code := signature[64]
	if code < 27 {
		code += 27
	}
	if code != 27 && code != 28 {
		return fmt.Errorf("%w: recovery code %d", ErrSignature, signature[64])
	}
	digest := personal(text)
	key, _, err := ecdsa.RecoverCompact(append([]byte{code}, signature[:64]...), digest[:])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if signer := addressOf(key); signer != a {
		return fmt.Errorf("%w: %s has signed this, or another text", ErrSignature, signer)
	}
	return nil
}

func addressOf(key *secp256k1.PublicKey) (a Address) {
	sum := Keccak(key.SerializeUncompressed()[1:])
	copy(a[:], sum[12:])
	return a
}

// Wallet is the key of an address.
type Wallet struct{ key *secp256k1.PrivateKey }

// NewWallet is the wallet of a key of 32 bytes.
func NewWallet(key []byte) (Wallet, error) {
	var s secp256k1.ModNScalar
	if len(key) != 32 || s.SetByteSlice(key) || s.IsZero() {
		return Wallet{}, fmt.Errorf("%w: not a secret key of secp256k1", ErrAddress)
	}
	return Wallet{secp256k1.NewPrivateKey(&s)}, nil
}

// Address is that of the wallet.
func (w Wallet) Address() Address { return addressOf(w.key.PubKey()) }

// SignText signs a text as wallets do (EIP-191).
func (w Wallet) SignText(text string) []byte {
	s := w.Sign(personal(text))
	s[64] += 27
	return s
}

// Sign signs a digest: R, S, and 0 or 1.
func (w Wallet) Sign(digest Digest) []byte {
	s := ecdsa.SignCompact(w.key, digest[:], false)
	return append(s[1:65:65], s[0]-27)
}
