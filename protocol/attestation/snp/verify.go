package snp

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"math/big"
	"strings"

	"github.com/starling-network/starling/protocol/attestation/certs"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// Least returns the least versions that a root asks for, and whether the root is pinned.
type Least func(root *x509.Certificate) (least TCB, pinned bool)

// Verify checks a report at a time, in seconds since 1970, against the chain VCEK, ASK, ARK and the lists of revoked
// certificates. It appends to passed and seen, and returns the product of the chip. It does not compare the report data
// with anything.
func (r *Report) Verify(chain certs.Chain, lists certs.Lists, least Least, now int64, passed *check.List,
	seen *[]check.Seen) (product string, err error) {
	floor, pinned := least(chain.Root)
	if !pinned {
		return "", check.Fail(check.Root, "%s is not pinned", chain.Root.Subject.CommonName)
	}
	passed.Add(check.Root)
	if err := chain.Holds(x509.SHA384WithRSAPSS, now, passed); err != nil {
		return "", err
	}
	if err := lists.Spares(chain.Issuer, chain.Root, now, passed, seen); err != nil {
		return "", err
	}
	passed.Add(check.CRL, check.Revoked)
	chip, err := readChip(chain.Leaf)
	if err != nil {
		return "", err
	}
	product, _, _ = strings.Cut(chip.product, "-")
	if product != "Milan" && product != "Genoa" || chain.Leaf.Subject.CommonName != "SEV-VCEK" ||
		chain.Issuer.Subject.CommonName != "SEV-"+product || chain.Root.Subject.CommonName != "ARK-"+product {
		return "", check.Fail(check.Product, "the certificate %s by %s is for %q, known are the keys of Milan and Genoa",
			chain.Leaf.Subject.CommonName, chain.Issuer.Subject.CommonName, chip.product)
	}
	passed.Add(check.Product)
	return product, r.holds(chain.Leaf, chip, floor, passed)
}

// holds checks a report against the certificate of a chip.
func (r *Report) holds(leaf *x509.Certificate, chip *chip, floor TCB, passed *check.List) error {
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P384() {
		return check.Fail(check.Signature, "the key of the chip is not on P-384")
	}
	digest := sha512.Sum384(r.signed)
	if !ecdsa.Verify(key, digest[:], number(r.r), number(r.s)) {
		return check.Fail(check.Signature, "the report is not signed by the key of the chip")
	}
	switch {
	case chip.id != r.Chip:
		return check.Fail(check.Chip, "the report is of chip %x, the certificate of %x", r.Chip[:8], chip.id[:8])
	case chip.tcb != r.Reported:
		return check.Fail(check.ChipTCB, "the report has the versions %016x, the certificate %016x", uint64(r.Reported),
			uint64(chip.tcb))
	case !r.Reported.AtLeast(floor):
		return check.Fail(check.LeastTCB, "the report has the versions %016x, the network asks for %016x at least",
			uint64(r.Reported), uint64(floor))
	case r.Policy&policyDebug != 0:
		return check.Fail(check.Debug, "the policy of the guest allows to debug it")
	case r.Policy&policyMigration != 0:
		return check.Fail(check.Migration, "the policy of the guest allows an agent to migrate it")
	case r.VMPL != 0:
		return check.Fail(check.VMPL, "the report was asked for at level %d", r.VMPL)
	}
	passed.Add(check.Signature, check.Chip, check.ChipTCB, check.LeastTCB, check.Debug, check.Migration, check.VMPL)
	return nil
}

// number reads a little-endian number.
func number(b [72]byte) *big.Int {
	for i := range len(b) / 2 {
		b[i], b[len(b)-1-i] = b[len(b)-1-i], b[i]
	}
	return new(big.Int).SetBytes(b[:])
}

// chip is what the certificate of a chip says about it.
type chip struct {
	product string
	tcb     TCB
	id      [64]byte
}

// levels are the extensions with the versions of a TCB, from the lowest byte.
var levels = [8]string{"1.3.6.1.4.1.3704.1.3.1", "1.3.6.1.4.1.3704.1.3.2", "1.3.6.1.4.1.3704.1.3.4",
	"1.3.6.1.4.1.3704.1.3.5", "1.3.6.1.4.1.3704.1.3.6", "1.3.6.1.4.1.3704.1.3.7", "1.3.6.1.4.1.3704.1.3.3",
	"1.3.6.1.4.1.3704.1.3.8"}

const (
	productID = "1.3.6.1.4.1.3704.1.2"
	hardware  = "1.3.6.1.4.1.3704.1.4"
)

func readChip(leaf *x509.Certificate) (*chip, error) {
	values := map[string][]byte{}
	for _, e := range leaf.Extensions {
		values[e.Id.String()] = e.Value
	}
	bad := func(err error) error { return check.Fail(check.Product, "an extension of the certificate: %v", err) }
	c := &chip{}
	if err := certs.Whole(values[productID], &c.product, "ia5"); err != nil {
		return nil, bad(err)
	}
	for i, id := range levels {
		var n int
		if err := certs.Whole(values[id], &n, ""); err != nil {
			return nil, bad(err)
		}
		if n < 0 || n > 255 {
			return nil, bad(fmt.Errorf("%s is %d", id, n))
		}
		c.tcb |= TCB(n) << (8 * i)
	}
	id := values[hardware] // of real certificates without, of others with a header of ASN.1
	if len(id) == len(c.id)+2 && bytes.HasPrefix(id, []byte{asn1.TagOctetString, byte(len(c.id))}) {
		id = id[2:]
	}
	if len(id) != len(c.id) {
		return nil, check.Fail(check.Chip, "the identifier of the chip in the certificate has %d bytes", len(id))
	}
	c.id = [64]byte(id)
	return c, nil
}
