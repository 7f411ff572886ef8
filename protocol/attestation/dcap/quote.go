// Package dcap reads quotes of Intel's Data Center Attestation Primitives, of TDX (versions 4 and 5) and SGX (version
// 3), and verifies them against the collateral that Intel's provisioning service gives. Intel's "TDX DCAP Quoting
// Library API" has the layouts, and the "API documentation" of version 4 of the service the collateral.
package dcap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"

	"github.com/starling-network/starling/protocol/attestation/certs"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// Sizes in bytes.
const (
	headerSize  = 48
	enclaveSize = 384 // report of an enclave
	tdSize      = 584 // report of a guest, of TDX 1.0
	td15Size    = 648 // of TDX 1.5
	pointSize   = 64  // a point of P-256, or a signature
)

// Kinds of a trusted execution environment, as a quote has them.
const (
	teeSGX = 0
	teeTDX = 0x81
)

// intel is the vendor of the quoting enclave.
var intel, _ = hex.DecodeString("939a7233f79c4ca9940a0db3957f0607")

// Quote is what a quote says, with its signature.
type Quote struct {
	TDX     bool
	Enclave Enclave // of SGX
	Guest   Guest   // of TDX

	signed    []byte
	signature []byte
	key       []byte // that signed
	qe        Enclave
	qeReport  []byte
	qeSigned  []byte // signature of qeReport
	qeData    []byte // with key, in the report data of qe
	chain     certs.Chain
}

// Enclave is a report of an enclave of SGX.
type Enclave struct {
	CPU         [16]byte // versions
	Misc        uint32
	Attributes  [16]byte
	Measurement [32]byte // MRENCLAVE
	Signer      [32]byte // MRSIGNER
	Product     uint16
	Version     uint16
	ReportData  [64]byte
}

// Guest is a report of a guest of TDX.
type Guest struct {
	Versions         [16]byte // of the module and its loader
	ModuleSigner     [48]byte
	ModuleAttributes [8]byte
	Attributes       [8]byte
	Build            [48]byte    // MRTD: memory of the guest before it started
	Runtime          [4][48]byte // RTMR: digests of the software that it started afterwards
	ReportData       [64]byte
}

// reader takes bytes from the front; it is empty after the first that is missing.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, min(max(n, 0), td15Size))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u16() int { return int(binary.LittleEndian.Uint16(r.take(2))) }

// u32 reads a size. One that does not fit the rest of the bytes is cut to one byte more than that.
func (r *reader) u32() int {
	return int(min(binary.LittleEndian.Uint32(r.take(4)), uint32(len(r.b))+1))
}

// Read parses a quote.
func Read(b []byte) (*Quote, error) {
	r := &reader{b: b}
	header := r.take(headerSize)
	if r.bad {
		return nil, check.Fail(check.Format, "a quote of %d bytes", len(b))
	}
	version, key := binary.LittleEndian.Uint16(header), binary.LittleEndian.Uint16(header[2:])
	tee := binary.LittleEndian.Uint32(header[4:])
	switch {
	case key != 2:
		return nil, check.Fail(check.Version, "kind %d of key, known is 2, ECDSA on P-256", key)
	case version == 3: // which has other fields in the place of the environment
		tee = teeSGX
	case version != 4 && version != 5 || tee != teeTDX && tee != teeSGX:
		return nil, check.Fail(check.Version, "version %d of a quote of environment %#x", version, tee)
	}
	if !bytes.Equal(header[12:28], intel) {
		return nil, check.Fail(check.Version, "the quoting enclave is of vendor %x", header[12:28])
	}
	q := &Quote{TDX: tee == teeTDX}
	size := map[bool]int{false: enclaveSize, true: tdSize}[q.TDX]
	if version == 5 {
		kind, given := r.u16(), r.u32()
		switch {
		case kind == 3 && q.TDX:
			size = td15Size
		case kind != map[bool]int{false: 1, true: 2}[q.TDX]:
			return nil, check.Fail(check.Version, "kind %d of a report", kind)
		}
		if given != size {
			return nil, check.Fail(check.Format, "a report of %d bytes, wanted %d", given, size)
		}
	}
	body := r.take(size)
	q.signed = b[:len(b)-len(r.b)]
	if q.TDX {
		q.Guest = guest(body)
	} else {
		q.Enclave = enclave(body)
	}
	return q, q.sign(r, version)
}

