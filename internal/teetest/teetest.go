// Package teetest makes quotes of confidential machines that no maker has signed, with roots of its own, for tests
// alone: no program imports it (internal/lint), and no network pins its roots.
package teetest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"sync"
	"time"

	"github.com/starling-network/starling/protocol/attestation"
)

// Now is when the quotes are made. Certificates hold for ten years around it, lists and documents for a month.
var Now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Fixed sizes of fields.
const day = 24 * time.Hour

// keys are made once: those of RSA take long.
var keys = sync.OnceValue(func() (k struct {
	ark, ask, foreign                      *rsa.PrivateKey
	vcek                                   *ecdsa.PrivateKey
	root, platform, pck, signer, attesting *ecdsa.PrivateKey
}) {
	for _, into := range []**rsa.PrivateKey{&k.ark, &k.ask, &k.foreign} {
		*into = must(rsa.GenerateKey(rand.Reader, 2048))
	}
	k.vcek = must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	for _, into := range []**ecdsa.PrivateKey{&k.root, &k.platform, &k.pck, &k.signer, &k.attesting} {
		*into = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	}
	return k
})

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// certificate is a template that holds.
func certificate(serial int64, subject pkix.Name, authority bool) *x509.Certificate {
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: subject, NotBefore: Now.AddDate(-5, 0, 0),
		NotAfter: Now.AddDate(5, 0, 0), BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature}
	if authority {
		c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	}
	return c
}

// list is a template of a list of revoked certificates that holds, and has none.
func list() *x509.RevocationList {
	return &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: Now.Add(-day), NextUpdate: Now.Add(29 * day)}
}

// Revoke adds a serial number to a list.
func Revoke(l *x509.RevocationList, serial int64) {
	l.RevokedCertificateEntries = append(l.RevokedCertificateEntries,
		x509.RevocationListEntry{SerialNumber: big.NewInt(serial), RevocationTime: Now.Add(-day)})
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, by crypto.Signer) *x509.Certificate {
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, parent, public, by))))
}

// raw is a signature of 64 bytes on P-256.
func raw(key *ecdsa.PrivateKey, message []byte) []byte {
	digest := sha256.Sum256(message)
	r, s := must2(ecdsa.Sign(rand.Reader, key, digest[:]))
	b := make([]byte, 64)
	r.FillBytes(b[:32])
	s.FillBytes(b[32:])
	return b
}

func must2(r, s *big.Int, err error) (*big.Int, *big.Int) {
	if err != nil {
		panic(err)
	}
	return r, s
}

func extension(id asn1.ObjectIdentifier, value any, params string) pkix.Extension {
	return pkix.Extension{Id: id, Value: must(asn1.MarshalWithParams(value, params))}
}

// Roots pins the roots of the quotes.
func Roots() []attestation.Root {
	return []attestation.Root{
		{Technology: attestation.SNP, Digest: sha256.Sum256(NewSNP([64]byte{}).Root().Raw)},
		{Technology: attestation.TDX, Digest: sha256.Sum256(NewDCAP([64]byte{}, true).Root().Raw)},
	}
}
