package teetest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"sync"

	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/snp"
)

// SNP is a report of SEV-SNP before it is signed, with templates of its certificates and its list.
type SNP struct {
	Report            []byte
	Leaf, Issuer, Ark *x509.Certificate
	List              *x509.RevocationList
	// another root, which nothing but the root itself is signed by
	Foreign bool
}

// Chip is the identifier of the chip.
var Chip = [64]byte{1: 0xc0, 63: 0xde}

// Versions of firmware and microcode of the chip: boot loader 3, TEE 0, SNP 20, microcode 209.
const Versions = 0xd114_0000_0000_0003

// NewSNP is a report with data that passes every check.
func NewSNP(data [64]byte) *SNP {
	b := make([]byte, snp.Size)
	little := binary.LittleEndian
	little.PutUint32(b, 2)
	little.PutUint64(b[8:], 3<<16) // reserved bit, and SMT
	little.PutUint32(b[0x34:], 1)
	copy(b[0x50:], data[:])
	for i := range 48 {
		b[0x90+i] = byte(i)
	}
	for _, at := range []int{0x38, 0x180, 0x1e0, 0x1f0} {
		little.PutUint64(b[at:], Versions)
	}
	copy(b[0x1a0:], Chip[:])
	crl := []string{"https://kdsintf.amd.com/vcek/v1/Milan/crl"}
	s := &SNP{Report: b, Leaf: certificate(7, amd("SEV-VCEK"), false), Issuer: certificate(8, amd("SEV-Milan"), true),
		Ark: certificate(9, amd("ARK-Milan"), true), List: list()}
	s.Issuer.CRLDistributionPoints, s.Ark.CRLDistributionPoints = crl, crl
	s.Leaf.BasicConstraintsValid, s.Leaf.KeyUsage = false, 0
	for _, c := range []*x509.Certificate{s.Leaf, s.Issuer, s.Ark} {
		c.SignatureAlgorithm = x509.SHA384WithRSAPSS
	}
	s.List.SignatureAlgorithm = x509.SHA384WithRSAPSS
	s.Say("Milan-B0", Versions, Chip[:])
	return s
}

func amd(name string) pkix.Name {
	return pkix.Name{Country: []string{"US"}, Locality: []string{"Santa Clara"}, Province: []string{"CA"},
		Organization: []string{"Advanced Micro Devices"}, OrganizationalUnit: []string{"Engineering"}, CommonName: name}
}

// Say sets what the certificate of the chip says about it.
func (s *SNP) Say(product string, versions uint64, chip []byte) {
	arc := func(n ...int) asn1.ObjectIdentifier {
		return append(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 3704, 1}, n...)
	}
	var v [8]byte
	binary.LittleEndian.PutUint64(v[:], versions)
	s.Leaf.ExtraExtensions = []pkix.Extension{extension(arc(1), 0, ""), extension(arc(2), product, "ia5")}
	for i, id := range [8]int{1, 2, 4, 5, 6, 7, 3, 8} {
		s.Leaf.ExtraExtensions = append(s.Leaf.ExtraExtensions, extension(arc(3, id), int(v[i]), ""))
	}
	s.Leaf.ExtraExtensions = append(s.Leaf.ExtraExtensions, pkix.Extension{Id: arc(4), Value: chip})
}

// rootSNP is the certificate of the untouched root, which is the same for all reports.
var rootSNP = sync.OnceValue(func() *x509.Certificate {
	k, template := keys(), NewSNP([64]byte{}).Ark
	return sign(template, template, k.ark.Public(), k.ark)
})

// Root is the root certificate, of its own in a report that is Foreign.
func (s *SNP) Root() *x509.Certificate {
	if s.Foreign {
		return sign(s.Ark, s.Ark, s.authority().Public(), s.authority())
	}
	return rootSNP()
}

// authority is the key of the root.
func (s *SNP) authority() *rsa.PrivateKey {
	if s.Foreign {
		return keys().foreign
	}
	return keys().ark
}

// Evidence signs everything.
func (s *SNP) Evidence() attestation.Evidence {
	k, root := keys(), s.Root()
	issuer := sign(s.Issuer, root, k.ask.Public(), s.authority())
	leaf := sign(s.Leaf, issuer, k.vcek.Public(), k.ask)
	digest := sha512.Sum384(s.Report[:snp.Signed])
	r, v := must2(ecdsa.Sign(rand.Reader, k.vcek, digest[:]))
	report := append([]byte(nil), s.Report...)
	for i, n := range [][]byte{r.FillBytes(make([]byte, 72)), v.FillBytes(make([]byte, 72))} {
		for j := range n {
			report[snp.Signed+72*i+j] = n[71-j]
		}
	}
	return attestation.Evidence{Quote: report, Certificates: [][]byte{leaf.Raw, issuer.Raw, root.Raw},
		Revocations: [][]byte{must(x509.CreateRevocationList(rand.Reader, s.List, root, s.authority()))}}
}
