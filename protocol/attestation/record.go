package attestation

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// ErrRoots is returned for roots that cannot be pinned.
var ErrRoots = errors.New("attestation: invalid roots")

// MaxRoots is the most roots that are pinned.
const MaxRoots = 16

// ValidateRoots returns why roots cannot be pinned. None is a network on which no machine can be attested.
func ValidateRoots(roots []Root) error {
	if len(roots) > MaxRoots {
		return fmt.Errorf("%w: %d, at most %d", ErrRoots, len(roots), MaxRoots)
	}
	for i, r := range roots {
		switch {
		case r.Technology != SNP && r.Technology != TDX:
			return fmt.Errorf("%w: %q, wanted %s or %s", ErrRoots, r.Technology, SNP, TDX)
		case r.Digest.IsZero():
			return fmt.Errorf("%w: a root without a digest", ErrRoots)
		case r.Least > 0 && r.Technology != SNP:
			return fmt.Errorf("%w: least versions of %s, whose levels Intel publishes", ErrRoots, r.Technology)
		}
		for _, other := range roots[:i] {
			if other.Digest == r.Digest {
				return fmt.Errorf("%w: %s is there twice", ErrRoots, r.Digest.Short())
			}
		}
	}
	return nil
}

// Roots are those of a new network: ARK-Milan and ARK-Genoa of AMD, and the SGX Root CA of Intel, which signs for TDX,
// too. They are the SHA-256 fingerprints of the certificates at https://kdsintf.amd.com/vcek/v1/Milan/cert_chain,
// https://kdsintf.amd.com/vcek/v1/Genoa/cert_chain and
// https://certificates.trustedservices.intel.com/Intel_SGX_Provisioning_Certification_RootCA.pem.
func Roots() []Root {
	return []Root{
		{Technology: SNP, Digest: digest(milan)}, {Technology: SNP, Digest: digest(genoa)},
		{Technology: TDX, Digest: digest(intel)},
	}
}

const (
	milan = "69d063b45344d26a2e94e1f4210de49ef555308287d4c174445c95639a540bcd"
	genoa = "4c6598d19c18719c5dfd4a7d335f674e5bfe1d8f800cea2cf270c10d103db2f1"
	intel = "44a0196b2b99f889b8e149e95b807a350e7424964399e885a7cbb8ccfab674d3"
)

func digest(text string) (d canon.Digest) {
	if err := d.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return d
}

// Record is an attestation of a participant, as the chain stores it.
type Record struct {
	ID          string       `cbor:"1,keyasint"` // account
	Peer        string       `cbor:"2,keyasint"` // identity of its transport
	Measurement string       `cbor:"3,keyasint"`
	Platform    string       `cbor:"4,keyasint"`
	LevelDate   int64        `cbor:"5,keyasint,omitempty"` // seconds since 1970
	At          int64        `cbor:"6,keyasint"`           // time of the block that accepted it, seconds since 1970
	Height      int64        `cbor:"7,keyasint"`           // of that block
	Until       int64        `cbor:"8,keyasint"`           // seconds since 1970 until which it holds
	Quote       canon.Digest `cbor:"9,keyasint"`           // SHA-256 of the quote
	Passed      check.List   `cbor:"10,keyasint"`
}

// Fresh reports whether the beacon of a block may give the nonce of a quote that is sent at a height.
func Fresh(block, height int64) bool { return block > 0 && block < height && height-block <= MaxDelay }
