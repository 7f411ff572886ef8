package confidential

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/protocol/attestation"
)

// File is a file of collateral, as the service of a maker gives it.
type File struct {
	Name string
	Text []byte
}

// Evidence puts a quote and files of collateral together. A file is a certificate or several, or a list of revoked
// ones, in DER or PEM; an answer of Intel's service; or all collateral in the JSON form of dcap-qvl.
func Evidence(quote []byte, files []File) (attestation.Evidence, error) {
	c := collected{lists: map[string][]byte{}}
	for _, f := range files {
		if err := c.add(f.Text); err != nil {
			return attestation.Evidence{}, fmt.Errorf("%w: %s: %w", ErrCollateral, f.Name, err)
		}
	}
	m, _, err := attestation.Peek(quote)
	if err != nil {
		return attestation.Evidence{}, err
	}
	e := attestation.Evidence{Quote: quote, TCBInfo: c.tcbInfo, QEIdentity: c.qeIdentity}
	for _, key := range sorted(c.lists) {
		e.Revocations = append(e.Revocations, c.lists[key])
	}
	e.Certificates = c.chain(m.Technology)
	return e, nil
}

func sorted(m map[string][]byte) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// collected is what files held.
type collected struct {
	certificates        []*x509.Certificate
	lists               map[string][]byte // by issuer
	tcbInfo, qeIdentity []byte
}

func (c *collected) add(text []byte) error {
	trimmed := bytes.TrimSpace(text)
	switch {
	case bytes.HasPrefix(trimmed, []byte("{")):
		return c.json(trimmed)
	case bytes.HasPrefix(trimmed, []byte("-----BEGIN")):
		for block, rest := pem.Decode(trimmed); block != nil; block, rest = pem.Decode(rest) {
			if err := c.der(block.Bytes); err != nil {
				return err
			}
		}
		return nil
	}
	return c.der(text)
}

func (c *collected) der(b []byte) error {
	cert, err := x509.ParseCertificate(b)
	if err == nil {
		if !slices.ContainsFunc(c.certificates, cert.Equal) {
			c.certificates = append(c.certificates, cert)
		}
		return nil
	}
	list, wrong := x509.ParseRevocationList(b)
	if wrong != nil {
		return fmt.Errorf("neither a certificate (%w) nor a list of revoked ones (%w)", err, wrong)
	}
	c.lists[list.Issuer.String()] = list.Raw
	return nil
}

// service is an answer of Intel's service, or all of them as dcap-qvl writes them.
type service struct {
	TCBInfo         json.RawMessage `json:"tcbInfo"`
	EnclaveIdentity json.RawMessage `json:"enclaveIdentity"`

	PCKChain  string `json:"pck_crl_issuer_chain"`
	PCKList   string `json:"pck_crl"`
	RootList  string `json:"root_ca_crl"`
	TCBChain  string `json:"tcb_info_issuer_chain"`
	TCB       string `json:"tcb_info"`
	TCBSigned string `json:"tcb_info_signature"`
	QEChain   string `json:"qe_identity_issuer_chain"`
	QE        string `json:"qe_identity"`
	QESigned  string `json:"qe_identity_signature"`
}

func (c *collected) json(text []byte) error {
	var s service
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	switch {
	case len(s.TCBInfo) > 0:
		c.tcbInfo = text
	case len(s.EnclaveIdentity) > 0:
		c.qeIdentity = text
	case s.TCB != "" && s.QE != "":
		c.tcbInfo = fmt.Appendf(nil, `{"tcbInfo":%s,"signature":"%s"}`, s.TCB, s.TCBSigned)
		c.qeIdentity = fmt.Appendf(nil, `{"enclaveIdentity":%s,"signature":"%s"}`, s.QE, s.QESigned)
		for _, chain := range []string{s.PCKChain, s.TCBChain, s.QEChain} {
			if err := c.add([]byte(chain)); err != nil {
				return err
			}
		}
		for _, digits := range []string{s.PCKList, s.RootList} {
			b, err := hex.DecodeString(digits)
			if err != nil {
				return err
			}
			if err := c.der(b); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("JSON without tcbInfo, enclaveIdentity or tcb_info")
	}
	return nil
}

// chain are the certificates that a quote needs, in order: those that its files have.
func (c *collected) chain(t attestation.Technology) (out [][]byte) {
	names := []string{"Intel SGX TCB Signing"}
	if t == attestation.SNP {
		names = []string{"SEV-VCEK", "SEV-", "ARK-"}
	}
	for _, name := range names {
		i := slices.IndexFunc(c.certificates, func(cert *x509.Certificate) bool {
			cn := cert.Subject.CommonName
			return cn == name || strings.HasPrefix(cn, name) && strings.HasSuffix(name, "-") && cn != "SEV-VCEK"
		})
		if i >= 0 {
			out = append(out, c.certificates[i].Raw)
		}
	}
	return out
}
