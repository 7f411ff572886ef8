// Package certs checks chains of three certificates, and the lists of revoked ones, at a given time: it reads no clock,
// no network and no root of the operating system.
package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// Limits of one certificate and one list, in bytes, and of the entries of a list.
const (
	MaxCertificate = 8 << 10
	MaxRevocations = 96 << 10
	maxRevoked     = 4096
)

// Chain is a certificate, its issuer, and the root.
type Chain struct{ Leaf, Issuer, Root *x509.Certificate }

// Read parses the DER bytes of one certificate.
func Read(der []byte) (*x509.Certificate, error) {
	if len(der) > MaxCertificate {
		return nil, check.Fail(check.Size, "a certificate of %d bytes, at most %d", len(der), MaxCertificate)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, check.Fail(check.Chain, "a certificate: %v", err)
	}
	return c, nil
}

// Digest names a root: the SHA-256 of its DER bytes, as `openssl x509 -fingerprint -sha256` prints it.
func Digest(c *x509.Certificate) canon.Digest { return sha256.Sum256(c.Raw) }

// Holds checks that the certificates are signed, one by the next and the root by itself, with an algorithm, and that
// they are in force. It does not check that the root is a known one.
func (c Chain) Holds(algorithm x509.SignatureAlgorithm, now int64, passed *check.List) error {
	for _, link := range [][2]*x509.Certificate{{c.Root, c.Root}, {c.Issuer, c.Root}, {c.Leaf, c.Issuer}} {
		if err := issued(link[0], link[1], algorithm); err != nil {
			return err
		}
	}
	passed.Add(check.Chain)
	for _, cert := range []*x509.Certificate{c.Root, c.Issuer, c.Leaf} {
		if err := inForce(cert, now, passed); err != nil {
			return err
		}
	}
	return nil
}

// Signer checks a certificate that the root itself has signed, and that signs no certificates.
func Signer(cert, root *x509.Certificate, algorithm x509.SignatureAlgorithm, now int64, passed *check.List) error {
	if err := issued(cert, root, algorithm); err != nil {
		return err
	}
	return inForce(cert, now, passed)
}

func issued(cert, by *x509.Certificate, algorithm x509.SignatureAlgorithm) error {
	switch {
	case cert.Version != 3 || cert.SignatureAlgorithm != algorithm:
		return check.Fail(check.Chain, "%s is signed by %s, wanted %s", cert.Subject.CommonName, cert.SignatureAlgorithm,
			algorithm)
	case !bytes.Equal(cert.RawIssuer, by.RawSubject):
		return check.Fail(check.Chain, "%s was issued by %s, and not by %s", cert.Subject.CommonName,
			cert.Issuer.CommonName, by.Subject.CommonName)
	case len(cert.UnhandledCriticalExtensions) > 0:
		return check.Fail(check.Chain, "%s has a critical extension %s that is not known", cert.Subject.CommonName,
			cert.UnhandledCriticalExtensions[0])
	}
	if err := cert.CheckSignatureFrom(by); err != nil {
		return check.Fail(check.Chain, "%s: %v", cert.Subject.CommonName, err)
	}
	return nil
}

func inForce(cert *x509.Certificate, now int64, passed *check.List) error {
	from, until := max(0, cert.NotBefore.Unix()), cert.NotAfter.Unix()
	if now < from || now > until {
		return check.Fail(check.Validity, "%s is in force from %d to %d, it is %d", cert.Subject.CommonName, from, until,
			now)
	}
	passed.Between(check.Validity, from, until)
	return nil
}

// Lists are lists of revoked certificates.
type Lists []*x509.RevocationList

// ReadLists parses the DER bytes of lists.
func ReadLists(ders [][]byte) (lists Lists, err error) {
	for _, der := range ders {
		if len(der) > MaxRevocations {
			return nil, check.Fail(check.Size, "a list of revoked certificates of %d bytes, at most %d", len(der),
				MaxRevocations)
		}
		l, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, check.Fail(check.CRL, "a list of revoked certificates: %v", err)
		}
		if len(l.RevokedCertificateEntries) > maxRevoked {
			return nil, check.Fail(check.Size, "%d revoked certificates, at most %d", len(l.RevokedCertificateEntries),
				maxRevoked)
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// Spares checks that the list of an issuer is its own and in force, and does not have a certificate. seen gets the date
// of the list.
func (l Lists) Spares(cert, issuer *x509.Certificate, now int64, passed *check.List, seen *[]check.Seen) error {
	for _, list := range l {
		if !bytes.Equal(list.RawIssuer, issuer.RawSubject) {
			continue
		}
		if list.SignatureAlgorithm != issuer.SignatureAlgorithm {
			return check.Fail(check.CRL, "the list of %s is signed by %s", issuer.Subject.CommonName,
				list.SignatureAlgorithm)
		}
		if err := list.CheckSignatureFrom(issuer); err != nil {
			return check.Fail(check.CRL, "the list of %s: %v", issuer.Subject.CommonName, err)
		}
		from, until := list.ThisUpdate.Unix(), list.NextUpdate.Unix()
		if now < from || now > until {
			return check.Fail(check.CRLDate, "the list of %s is in force from %d to %d, it is %d",
				issuer.Subject.CommonName, from, until, now)
		}
		for _, r := range list.RevokedCertificateEntries {
			if r.SerialNumber.Cmp(cert.SerialNumber) == 0 {
				return check.Fail(check.Revoked, "%s has revoked %s", issuer.Subject.CommonName, cert.Subject.CommonName)
			}
		}
		passed.Between(check.CRLDate, from, until)
		key := sha256.Sum256(issuer.RawSubjectPublicKeyInfo)
		*seen = append(*seen, check.Seen{Source: "crl/" + canon.Digest(key).String(), Number: from})
		return nil
	}
	return check.Fail(check.CRL, "the list of %s is missing", issuer.Subject.CommonName)
}

// Whole reads one value of ASN.1 with nothing after it, with parameters as those of asn1.UnmarshalWithParams.
func Whole(b []byte, into any, params string) error {
	rest, err := asn1.UnmarshalWithParams(b, into, params)
	if err == nil && len(rest) > 0 {
		err = asn1.SyntaxError{Msg: "trailing bytes"}
	}
	return err
}
