package dcap

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/starling-network/starling/protocol/attestation/certs"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// Collateral is what Intel's service says about a processor.
type Collateral struct {
	Signer     *x509.Certificate // of the documents
	Lists      certs.Lists
	TCBInfo    []byte
	QEIdentity []byte
}

// Platform is the kind of the processor of a quote, and the date of its security level.
type Platform struct {
	FMSPC string
	Date  int64
}

// Processor is the kind of the processor of a quote (FMSPC), 12 hexadecimal digits.
func (q *Quote) Processor() (string, error) {
	p, err := readProcessor(q.chain.Leaf)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(p.fmspc), nil
}

// Authority is which of Intel's authorities has certified the processor: platform or processor.
func (q *Quote) Authority() string {
	if strings.Contains(q.chain.Issuer.Subject.CommonName, "Platform") {
		return "platform"
	}
	return "processor"
}

// ReportData are the 64 bytes that the guest or the enclave put into its report.
func (q *Quote) ReportData() [64]byte {
	if q.TDX {
		return q.Guest.ReportData
	}
	return q.Enclave.ReportData
}

// Verify checks a quote at a time, in seconds since 1970. It appends to passed and seen. It does not compare the report
// data with anything.
func (q *Quote) Verify(c Collateral, pinned func(root *x509.Certificate) bool, now int64, passed *check.List,
	seen *[]check.Seen) (Platform, error) {
	if !pinned(q.chain.Root) {
		return Platform{}, check.Fail(check.Root, "%s is not pinned", q.chain.Root.Subject.CommonName)
	}
	passed.Add(check.Root)
	if err := q.chain.Holds(x509.ECDSAWithSHA256, now, passed); err != nil {
		return Platform{}, err
	}
	if q.chain.Leaf.Subject.CommonName != "Intel SGX PCK Certificate" ||
		!strings.HasPrefix(q.chain.Issuer.Subject.CommonName, "Intel SGX PCK P") {
		return Platform{}, check.Fail(check.Chain, "%s by %s is not the key of a processor",
			q.chain.Leaf.Subject.CommonName, q.chain.Issuer.Subject.CommonName)
	}
	if err := c.Lists.Spares(q.chain.Issuer, q.chain.Root, now, passed, seen); err != nil {
		return Platform{}, err
	}
	if err := c.Lists.Spares(q.chain.Leaf, q.chain.Issuer, now, passed, seen); err != nil {
		return Platform{}, err
	}
	if err := q.signatures(passed); err != nil {
		return Platform{}, err
	}
	if err := c.signer(q.chain.Root, now, passed, seen); err != nil {
		return Platform{}, err
	}
	passed.Add(check.CRL, check.Revoked, check.SigningKey)
	if err := q.quotingEnclave(c, now, passed, seen); err != nil {
		return Platform{}, err
	}
	p, err := q.platform(c, now, passed, seen)
	if err != nil {
		return Platform{}, err
	}
	if q.TDX && q.Guest.Attributes[0] != 0 || !q.TDX && q.Enclave.Attributes[0]&2 != 0 {
		return Platform{}, check.Fail(check.Debug, "the attributes of the guest allow to debug it")
	}
	passed.Add(check.Debug)
	if q.TDX {
		if q.Guest.Attributes[3]&migratable != 0 {
			return Platform{}, check.Fail(check.Migration, "the attributes of the guest allow an agent to migrate it")
		}
		if q.Guest.Attributes[3]&stopsWithoutPage == 0 {
			return Platform{}, check.Fail(check.Exceptions,
				"the attributes of the guest lack SEPT_VE_DISABLE: the host may cause exceptions in it")
		}
		passed.Add(check.Migration, check.Exceptions)
	}
	return p, nil
}

// Bits of byte 3 of the attributes of a guest of TDX (Intel TDX Module ABI, ATTRIBUTES).
const (
	// SEPT_VE_DISABLE, bit 28. Without it the host may take a page away at any instruction, and code that the guest runs
	// for the exception sees registers and memory in a state that the host has chosen.
	stopsWithoutPage = 1 << 4
	// MIGRATABLE, bit 29: another guest, whose measurement is not part of ours, may carry it to another machine with its
	// memory.
	migratable = 1 << 5
)

