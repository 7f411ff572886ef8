// Package snp reads attestation reports of AMD SEV-SNP, and verifies them against the certificates of their chip: AMD's
// specification 56860, table 23, and 57230 for the certificates. Reports of the products Milan and Genoa, by the key of
// the chip (VCEK), are known; others are refused.
package snp

import (
	"encoding/binary"

	"github.com/starling-network/starling/protocol/attestation/check"
)

// Size is the number of bytes of a report, of which the signature covers the first Signed.
const (
	Size   = 0x4a0
	Signed = 0x2a0
)

// TCB is a set of versions of firmware and microcode, one byte each, with the version of the boot loader in the lowest.
type TCB uint64

// AtLeast reports whether each version is at least that of another set.
func (t TCB) AtLeast(least TCB) bool {
	for shift := 0; shift < 64; shift += 8 {
		if byte(t>>shift) < byte(least>>shift) {
			return false
		}
	}
	return true
}

// Report is what a report says.
type Report struct {
	Version     uint32
	Policy      uint64
	VMPL        uint32
	Algorithm   uint32
	Signer      uint32 // flags, with the key that signed
	ReportData  [64]byte
	Measurement [48]byte
	Reported    TCB
	Chip        [64]byte
	r, s        [72]byte // little-endian
	signed      []byte
}

// Bits of the policy of a guest.
const (
	policyMigration = 1 << 18
	policyDebug     = 1 << 19
)

// vcek is the number of the key of the chip among the keys that may sign.
const vcek = 0

func (r *Report) key() uint32 { return r.Signer >> 2 & 7 }

// Read parses a report.
func Read(b []byte) (*Report, error) {
	if len(b) != Size {
		return nil, check.Fail(check.Format, "a report of %d bytes, wanted %d", len(b), Size)
	}
	little := binary.LittleEndian
	r := &Report{
		Version: little.Uint32(b), Policy: little.Uint64(b[8:]), VMPL: little.Uint32(b[0x30:]),
		Algorithm: little.Uint32(b[0x34:]), Signer: little.Uint32(b[0x48:]), Reported: TCB(little.Uint64(b[0x180:])),
		ReportData: [64]byte(b[0x50:]), Measurement: [48]byte(b[0x90:]), Chip: [64]byte(b[0x1a0:]),
		r: [72]byte(b[Signed:]), s: [72]byte(b[Signed+72:]), signed: b[:Signed],
	}
	for _, zero := range b[Signed+144:] {
		if zero != 0 {
			return nil, check.Fail(check.Format, "bytes after the signature are not zero")
		}
	}
	switch {
	case r.Version != 2 && r.Version != 3 && r.Version != 5:
		return nil, check.Fail(check.Version, "version %d of a report, known are 2, 3 and 5", r.Version)
	case r.Algorithm != 1:
		return nil, check.Fail(check.Version, "algorithm %d of a signature, known is 1, ECDSA on P-384", r.Algorithm)
	case r.key() != vcek:
		return nil, check.Fail(check.Version, "key %d has signed the report, known is %d, that of the chip", r.key(), vcek)
	}
	return r, nil
}
