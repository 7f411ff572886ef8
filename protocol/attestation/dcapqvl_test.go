package attestation_test

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/teetest"
	"github.com/starling-network/starling/protocol/attestation"
)

// Reasons why dcap-qvl accepts more.
const (
	names     = "it does not look at the names of certificates"
	lists     = "it takes a list of revoked certificates without its signature and dates, and none for an empty one"
	modules   = "it does not look at the identity of the TDX module"
	leftovers = "it ignores bytes after the signature"
)

// lenient are the vectors that dcap-qvl accepts, and why.
var lenient = map[string]string{
	"tdx issuer that is none": names, "tdx another signer of documents": names,
	"tdx no lists": lists, "tdx one list": lists, "tdx a list too many": lists, "tdx list changed": lists,
	"tdx list of the root expired": lists, "tdx list expired": lists, "tdx list of the future": lists,
	"tdx vendor": policy, "tdx signer of the module": modules, "tdx attributes of the module": modules,
	"tdx unknown module": modules, "tdx bytes after the signature": leftovers, "tdx older documents": history,
}

// Another program, dcap-qvl of npm, agrees about quotes of TDX and SGX, but for those with a reason.
func TestDCAPQVLAgrees(t *testing.T) {
	dir := filepath.Join("testdata", "dcapqvl")
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no Node.js: `apt install nodejs npm`, `npm ci --ignore-scripts` in protocol/attestation/" + dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Skip("dcap-qvl is not installed: `npm ci --ignore-scripts` in protocol/attestation/" + dir)
	}
	inputs.Of(t, filepath.Join(dir, "check.mjs"), filepath.Join(dir, "package-lock.json"))
	type question struct {
		Name       string            `json:"name"`
		Quote      string            `json:"quote"`
		Data       string            `json:"data"`
		Collateral map[string]string `json:"collateral"`
	}
	var all struct {
		Root    string     `json:"root"`
		Now     int64      `json:"now"`
		Vectors []question `json:"vectors"`
	}
	root := teetest.NewDCAP(data, true).Root()
	all.Root, all.Now = hex.EncodeToString(root.Raw), teetest.Now.Unix()
	ours := map[string]error{}
	for _, v := range ofDCAP() {
		e := v.of()
		_, ours[v.name] = verify(v, &e)
		all.Vectors = append(all.Vectors, question{v.name, hex.EncodeToString(e.Quote), hex.EncodeToString(data[:]),
			collateral(e, root)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command("node", "check.mjs")
	check.Dir, check.Stdin, check.Stderr = dir, bytes.NewReader(text), os.Stderr
	out, err := check.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	verdicts := map[string]string{}
	if err := json.Unmarshal(out, &verdicts); err != nil {
		t.Fatal(err)
	}
	agreed := 0
	for _, q := range all.Vectors {
		theirs, known := verdicts[q.Name]
		switch agrees := (theirs == "") == (ours[q.Name] == nil); {
		case !known:
			t.Errorf("%s has no verdict", q.Name)
		case agrees && lenient[q.Name] == "":
			agreed++
		case agrees:
			t.Errorf("%s: it agrees, and %q was expected", q.Name, lenient[q.Name])
		case lenient[q.Name] == "" || theirs != "":
			t.Errorf("%s: %v here, and %q there", q.Name, ours[q.Name], theirs)
		}
	}
	if agreed < 40 {
		t.Errorf("both agree on %d vectors", agreed)
	}
	t.Logf("both agree on %d of %d vectors", agreed, len(all.Vectors))
}

// collateral is that of evidence in the form of dcap-qvl. Parts that the evidence lacks are empty.
func collateral(e attestation.Evidence, root *x509.Certificate) map[string]string {
	var signer string
	for _, der := range append(e.Certificates[:len(e.Certificates):len(e.Certificates)], root.Raw) {
		signer += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	c := map[string]string{"pck_crl_issuer_chain": "", "root_ca_crl": "", "pck_crl": "", "tcb_info_issuer_chain": signer,
		"qe_identity_issuer_chain": signer}
	for _, der := range e.Revocations {
		name := "pck_crl"
		if l, err := x509.ParseRevocationList(der); err == nil && bytes.Equal(l.RawIssuer, root.RawSubject) {
			name = "root_ca_crl"
		}
		c[name] = hex.EncodeToString(der)
	}
	for name, document := range map[string][]byte{"tcb_info": e.TCBInfo, "qe_identity": e.QEIdentity} {
		body, signature, _ := strings.Cut(string(document), `,"signature":"`)
		_, c[name], _ = strings.Cut(body, ":")
		c[name+"_signature"] = strings.TrimSuffix(signature, `"}`)
	}
	return c
}
