package teetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/protocol/attestation"
)

// JSON is an object of a document.
type JSON = map[string]any

// DCAP is a quote of TDX, or of SGX, before it is signed, with templates of its certificates, lists and documents.
type DCAP struct {
	Header, Body []byte
	QE           []byte // report of the quoting enclave; its report data is set if it is zero
	Auth         []byte // data of the quoting enclave

	Leaf, Issuer, Ca, Signer *x509.Certificate
	RootList, PlatformList   *x509.RevocationList
	TCBInfo, QEIdentity      JSON
	Foreign                  bool // see SNP
}

// Offsets in Body, of TDX.
const (
	AtVersions, AtModuleSigner, AtModuleAttributes = 0, 64, 112
	AtAttributes, AtBuild, AtRuntime               = 120, 136, 328
)

// FMSPC is the kind of the processor.
const FMSPC = "50806f000000"

// NewDCAP is a quote with data that passes every check.
func NewDCAP(data [64]byte, tdx bool) *DCAP {
	q := &DCAP{Header: make([]byte, 48), QE: make([]byte, 384), Auth: []byte("authentication data of 32 bytes."),
		Leaf:   certificate(3, intel("Intel SGX PCK Certificate"), false),
		Issuer: certificate(4, intel("Intel SGX PCK Platform CA"), true),
		Ca:     certificate(5, intel("Intel SGX Root CA"), true),
		Signer: certificate(6, intel("Intel SGX TCB Signing"), false), RootList: list(), PlatformList: list()}
	q.Ca.CRLDistributionPoints = []string{"https://certificates.trustedservices.intel.com/IntelSGXRootCA.der"}
	little := binary.LittleEndian
	little.PutUint16(q.Header, 3)
	little.PutUint16(q.Header[2:], 2)
	copy(q.Header[12:], must(hex.DecodeString("939a7233f79c4ca9940a0db3957f0607")))
	q.Body = make([]byte, 384)
	tee, enclave := "SGX", "QE"
	if tdx {
		tee, enclave = "TDX", "TD_QE"
		q.Body = make([]byte, 584)
		little.PutUint16(q.Header, 4)
		little.PutUint32(q.Header[4:], 0x81)
		q.Body[AtVersions], q.Body[128] = 5, 3 // of the module; features of the processor
		q.Body[AtAttributes+3] = 0x10          // SEPT_VE_DISABLE
	}
	copy(q.Body[len(q.Body)-64:], data[:])
	copy(q.QE[48:], []byte{0x15, 8: 0xe7})
	signer := strings.Repeat("dc", 32)
	copy(q.QE[128:], must(hex.DecodeString(signer)))
	little.PutUint16(q.QE[256:], 2)
	little.PutUint16(q.QE[258:], 6)
	q.Leaf.CRLDistributionPoints, q.Leaf.SubjectKeyId = q.Ca.CRLDistributionPoints, []byte{3}
	q.Processor(FMSPC, 7)
	issued, next := date(Now.Add(-day)), date(Now.Add(29*day))
	zeros := func(n int) string { return strings.Repeat("0", 2*n) }
	q.QEIdentity = JSON{"id": enclave, "version": 2, "issueDate": issued, "nextUpdate": next,
		"tcbEvaluationDataNumber": 17, "miscselect": zeros(4), "miscselectMask": "FFFFFFFF",
		"attributes": "11" + zeros(15), "attributesMask": "FBFFFFFFFFFFFFFF" + zeros(8),
		"mrsigner": signer, "isvprodid": 2, "tcbLevels": []JSON{
			{"tcb": JSON{"isvsvn": 6}, "tcbDate": date(Now.Add(-300 * day)), "tcbStatus": "UpToDate"},
			{"tcb": JSON{"isvsvn": 1}, "tcbDate": date(Now.Add(-900 * day)), "tcbStatus": "OutOfDate"}}}
	q.TCBInfo = JSON{"id": tee, "version": 3, "issueDate": issued, "nextUpdate": next, "fmspc": FMSPC, "pceId": "0000",
		"tcbType": 0, "tcbEvaluationDataNumber": 17,
		"tdxModule": JSON{"mrsigner": zeros(48), "attributes": zeros(8), "attributesMask": "FFFFFFFFFFFFFFFF"},
		"tdxModuleIdentities": []JSON{{"id": "TDX_01", "mrsigner": zeros(48), "attributes": zeros(8),
			"attributesMask": "FFFFFFFFFFFFFFFF", "tcbLevels": []JSON{
				{"tcb": JSON{"isvsvn": 5}, "tcbDate": date(Now), "tcbStatus": "UpToDate"},
				{"tcb": JSON{"isvsvn": 2}, "tcbDate": date(Now), "tcbStatus": "OutOfDate"}}}},
		"tcbLevels": []JSON{Level(7, 5, "UpToDate"), Level(6, 5, "OutOfDate"), Level(5, 4, "Revoked")}}
	return q
}

