package confidential

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/dcap"
	"github.com/starling-network/starling/protocol/attestation/snp"
)

// Sources are the addresses of the collateral of a quote, at the services of its maker.
func Sources(quote []byte) ([]string, error) {
	m, _, err := attestation.Peek(quote)
	if err != nil {
		return nil, err
	}
	if m.Technology != attestation.SNP {
		return ofIntel(quote, m.Technology)
	}
	r, err := snp.Read(quote)
	if err != nil {
		return nil, err
	}
	const kds = "https://kdsintf.amd.com/vcek/v1/"
	product := "Milan"
	// a report of version 3 has the family and the model of the processor; those of Genoa are 0x19, 0x10 to 0x1f and
	// 0xa0 to 0xaf
	if model := quote[0x189]; r.Version >= 3 && (model>>4 == 1 || model>>4 == 0xa) {
		product = "Genoa"
	}
	var tcb [8]byte
	binary.LittleEndian.PutUint64(tcb[:], uint64(r.Reported))
	return []string{
		fmt.Sprintf("%s%s/%s?blSPL=%d&teeSPL=%d&snpSPL=%d&ucodeSPL=%d", kds, product, hex.EncodeToString(r.Chip[:]), tcb[0],
			tcb[1], tcb[6], tcb[7]),
		kds + product + "/cert_chain", kds + product + "/crl",
	}, nil
}

func ofIntel(quote []byte, t attestation.Technology) ([]string, error) {
	q, err := dcap.Read(quote)
	if err != nil {
		return nil, err
	}
	fmspc, err := q.Processor()
	if err != nil {
		return nil, err
	}
	const pcs = "https://api.trustedservices.intel.com/"
	return []string{
		fmt.Sprintf("%s%s/certification/v4/tcb?fmspc=%s", pcs, t, fmspc),
		fmt.Sprintf("%s%s/certification/v4/qe/identity", pcs, t),
		pcs + "sgx/certification/v4/pckcrl?ca=" + q.Authority() + "&encoding=der",
		"https://certificates.trustedservices.intel.com/IntelSGXRootCA.der",
		"the chain in the header TCB-Info-Issuer-Chain of the first answer, decoded from percent signs",
	}, nil
}