// sign reads the signature of a quote.
func (q *Quote) sign(r *reader, version uint16) error {
	rest := &reader{b: r.take(r.u32()), bad: r.bad}
	for _, b := range r.b { // some hosts fill up the buffer
		if b != 0 {
			return check.Fail(check.Format, "bytes after the signature are not zero")
		}
	}
	q.signature, q.key = rest.take(pointSize), rest.take(pointSize)
	if version > 3 {
		if kind := rest.u16(); kind != 6 && !rest.bad {
			return check.Fail(check.Version, "kind %d of certification, known is 6", kind)
		}
		rest = &reader{b: rest.take(rest.u32()), bad: rest.bad || len(rest.b) > 0}
	}
	q.qeReport, q.qeSigned = rest.take(enclaveSize), rest.take(pointSize)
	q.qe = enclave(q.qeReport)
	q.qeData = rest.take(rest.u16())
	if kind := rest.u16(); kind != 5 && !rest.bad {
		return check.Fail(check.Version, "kind %d of certification, known is 5, a chain of certificates", kind)
	}
	chain := rest.take(rest.u32())
	if rest.bad || len(rest.b) > 0 {
		return check.Fail(check.Format, "a signature of other size than it says")
	}
	const links = 3
	ders, left := certificates(chain, links)
	if len(ders) != links || len(bytes.Trim(left, "\x00\n\r ")) > 0 {
		return check.Fail(check.Format, "a chain of %d certificates with %d bytes after it, wanted %d", len(ders),
			len(left), links)
	}
	var err error
	if q.chain.Leaf, err = certs.Read(ders[0]); err != nil {
		return err
	}
	if q.chain.Issuer, err = certs.Read(ders[1]); err != nil {
		return err
	}
	q.chain.Root, err = certs.Read(ders[2])
	return err
}

// certificates reads the first blocks of PEM of a text, most of them at most, and returns what is left of it. The chain
// is not signed as a whole, so its sender may write it in other ways: only the form that package pem writes is read,
// because decoders of other releases of Go take other forms, and validators must agree.
func certificates(text []byte, most int) (ders [][]byte, left []byte) {
	for len(ders) < most {
		text = bytes.TrimLeft(text, "\n")
		block, _ := pem.Decode(text)
		if block == nil {
			return ders, text
		}
		form := bytes.TrimSuffix(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), []byte("\n"))
		if !bytes.HasPrefix(text, form) {
			return ders, text
		}
		ders, text = append(ders, block.Bytes), text[len(form):]
	}
	return ders, text
}

func enclave(b []byte) Enclave {
	little := binary.LittleEndian
	return Enclave{CPU: [16]byte(b), Misc: little.Uint32(b[16:]), Attributes: [16]byte(b[48:]),
		Measurement: [32]byte(b[64:]), Signer: [32]byte(b[128:]), Product: little.Uint16(b[256:]),
		Version: little.Uint16(b[258:]), ReportData: [64]byte(b[320:])}
}

func guest(b []byte) (g Guest) {
	g = Guest{Versions: [16]byte(b), ModuleSigner: [48]byte(b[64:]), ModuleAttributes: [8]byte(b[112:]),
		Attributes: [8]byte(b[120:]), Build: [48]byte(b[136:]), ReportData: [64]byte(b[520:])}
	for i := range g.Runtime {
		g.Runtime[i] = [48]byte(b[328+48*i:])
	}
	return g
}