// Level is a security level of a platform: versions of its processor, version of its TDX module, and status.
func Level(cpu, module int, status string) JSON {
	components := func(first int) []JSON {
		all := make([]JSON, 16)
		for i := range all {
			all[i] = JSON{"svn": 0}
		}
		all[0] = JSON{"svn": first}
		return all
	}
	return JSON{"tcb": JSON{"sgxtcbcomponents": components(cpu), "pcesvn": 11, "tdxtcbcomponents": components(module)},
		"tcbDate": date(Now.Add(-200 * day)), "tcbStatus": status}
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func intel(name string) pkix.Name {
	return pkix.Name{Country: []string{"US"}, Locality: []string{"Santa Clara"}, Province: []string{"CA"},
		Organization: []string{"Intel Corporation"}, CommonName: name}
}

// Processor sets what the certificate of the processor says about it.
func (q *DCAP) Processor(fmspc string, first byte) {
	type pair struct {
		ID    asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	arc := func(n ...int) asn1.ObjectIdentifier {
		return append(asn1.ObjectIdentifier{1, 2, 840, 113741, 1, 13, 1}, n...)
	}
	entry := func(value any, n ...int) pair {
		return pair{arc(n...), asn1.RawValue{FullBytes: must(asn1.Marshal(value))}}
	}
	var versions []pair
	for i := 1; i <= 16; i++ {
		versions = append(versions, entry(map[bool]int{true: int(first)}[i == 1], 2, i))
	}
	versions = append(versions, entry(11, 2, 17), entry([]byte{first, 15: 0}, 2, 18)) // the same again, in one string
	q.Leaf.ExtraExtensions = []pkix.Extension{extension(arc(), []pair{entry(make([]byte, 16), 1), entry(versions, 2),
		entry(make([]byte, 2), 3), entry(must(hex.DecodeString(fmspc)), 4)}, "")}
}

// rootDCAP is the certificate of the untouched root, which is the same for all quotes.
var rootDCAP = sync.OnceValue(func() *x509.Certificate {
	k, template := keys(), NewDCAP([64]byte{}, true).Ca
	return sign(template, template, k.root.Public(), k.root)
})

// Root is the root certificate, of its own in a quote that is Foreign.
func (q *DCAP) Root() *x509.Certificate {
	if q.Foreign {
		return sign(q.Ca, q.Ca, q.authority().Public(), q.authority())
	}
	return rootDCAP()
}

// authority is the key of the root.
func (q *DCAP) authority() *ecdsa.PrivateKey {
	if q.Foreign {
		return keys().attesting
	}
	return keys().root
}

// chains are the certificates of the processor and its issuer, and the one that signs documents.
func (q *DCAP) chains() (leaf, issuer, root, signer *x509.Certificate) {
	k := keys()
	root = q.Root()
	issuer = sign(q.Issuer, root, k.platform.Public(), q.authority())
	leaf, signer = sign(q.Leaf, issuer, k.pck.Public(), k.platform), sign(q.Signer, root, k.signer.Public(), q.authority())
	return leaf, issuer, root, signer
}

// Evidence signs everything.
func (q *DCAP) Evidence() attestation.Evidence {
	k := keys()
	leaf, issuer, root, signer := q.chains()
	quote := append(bytes.Clone(q.Header), q.Body...)
	point := must(k.attesting.PublicKey.Bytes())[1:]
	qe := bytes.Clone(q.QE)
	if bound := sha256.Sum256(append(bytes.Clone(point), q.Auth...)); [64]byte(qe[320:]) == [64]byte{} {
		copy(qe[320:], bound[:])
	}
	little := binary.LittleEndian
	inner := append(append(bytes.Clone(qe), raw(k.pck, qe)...), little.AppendUint16(nil, uint16(len(q.Auth)))...)
	var chain []byte
	for _, c := range []*x509.Certificate{leaf, issuer, root} {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	inner = append(little.AppendUint16(append(inner, q.Auth...), 5), little.AppendUint32(nil, uint32(len(chain)))...)
	inner = append(inner, chain...)
	signature := append(raw(k.attesting, quote), point...)
	if q.Header[0] > 3 {
		signature = little.AppendUint32(little.AppendUint16(signature, 6), uint32(len(inner)))
	}
	signature = append(signature, inner...)
	return attestation.Evidence{
		Quote:        append(little.AppendUint32(quote, uint32(len(signature))), signature...),
		Certificates: [][]byte{signer.Raw},
		Revocations: [][]byte{must(x509.CreateRevocationList(rand.Reader, q.RootList, root, q.authority())),
			must(x509.CreateRevocationList(rand.Reader, q.PlatformList, issuer, k.platform))},
		TCBInfo: document("tcbInfo", q.TCBInfo), QEIdentity: document("enclaveIdentity", q.QEIdentity),
	}
}

// document signs a document.
func document(name string, value JSON) []byte {
	text := must(json.Marshal(value))
	return fmt.Appendf(nil, `{"%s":%s,"signature":"%x"}`, name, text, raw(keys().signer, text))
}
