// Package attestation verifies quotes of confidential machines: reports of AMD SEV-SNP, and quotes of Intel TDX and
// SGX, with the collateral of their makers, at a given time, offline, and with the same result on every machine. It has
// the data that binds a quote to a worker, and the time for which it holds.
//
// It has no roots of its own but the defaults of a new network: governance pins them. A quote proves that a key of the
// maker signed it, for a machine with such firmware; it does not prove that the owner of the machine has not taken it
// apart (docs/security.md).
package attestation

import (
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/attestation/certs"
	"github.com/starling-network/starling/protocol/attestation/check"
	"github.com/starling-network/starling/protocol/attestation/dcap"
	"github.com/starling-network/starling/protocol/attestation/snp"
)

// ErrRefused is returned for a quote that does not pass a check. A *check.Failure in it says which.
var ErrRefused = errors.New("attestation: the quote is refused")

// Limits of a quote with its collateral, in bytes and pieces.
const (
	MaxQuote    = 16 << 10
	MaxEvidence = 256 << 10
	MaxPieces   = 8 // certificates, and lists
)

// Rules of attestations, in seconds and blocks.
const (
	MaxAge   = 7 * 24 * 3600 // for which an attestation holds at most
	MaxDelay = 1200          // blocks between the beacon that gives the nonce and the message
)

// Technology names a maker's confidential machines.
type Technology string

// Technologies are part of the format.
const (
	SNP Technology = "sev-snp"
	TDX Technology = "tdx"
	SGX Technology = "sgx"
)

// Root is a root certificate that governance has pinned.
type Root struct {
	Technology Technology   `cbor:"1,keyasint"` // SNP, or TDX, which is for SGX, too
	Digest     canon.Digest `cbor:"2,keyasint"` // SHA-256 of its DER bytes
	// of SNP: least versions of firmware and microcode, for which AMD publishes no collateral; 0: any
	Least uint64 `cbor:"3,keyasint,omitempty"`
}

// Evidence is a quote with its collateral, as a worker submits it.
type Evidence struct {
	Quote        []byte
	Certificates [][]byte // DER: VCEK, ASK and ARK of SNP; of DCAP, that which signs Intel's documents
	Revocations  [][]byte // DER
	TCBInfo      []byte   // of DCAP: JSON with a signature, as Intel's service gives it
	QEIdentity   []byte
}

// Size is the number of bytes.
func (e *Evidence) Size() int {
	n := len(e.Quote) + len(e.TCBInfo) + len(e.QEIdentity)
	for _, list := range [][][]byte{e.Certificates, e.Revocations} {
		for _, b := range list {
			n += len(b)
		}
	}
	return n
}

// Measurement says what runs in a confidential machine, 48 bytes: the measurement of a report of SNP; of TDX the
// SHA-384 of MRTD and the four RTMR; of SGX MRENCLAVE, followed by zeros.
type Measurement struct {
	Technology Technology
	Value      [48]byte
}

// String is the technology and the hexadecimal digits.
func (m Measurement) String() string {
	return string(m.Technology) + ":" + hex.EncodeToString(m.Value[:])
}

// Digest names a measurement in the terms of a job.
func (m Measurement) Digest() canon.Digest {
	return canon.Sum("starling/measurement/1", []byte(m.Technology), m.Value[:])
}

