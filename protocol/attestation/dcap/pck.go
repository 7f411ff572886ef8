package dcap

import (
	"crypto/x509"
	"encoding/asn1"

	"github.com/starling-network/starling/protocol/attestation/certs"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// processor is what the certificate of a processor's provisioning key says about it.
type processor struct {
	versions [16]byte
	pce      uint16 // version of the provisioning enclave
	pceID    []byte
	fmspc    []byte // kind of the processor
}

// sgx is the extension that has it all, and the identifiers below it.
var (
	sgx      = asn1.ObjectIdentifier{1, 2, 840, 113741, 1, 13, 1}
	sgxTCB   = child(sgx, 2)
	sgxPCEID = child(sgx, 3)
	sgxFMSPC = child(sgx, 4)
	tcbPCE   = child(sgxTCB, 17)
)

func child(id asn1.ObjectIdentifier, n int) asn1.ObjectIdentifier {
	return append(append(asn1.ObjectIdentifier{}, id...), n)
}

// pair is an identifier with its value.
type pair struct {
	ID    asn1.ObjectIdentifier
	Value asn1.RawValue
}

func readProcessor(c *x509.Certificate) (*processor, error) {
	p := &processor{}
	for _, e := range c.Extensions {
		if e.Id.Equal(sgx) {
			if err := p.read(e.Value); err != nil {
				return nil, check.Fail(check.PCKExtensions, "the extension of the certificate: %v", err)
			}
		}
	}
	if len(p.pceID) != 2 || len(p.fmspc) != 6 {
		return nil, check.Fail(check.PCKExtensions, "the certificate does not name its processor")
	}
	return p, nil
}

func (p *processor) read(b []byte) error {
	var fields, versions []pair
	if err := certs.Whole(b, &fields, ""); err != nil {
		return err
	}
	for _, f := range fields {
		var err error
		switch {
		case f.ID.Equal(sgxPCEID):
			err = certs.Whole(f.Value.FullBytes, &p.pceID, "")
		case f.ID.Equal(sgxFMSPC):
			err = certs.Whole(f.Value.FullBytes, &p.fmspc, "")
		case f.ID.Equal(sgxTCB):
			err = certs.Whole(f.Value.FullBytes, &versions, "")
		}
		if err != nil {
			return err
		}
	}
	found := 0
	for _, v := range versions {
		last := v.ID[len(v.ID)-1]
		if len(v.ID) != len(sgxTCB)+1 || !v.ID[:len(sgxTCB)].Equal(sgxTCB) || last < 1 || last > 17 {
			continue
		}
		var n int
		if err := certs.Whole(v.Value.FullBytes, &n, ""); err != nil {
			return err
		}
		if n < 0 || n > 0xffff || n > 255 && !v.ID.Equal(tcbPCE) {
			return asn1.StructuralError{Msg: "a version is out of range"}
		}
		if found++; v.ID.Equal(tcbPCE) {
			p.pce = uint16(n)
		} else {
			p.versions[last-1] = uint8(n)
		}
	}
	if found != 17 {
		return asn1.StructuralError{Msg: "versions are missing, or there twice"}
	}
	return nil
}
