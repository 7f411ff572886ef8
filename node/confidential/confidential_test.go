package confidential

import (
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/teetest"
	"github.com/starling-network/starling/protocol/attestation"
)

var data = [64]byte{1, 2, 3}

func holds(t *testing.T, e attestation.Evidence) {
	t.Helper()
	_, err := attestation.Verify(&e, teetest.Roots(), data, func(string) (int64, error) { return 0, nil },
		teetest.Now.Unix())
	if err != nil {
		t.Error(err)
	}
}

func text(ders ...[]byte) (b []byte) {
	for _, der := range ders {
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return b
}

// Files as the makers' services give them, in any order, become what a worker submits.
func TestCollateral(t *testing.T) {
	snp := teetest.NewSNP(data).Evidence()
	e, err := Evidence(snp.Quote, []File{{"crl", snp.Revocations[0]}, {"cert_chain", text(snp.Certificates[1:]...)},
		{"vcek", snp.Certificates[0]}})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, e)
	tdx := teetest.NewDCAP(data, true).Evidence()
	e, err = Evidence(tdx.Quote, []File{{"tcb", tdx.TCBInfo}, {"identity", tdx.QEIdentity}, {"pckcrl", tdx.Revocations[1]},
		{"root", tdx.Revocations[0]}, {"chain", text(tdx.Certificates...)}})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, e)
	e, err = Evidence(tdx.Quote, []File{{"collateral.json", qvl(t, tdx)}})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, e)
	for name, f := range map[string][]byte{"noise": {1, 2, 3}, "JSON": []byte(`{"a":1}`), "broken JSON": []byte(`{`),
		"empty PEM block": []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")} {
		if _, err := Evidence(tdx.Quote, []File{{name, f}}); !errors.Is(err, ErrCollateral) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Evidence([]byte("no quote"), nil); !errors.Is(err, attestation.ErrRefused) {
		t.Errorf("no quote: %v", err)
	}
}

// qvl is collateral in the JSON form of dcap-qvl.
func qvl(t *testing.T, e attestation.Evidence) []byte {
	t.Helper()
	split := func(b []byte) (body, signature string) {
		body, signature, _ = strings.Cut(string(b), `,"signature":"`)
		return body[strings.Index(body, ":")+1:], strings.TrimSuffix(signature, `"}`)
	}
	hexed := hex.EncodeToString
	tcb, tcbSigned := split(e.TCBInfo)
	qe, qeSigned := split(e.QEIdentity)
	chain := string(text(e.Certificates...))
	b, err := json.Marshal(map[string]string{"pck_crl_issuer_chain": chain, "root_ca_crl": hexed(e.Revocations[0]),
		"pck_crl": hexed(e.Revocations[1]), "tcb_info_issuer_chain": chain, "tcb_info": tcb, "tcb_info_signature": tcbSigned,
		"qe_identity_issuer_chain": chain, "qe_identity": qe, "qe_identity_signature": qeSigned})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The addresses of collateral name the chip and its versions, or the kind of processor.
func TestSources(t *testing.T) {
	for want, quote := range map[string][]byte{
		"https://kdsintf.amd.com/vcek/v1/Milan/00c0": teetest.NewSNP(data).Evidence().Quote,
		"https://api.trustedservices.intel.com/tdx/certification/v4/tcb?fmspc=" + teetest.FMSPC: teetest.NewDCAP(data,
			true).Evidence().Quote,
		"https://api.trustedservices.intel.com/sgx/certification/v4/tcb?fmspc=" + teetest.FMSPC: teetest.NewDCAP(data,
			false).Evidence().Quote,
	} {
		if all, err := Sources(quote); err != nil || len(all) < 3 || !strings.HasPrefix(all[0], want) {
			t.Errorf("%v, %v", all, err)
		}
	}
	if all, err := Sources(nil); err == nil {
		t.Errorf("sources of nothing: %v", all)
	}
}

// A machine that is not a confidential one says so.
func TestOtherMachines(t *testing.T) {
	if _, err := (Machine{Dir: filepath.Join(t.TempDir(), "tsm")}).Report(data); !errors.Is(err, ErrNoMachine) {
		t.Errorf("%v", err)
	}
}