// ParseMeasurement reads the text of a measurement.
func ParseMeasurement(text string) (m Measurement, err error) {
	name, digits, _ := strings.Cut(text, ":")
	m.Technology = Technology(name)
	if !slices.Contains([]Technology{SNP, TDX, SGX}, m.Technology) {
		return m, fmt.Errorf("attestation: %q, wanted %s:, %s: or %s: and %d hexadecimal digits", text, SNP, TDX, SGX,
			2*len(m.Value))
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != len(m.Value) {
		return m, fmt.Errorf("attestation: %d hexadecimal digits after %s:, wanted %d", len(digits), name, 2*len(m.Value))
	}
	m.Value = [48]byte(b)
	return m, nil
}

// Result is what a quote that passed every check shows.
type Result struct {
	Measurement Measurement
	Platform    string // product of the chip, or kind of the processor
	LevelDate   int64  // of DCAP: date of the security level of the platform, in seconds since 1970
	Until       int64  // seconds since 1970 until which it holds
	Passed      check.List
	Seen        []check.Seen
}

// Nonce is what the beacon of a block gives for quotes.
func Nonce(height int64, beacon canon.Digest) canon.Digest {
	return canon.Sum("starling/attestation/nonce/1", binary.LittleEndian.AppendUint64(nil, uint64(height)), beacon[:])
}

// ReportData are the 64 bytes that a worker asks its machine to put into the report: the digest of the nonce, its
// account, and the identity of its transport, the key of its TLS connections.
func ReportData(nonce canon.Digest, account, peer string) (data [64]byte) {
	d := canon.Sum("starling/attestation/report/1", nonce[:], []byte(account), []byte(peer))
	copy(data[:], d[:])
	return data
}

// quote is a parsed quote of any maker.
type quote struct {
	snp  *snp.Report
	dcap *dcap.Quote
}

func read(b []byte) (q quote, err error) {
	if len(b) > MaxQuote {
		return q, check.Fail(check.Size, "a quote of %d bytes, at most %d", len(b), MaxQuote)
	}
	// a report of SNP begins with a version in 32 bits, a quote of DCAP with one in 16 bits and a kind of key, not zero
	if len(b) > 3 && b[2] == 0 && b[3] == 0 {
		q.snp, err = snp.Read(b)
	} else {
		q.dcap, err = dcap.Read(b)
	}
	return q, err
}

// Peek reads what a quote says of itself, without verifying anything: what runs in the machine, and its report data.
func Peek(b []byte) (Measurement, [64]byte, error) {
	q, err := read(b)
	if err != nil {
		return Measurement{}, [64]byte{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return q.measurement(), q.reportData(), nil
}

func (q quote) measurement() Measurement {
	switch {
	case q.snp != nil:
		return Measurement{SNP, q.snp.Measurement}
	case q.dcap.TDX:
		return Measurement{TDX, q.dcap.Guest.Digest()}
	}
	m := Measurement{Technology: SGX}
	copy(m.Value[:], q.dcap.Enclave.Measurement[:])
	return m
}

func (q quote) reportData() [64]byte {
	if q.snp != nil {
		return q.snp.ReportData
	}
	return q.dcap.ReportData()
}

// Verify checks a quote and its collateral at a time, in seconds since 1970, against the pinned roots. want is the
// report data. seen is the highest number of a source of collateral that the network has seen.
func Verify(e *Evidence, roots []Root, want [64]byte, seen func(source string) (int64, error),
	now int64) (*Result, error) {
	r := &Result{}
	err := r.verify(e, roots, want, now)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, s := range r.Seen {
		latest, err := seen(s.Source)
		if err != nil {
			return nil, err
		}
		if s.Number < latest {
			return nil, fmt.Errorf("%w: %w", ErrRefused, check.Fail(check.Replay,
				"%s has the number %d, the network has seen %d", s.Source, s.Number, latest))
		}
	}
	r.Passed.Add(check.Replay)
	r.Until = min(r.Passed.Until(), now+MaxAge)
	return r, nil
}

func (r *Result) verify(e *Evidence, roots []Root, want [64]byte, now int64) error {
	if n := e.Size(); n > MaxEvidence || len(e.Certificates) > MaxPieces || len(e.Revocations) > MaxPieces {
		return check.Fail(check.Size, "%d bytes with %d certificates and %d lists, at most %d with %d of each", n,
			len(e.Certificates), len(e.Revocations), MaxEvidence, MaxPieces)
	}
	q, err := read(e.Quote)
	if err != nil {
		return err
	}
	r.Passed.Add(check.Size, check.Format, check.Version)
	// the cheapest check of all, and the one that a replayed quote fails
	if q.reportData() != want {
		return check.Fail(check.ReportData, "the quote is about another block, worker or transport key")
	}
	r.Passed.Add(check.ReportData)
	r.Measurement = q.measurement()
	most := 2 // that of the root, and that of its authority
	if q.snp != nil {
		most = 1
	}
	// Lists are counted before any is parsed: the sender chooses the bytes of a list that no check reads, and releases of
	// Go differ in which bytes they parse.
	if n := len(e.Revocations); n > most {
		return check.Fail(check.CRL, "%d lists of revoked certificates, wanted %d", n, most)
	}
	lists, err := certs.ReadLists(e.Revocations)
	if err != nil {
		return err
	}
	if q.snp != nil {
		return r.snp(q.snp, e, lists, roots, now)
	}
	return r.dcap(q.dcap, e, lists, roots, now)
}

func (r *Result) snp(report *snp.Report, e *Evidence, lists certs.Lists, roots []Root, now int64) error {
	if len(e.Certificates) != 3 || len(e.TCBInfo)+len(e.QEIdentity) > 0 {
		return check.Fail(check.Chain, "%d certificates, wanted those of the chip (VCEK), its issuer (ASK) and the "+
			"root (ARK)", len(e.Certificates))
	}
	var chain certs.Chain
	for i, into := range []**x509.Certificate{&chain.Leaf, &chain.Issuer, &chain.Root} {
		var err error
		if *into, err = certs.Read(e.Certificates[i]); err != nil {
			return err
		}
	}
	var err error
	r.Platform, err = report.Verify(chain, lists, func(c *x509.Certificate) (snp.TCB, bool) {
		root, ok := pinned(roots, SNP, c)
		return snp.TCB(root.Least), ok
	}, now, &r.Passed, &r.Seen)
	return err
}

func (r *Result) dcap(q *dcap.Quote, e *Evidence, lists certs.Lists, roots []Root, now int64) error {
	if len(e.Certificates) != 1 {
		return check.Fail(check.SigningKey, "%d certificates, wanted that which signs Intel's documents",
			len(e.Certificates))
	}
	signer, err := certs.Read(e.Certificates[0])
	if err != nil {
		return err
	}
	p, err := q.Verify(dcap.Collateral{Signer: signer, Lists: lists, TCBInfo: e.TCBInfo, QEIdentity: e.QEIdentity},
		func(c *x509.Certificate) bool { _, ok := pinned(roots, TDX, c); return ok }, now, &r.Passed, &r.Seen)
	r.Platform, r.LevelDate = p.FMSPC, p.Date
	return err
}

func pinned(roots []Root, of Technology, c *x509.Certificate) (Root, bool) {
	digest := certs.Digest(c)
	i := slices.IndexFunc(roots, func(r Root) bool { return r.Technology == of && r.Digest == digest })
	if i < 0 {
		return Root{}, false
	}
	return roots[i], true
}
