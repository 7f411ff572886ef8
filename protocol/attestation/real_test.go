package attestation_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"net/url"
	"testing"
	"time"

	sevdata "github.com/google/go-sev-guest/verify/testdata"
	sevtrust "github.com/google/go-sev-guest/verify/trust"
	tdxtesting "github.com/google/go-tdx-guest/testing"
	tdxdata "github.com/google/go-tdx-guest/testing/testdata"
	tdxverify "github.com/google/go-tdx-guest/verify"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// blocks are the certificates of a PEM file.
func blocks(text []byte) (ders [][]byte) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		ders = append(ders, block.Bytes)
	}
	return ders
}

// chainOf are the certificates in the header of an answer of Intel's service.
func chainOf(t *testing.T, header map[string][]string) [][]byte {
	t.Helper()
	for _, values := range header {
		text, err := url.QueryUnescape(values[0])
		if err != nil {
			t.Fatal(err)
		}
		return blocks([]byte(text))
	}
	return nil
}

// makers are the digests of the roots that the libraries of Google trust.
func makers(t *testing.T) map[canon.Digest]attestation.Technology {
	t.Helper()
	out := map[canon.Digest]attestation.Technology{}
	for _, text := range [][]byte{sevtrust.AskArkMilanVcekBytes, sevtrust.AskArkGenoaVcekBytes} {
		out[sha256.Sum256(blocks(text)[1])] = attestation.SNP
	}
	// by its own root
	if err := tdxverify.RawTdxQuote(tdxdata.RawQuote, &tdxverify.Options{Now: times(real)}); err != nil {
		t.Fatal(err)
	}
	out[sha256.Sum256(chainOf(t, tdxtesting.TcbInfoHeader)[1])] = attestation.TDX
	return out
}

// real is when the collateral of the real quote was in force.
var real = time.Date(2023, 7, 1, 1, 0, 0, 0, time.UTC)

// A real report of a Milan passes each check that its files allow, with the pinned roots of a new network: of
// the library's data only the list of revoked certificates is missing.
func TestRealReport(t *testing.T) {
	milan := blocks(sevtrust.AskArkMilanVcekBytes)
	e := attestation.Evidence{Quote: sevdata.AttestationBytes,
		Certificates: [][]byte{sevdata.VcekBytes, milan[0], milan[1]}}
	if b := blocks(sevdata.VcekBytes); len(b) > 0 {
		e.Certificates[0] = b[0]
	}
	refusedAt(t, &e, real, check.CRL)
	e.Quote = flip(e.Quote, 0x1a0)
	refusedAt(t, &e, real, check.CRL)
	e.Certificates[0] = flip(e.Certificates[0], 300)
	refusedAt(t, &e, real, check.Chain)
}

func refusedAt(t *testing.T, e *attestation.Evidence, now time.Time, code check.Code) {
	t.Helper()
	_, want, err := attestation.Peek(e.Quote)
	if err != nil {
		t.Fatal(err)
	}
	_, err = attestation.Verify(e, attestation.Roots(), want, func(string) (int64, error) { return 0, nil }, now.Unix())
	wants(t, err, code)
}

// A real quote of TDX passes up to its security level: the library's list has none that its platform reaches. Its
// signatures are those of the pinned root.
func TestRealQuote(t *testing.T) {
	quote, _, _ := bytes.Cut(tdxdata.RawQuote, []byte("\nextra bytes"))
	e := attestation.Evidence{Quote: quote, TCBInfo: tdxdata.TcbInfoBody, QEIdentity: tdxdata.QeIdentityBody,
		Certificates: chainOf(t, tdxtesting.TcbInfoHeader)[:1],
		Revocations:  [][]byte{tdxdata.RootCrlBody, tdxdata.PckCrlBody}}
	refusedAt(t, &e, real, check.TCBLevel)
	refusedAt(t, &e, real.AddDate(1, 0, 0), check.CRLDate)
	refusedAt(t, &e, real.AddDate(20, 0, 0), check.Validity)
	err := tdxverify.RawTdxQuote(tdxdata.RawQuote, &tdxverify.Options{GetCollateral: true, CheckRevocations: true,
		Getter: tdxtesting.TestGetter, Now: times(real)})
	if err == nil {
		t.Error("the library accepts it")
	}
	t.Log("the library:", err)
	e.Quote = flip(e.Quote, 48+136)
	refusedAt(t, &e, real, check.Signature)
}