// signatures checks the signatures in a quote, from the key of the processor to the report.
func (q *Quote) signatures(passed *check.List) error {
	if !signed(q.chain.Leaf, q.qeReport, q.qeSigned) {
		return check.Fail(check.QESignature, "the key of the processor did not sign the report of the quoting enclave")
	}
	bound := sha256.Sum256(append(bytes.Clone(q.key), q.qeData...))
	if !bytes.Equal(q.qe.ReportData[:], append(bound[:], make([]byte, 32)...)) {
		return check.Fail(check.KeyBinding, "the report of the quoting enclave is about another key")
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, q.key...))
	if err != nil || !verifies(key, q.signed, q.signature) {
		return check.Fail(check.Signature, "the quote is not signed by its key")
	}
	passed.Add(check.QESignature, check.KeyBinding, check.Signature)
	return nil
}

// signer checks the certificate that signs documents.
func (c Collateral) signer(root *x509.Certificate, now int64, passed *check.List, seen *[]check.Seen) error {
	if c.Signer == nil || c.Signer.Subject.CommonName != "Intel SGX TCB Signing" {
		return check.Fail(check.SigningKey, "the certificate that signs documents is missing")
	}
	if err := certs.Signer(c.Signer, root, x509.ECDSAWithSHA256, now, passed); err != nil {
		return err
	}
	var again []check.Seen // the list is that of the root, which is seen already
	return c.Lists.Spares(c.Signer, root, now, passed, &again)
}

// names are those of an environment in documents.
func (q *Quote) names() (levels, enclave string) {
	if q.TDX {
		return "TDX", "TD_QE"
	}
	return "SGX", "QE"
}

func (q *Quote) quotingEnclave(c Collateral, now int64, passed *check.List, seen *[]check.Seen) error {
	var id identity
	if err := document(c.QEIdentity, "enclaveIdentity", c.Signer, &id, check.QEIdentityDoc); err != nil {
		return err
	}
	tee, name := q.names()
	misc := binary.LittleEndian.AppendUint32(nil, q.qe.Misc)
	switch {
	case id.ID != name || id.Version != 2 || len(id.Levels) > maxLevels:
		return check.Fail(check.QEIdentityDoc, "version %d about %s with %d levels, wanted 2 about %s", id.Version, id.ID,
			len(id.Levels), name)
	case now < int64(id.Issued) || now > int64(id.Next):
		return check.Fail(check.QEIdentityAge, "the description is in force from %d to %d, it is %d", id.Issued, id.Next,
			now)
	case !bytes.Equal(id.Signer, q.qe.Signer[:]) || id.Product != q.qe.Product:
		return check.Fail(check.QEIdentity, "the quoting enclave is product %d of %x", q.qe.Product, q.qe.Signer[:8])
	case !masked(misc, id.MiscMask, id.Misc) || !masked(q.qe.Attributes[:], id.Mask, id.Attributes):
		return check.Fail(check.QEIdentity, "the attributes of the quoting enclave are %x", q.qe.Attributes)
	}
	status := "unknown"
	for _, l := range id.Levels { // the latest first
		if l.TCB.Version <= q.qe.Version {
			status = l.Status
			break
		}
	}
	if status != upToDate {
		return check.Fail(check.QEStatus, "version %d of the quoting enclave is %s", q.qe.Version, status)
	}
	passed.Add(check.QEIdentityDoc, check.QEIdentity, check.QEStatus)
	passed.Between(check.QEIdentityAge, int64(id.Issued), int64(id.Next))
	*seen = append(*seen, check.Seen{Source: "qe/" + tee, Number: id.Number})
	return nil
}

