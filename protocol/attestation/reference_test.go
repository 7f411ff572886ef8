package attestation_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"
	"time"

	sevabi "github.com/google/go-sev-guest/abi"
	"github.com/google/go-sev-guest/kds"
	sevpb "github.com/google/go-sev-guest/proto/sevsnp"
	sevvalidate "github.com/google/go-sev-guest/validate"
	sevverify "github.com/google/go-sev-guest/verify"
	sevtrust "github.com/google/go-sev-guest/verify/trust"
	tdxabi "github.com/google/go-tdx-guest/abi"
	tdxpb "github.com/google/go-tdx-guest/proto/tdx"
	tdxvalidate "github.com/google/go-tdx-guest/validate"
	tdxverify "github.com/google/go-tdx-guest/verify"

	"github.com/starling-network/starling/internal/teetest"
	"github.com/starling-network/starling/protocol/attestation"
)

// reference verifies a vector with the libraries of Google, at the time of the vectors and without a network.
func reference(v vector, e attestation.Evidence) error {
	roots := teetest.Roots()
	if v.roots != nil {
		roots = v.roots(roots)
	}
	if strings.HasPrefix(v.name, "snp") {
		return referenceSNP(e, roots)
	}
	return referenceTDX(e, roots)
}

// served answers requests for collateral.
type served map[string]struct {
	header map[string][]string
	body   []byte
}

// Get implements the getter of go-tdx-guest.
func (s served) Get(address string) (map[string][]string, []byte, error) {
	for part, a := range s {
		if strings.Contains(address, part) {
			return a.header, a.body, nil
		}
	}
	return nil, nil, fmt.Errorf("nothing at %s", address)
}

// bodies is the getter of go-sev-guest over the same answers.
type bodies struct{ served }

// Get implements it.
func (b bodies) Get(address string) ([]byte, error) {
	_, body, err := b.served.Get(address)
	return body, err
}

func answer(header string, chain, body []byte) (a struct {
	header map[string][]string
	body   []byte
}) {
	a.header, a.body = map[string][]string{header: {url.QueryEscape(string(chain))}}, body
	return a
}

func referenceSNP(e attestation.Evidence, roots []attestation.Root) error {
	report, err := sevabi.ReportToProto(e.Quote)
	if err != nil {
		return err
	}
	if len(e.Certificates) < 3 || len(e.Revocations) == 0 {
		return fmt.Errorf("collateral is missing")
	}
	ask, err := x509.ParseCertificate(e.Certificates[1])
	if err != nil {
		return err
	}
	pinned := teetest.NewSNP(data).Root()
	trusted := map[string][]*sevtrust.AMDRootCerts{}
	if len(roots) > 0 && roots[0].Technology == attestation.SNP {
		trusted["Milan"] = []*sevtrust.AMDRootCerts{{ProductLine: "Milan",
			ProductCerts: &sevtrust.ProductCerts{Ask: ask, Ark: pinned}}}
	}
	least := uint64(0)
	if len(roots) > 0 {
		least = roots[0].Least
	}
	full := &sevpb.Attestation{Report: report, CertificateChain: &sevpb.CertificateChain{VcekCert: e.Certificates[0],
		AskCert: e.Certificates[1], ArkCert: e.Certificates[2]}}
	err = sevverify.SnpAttestation(full, &sevverify.Options{CheckRevocations: true, DisableCertFetching: true,
		Getter: bodies{served{"/crl": answer("", nil, e.Revocations[0])}}, Now: teetest.Now, TrustedRoots: trusted})
	if err != nil {
		return err
	}
	level := 0
	return sevvalidate.SnpAttestation(full, &sevvalidate.Options{GuestPolicy: sevabi.SnpPolicy{SMT: true},
		ReportData: data[:], VMPL: &level, MinimumTCB: kds.DecomposeTCBVersion(kds.TCBVersion(least))})
}

// times is one time for everything.
func times(now time.Time) *tdxverify.TimeSet {
	return &tdxverify.TimeSet{PckCertChain: now, TcbInfo: now, QeIdentity: now, PckCrl: now, RootCaCrl: now}
}

func referenceTDX(e attestation.Evidence, roots []attestation.Root) error {
	any, err := tdxabi.QuoteToProto(e.Quote)
	if err != nil {
		return err
	}
	quote, ok := any.(*tdxpb.QuoteV4)
	if !ok {
		return fmt.Errorf("a quote %T", any)
	}
	if len(e.Certificates) == 0 || len(e.Revocations) == 0 {
		return fmt.Errorf("collateral is missing")
	}
	pinned := teetest.NewDCAP(data, true).Root()
	chain := func(first []byte) []byte {
		b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: first})
		return append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pinned.Raw})...)
	}
	pck := quote.GetSignedData().GetCertificationData().GetQeReportCertificationData().GetPckCertificateChainData()
	var issuer []byte
	for rest, i := pck.GetPckCertChain(), 0; i < 2; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block != nil {
			issuer = block.Bytes
		}
	}
	lists := map[bool][]byte{}
	for _, der := range e.Revocations {
		l, err := x509.ParseRevocationList(der)
		if err != nil {
			return err
		}
		lists[bytes.Equal(l.RawIssuer, pinned.RawSubject)] = der
	}
	pool := x509.NewCertPool()
	if len(roots) > 1 {
		pool.AddCert(pinned)
	}
	err = tdxverify.TdxQuote(quote, &tdxverify.Options{CheckRevocations: true, GetCollateral: true,
		Now: times(teetest.Now), TrustedRoots: pool, Getter: served{
			"/tcb?":       answer("Tcb-Info-Issuer-Chain", chain(e.Certificates[0]), e.TCBInfo),
			"qe/identity": answer("Sgx-Enclave-Identity-Issuer-Chain", chain(e.Certificates[0]), e.QEIdentity),
			"pckcrl":      answer("Sgx-Pck-Crl-Issuer-Chain", chain(issuer), lists[false]),
			"RootCA.der":  answer("", nil, lists[true])}})
	if err != nil {
		return err
	}
	vendor := []byte{0x93, 0x9a, 0x72, 0x33, 0xf7, 0x9c, 0x4c, 0xa9, 0x94, 0x0a, 0x0d, 0xb3, 0x95, 0x7f, 0x06, 0x07}
	return tdxvalidate.TdxQuote(quote, &tdxvalidate.Options{HeaderOptions: tdxvalidate.HeaderOptions{QeVendorID: vendor},
		TdQuoteBodyOptions: tdxvalidate.TdQuoteBodyOptions{ReportData: data[:], TdAttributes: []byte{3: 0x10, 7: 0}}})
}