func (q *Quote) platform(c Collateral, now int64, passed *check.List, seen *[]check.Seen) (Platform, error) {
	var p platform
	if err := document(c.TCBInfo, "tcbInfo", c.Signer, &p, check.TCBDoc); err != nil {
		return Platform{}, err
	}
	own, err := readProcessor(q.chain.Leaf)
	if err != nil {
		return Platform{}, err
	}
	tee, _ := q.names()
	switch {
	case p.ID != tee || p.Version != 3 || len(p.Levels) > maxLevels || len(p.Identities) > maxLevels:
		return Platform{}, check.Fail(check.TCBDoc, "version %d about %s with %d levels, wanted 3 about %s", p.Version,
			p.ID, len(p.Levels), tee)
	case now < int64(p.Issued) || now > int64(p.Next):
		return Platform{}, check.Fail(check.TCBAge, "the list is in force from %d to %d, it is %d", p.Issued, p.Next, now)
	case !bytes.Equal(p.FMSPC, own.fmspc) || !bytes.Equal(p.PCE, own.pceID):
		return Platform{}, check.Fail(check.Platform, "the list is for %x, the processor is %x", p.FMSPC, own.fmspc)
	}
	passed.Add(check.PCKExtensions, check.TCBDoc, check.Platform)
	passed.Between(check.TCBAge, int64(p.Issued), int64(p.Next))
	if q.TDX {
		if err := q.Guest.module(&p, passed); err != nil {
			return Platform{}, err
		}
	}
	l := q.level(&p, own)
	switch {
	case l == nil:
		return Platform{}, check.Fail(check.TCBLevel, "the platform is below every level of the list")
	case l.Status != upToDate:
		return Platform{}, check.Fail(check.TCBStatus, "the platform is %s", l.Status)
	}
	passed.Add(check.TCBLevel, check.TCBStatus)
	*seen = append(*seen, check.Seen{Source: "tcb/" + tee, Number: p.Number})
	return Platform{FMSPC: hex.EncodeToString(own.fmspc), Date: int64(l.Date)}, nil
}

// level is the first level of a list, the latest first, that the platform has reached.
func (q *Quote) level(p *platform, own *processor) *level {
	for i, l := range p.Levels {
		from := 0
		if q.TDX && q.Guest.Versions[1] > 0 { // the first two are then of the module, which is checked by itself
			from = 2
		}
		if reached(own.versions[:], l.TCB.SGX, 0) && own.pce >= l.TCB.PCE &&
			(!q.TDX || reached(q.Guest.Versions[:], l.TCB.TDX, from)) {
			return &p.Levels[i]
		}
	}
	return nil
}

func reached(versions []byte, least []component, from int) bool {
	if len(least) != len(versions) {
		return false
	}
	for i := from; i < len(versions); i++ {
		if versions[i] < least[i].Version {
			return false
		}
	}
	return true
}

// module checks the TDX module of a guest.
func (g *Guest) module(p *platform, passed *check.List) error {
	m := &p.Module
	if version := g.Versions[1]; version > 0 {
		m = nil
		for i := range p.Identities {
			if p.Identities[i].ID == fmt.Sprintf("TDX_%02X", version) {
				m = &p.Identities[i]
			}
		}
		if m == nil || len(m.Levels) > maxLevels {
			return check.Fail(check.Module, "version %d of the TDX module is not described", version)
		}
	}
	if !bytes.Equal(m.Signer, g.ModuleSigner[:]) || !masked(g.ModuleAttributes[:], m.Mask, m.Attributes) {
		return check.Fail(check.Module, "the TDX module has the signer %x and the attributes %x", g.ModuleSigner[:8],
			g.ModuleAttributes)
	}
	passed.Add(check.Module)
	if g.Versions[1] == 0 { // its version is one of those of the platform
		return nil
	}
	for _, l := range m.Levels { // the latest first
		if l.TCB.Version > uint16(g.Versions[0]) {
			continue
		}
		if l.Status != upToDate {
			return check.Fail(check.ModuleStatus, "version %d of the TDX module is %s", g.Versions[0], l.Status)
		}
		passed.Add(check.ModuleStatus)
		return nil
	}
	return check.Fail(check.ModuleStatus, "version %d of the TDX module is below every level", g.Versions[0])
}

// Digest is the SHA-384 of the measurements of a guest: MRTD and the four RTMR.
func (g *Guest) Digest() [48]byte {
	b := bytes.Clone(g.Build[:])
	for _, r := range g.Runtime {
		b = append(b, r[:]...)
	}
	return sha512.Sum384(b)
}
