package attestation_test

import (
	"bytes"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/internal/teetest"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// data are the report data of all vectors.
var data = attestation.ReportData(attestation.Nonce(7, [32]byte{1}), "worker", "peer")

// vector is a quote with its collateral in which one thing is changed, and the check that refuses it; "": it passes.
// alone is why the second verifier, a library of Google, does not refuse it, too.
type vector struct {
	name  string
	code  check.Code
	of    func() attestation.Evidence
	roots func([]attestation.Root) []attestation.Root
	seen  int64
	alone string
}

func verify(v vector, e *attestation.Evidence) (*attestation.Result, error) {
	roots := teetest.Roots()
	if v.roots != nil {
		roots = v.roots(roots)
	}
	return attestation.Verify(e, roots, data, func(string) (int64, error) { return v.seen, nil }, teetest.Now.Unix())
}

// Reasons why a library refuses less.
const (
	policy  = "it leaves this policy to its caller"
	early   = "it does not look at the date of issue"
	keys    = "it does not compare this with anything"
	history = "it has no memory"
)

const day = 24 * time.Hour

func sevsnp(name string, code check.Code, change func(*teetest.SNP)) vector {
	return vector{name: "snp " + name, code: code, of: func() attestation.Evidence {
		s := teetest.NewSNP(data)
		change(s)
		return s.Evidence()
	}}
}

// but changes the evidence of a vector after it is signed.
func (v vector) but(change func(*attestation.Evidence)) vector {
	of := v.of
	v.of = func() attestation.Evidence { e := of(); change(&e); return e }
	return v
}

// only says that the second verifier accepts it, and why.
func (v vector) only(why string) vector { v.alone = why; return v }

func (v vector) pins(change func([]attestation.Root) []attestation.Root) vector {
	v.roots = change
	return v
}

func put(b []byte, at int, value uint64) { binary.LittleEndian.PutUint64(b[at:], value) }

func expired(c *x509.Certificate) { c.NotAfter = teetest.Now.Add(-time.Hour) }
func future(c *x509.Certificate)  { c.NotBefore = teetest.Now.Add(time.Hour) }

func nothing[T any](*T) {}

func ofSNP() []vector {
	good := sevsnp("good", "", nothing)
	foreign := func(s *teetest.SNP) { s.Foreign = true }
	return []vector{
		good,
		sevsnp("version 1", check.Version, func(s *teetest.SNP) { s.Report[0] = 1 }),
		sevsnp("algorithm", check.Version, func(s *teetest.SNP) { s.Report[0x34] = 2 }),
		sevsnp("signing key", check.Version, func(s *teetest.SNP) { s.Report[0x48] = 1 << 2 }),
		sevsnp("report data", check.ReportData, func(s *teetest.SNP) { s.Report[0x50] ^= 1 }),
		sevsnp("measurement", check.Signature, nothing).but(func(e *attestation.Evidence) { e.Quote[0x90] ^= 1 }),
		sevsnp("host data", check.Signature, nothing).but(func(e *attestation.Evidence) { e.Quote[0xc0] ^= 1 }),
		sevsnp("signature", check.Signature, nothing).but(func(e *attestation.Evidence) { e.Quote[0x2a0] ^= 1 }),
		sevsnp("debug", check.Debug, func(s *teetest.SNP) { put(s.Report, 8, 3<<16|1<<19) }),
		sevsnp("migration", check.Migration, func(s *teetest.SNP) { put(s.Report, 8, 3<<16|1<<18) }),
		sevsnp("level of privilege", check.VMPL, func(s *teetest.SNP) { s.Report[0x30] = 2 }),
		sevsnp("chip", check.Chip, func(s *teetest.SNP) { s.Report[0x1a0] ^= 1 }),
		sevsnp("versions of the report", check.ChipTCB, func(s *teetest.SNP) { put(s.Report, 0x180, teetest.Versions-1) }),
		sevsnp("versions of the certificate", check.ChipTCB, func(s *teetest.SNP) {
			s.Say("Milan-B0", teetest.Versions+1, teetest.Chip[:])
		}),
		sevsnp("least versions", check.LeastTCB, nothing).pins(func(r []attestation.Root) []attestation.Root {
			r[0].Least = 0xd200_0000_0000_0000
			return r
		}),
		sevsnp("product", check.Product, func(s *teetest.SNP) { s.Say("Turin-B0", teetest.Versions, teetest.Chip[:]) }),
		sevsnp("name of the certificate", check.Product, func(s *teetest.SNP) { s.Leaf.Subject.CommonName = "SEV-VLEK" }),
		sevsnp("no identifier of the chip", check.Chip, func(s *teetest.SNP) { s.Say("Milan-B0", teetest.Versions, nil) }),
		sevsnp("certificate expired", check.Validity, func(s *teetest.SNP) { expired(s.Leaf) }),
		sevsnp("issuer expired", check.Validity, func(s *teetest.SNP) { expired(s.Issuer) }),
		sevsnp("certificate of the future", check.Validity, func(s *teetest.SNP) { future(s.Leaf) }),
		sevsnp("issuer of another name", check.Product, func(s *teetest.SNP) { s.Issuer.Subject.CommonName = "SEV-Genoa" }),
		sevsnp("issuer that is none", check.Chain, func(s *teetest.SNP) {
			s.Issuer.IsCA, s.Issuer.KeyUsage = false, x509.KeyUsageDigitalSignature
		}),
		sevsnp("issuer and root changed places", check.Root, nothing).but(func(e *attestation.Evidence) {
			e.Certificates[1], e.Certificates[2] = e.Certificates[2], e.Certificates[1]
		}),
		sevsnp("certificate changed", check.Chain, nothing).but(func(e *attestation.Evidence) {
			e.Certificates[0] = flip(e.Certificates[0], len(e.Certificates[0])-1)
		}),
		sevsnp("another root", check.Root, foreign),
		sevsnp("no roots", check.Root, nothing).pins(func([]attestation.Root) []attestation.Root { return nil }),
		sevsnp("root of another maker", check.Root, nothing).pins(func(r []attestation.Root) []attestation.Root {
			r[0].Technology = attestation.TDX
			return r
		}),
		sevsnp("no list", check.CRL, nothing).but(func(e *attestation.Evidence) { e.Revocations = nil }),
		sevsnp("list changed", check.CRL, nothing).but(func(e *attestation.Evidence) {
			e.Revocations[0] = flip(e.Revocations[0], len(e.Revocations[0])-1)
		}),
		sevsnp("list expired", check.CRLDate, func(s *teetest.SNP) {
			s.List.NextUpdate = teetest.Now.Add(-time.Hour)
		}).only(keys),
		sevsnp("list of the future", check.CRLDate, func(s *teetest.SNP) {
			s.List.ThisUpdate = teetest.Now.Add(time.Hour)
		}).only(early),
		sevsnp("issuer revoked", check.Revoked, func(s *teetest.SNP) { teetest.Revoke(s.List, 8) }),
		sevsnp("bytes after the signature", check.Format, nothing).but(func(e *attestation.Evidence) { e.Quote[0x49f] = 1 }),
		sevsnp("cut", check.Format, nothing).but(func(e *attestation.Evidence) { e.Quote = e.Quote[:0x49f] }),
		sevsnp("a certificate too many", check.Chain, nothing).but(func(e *attestation.Evidence) {
			e.Certificates = append(e.Certificates, e.Certificates[0])
		}).only("it takes named certificates"),
		sevsnp("a list too many", check.CRL, nothing).but(func(e *attestation.Evidence) {
			e.Revocations = append(e.Revocations, e.Revocations[0])
		}).only("it takes one list"),
		{name: "snp older list", code: check.Replay, of: good.of, seen: teetest.Now.Unix(), alone: history},
	}
}

func dcap(name string, code check.Code, change func(*teetest.DCAP)) vector {
	return vector{name: "tdx " + name, code: code, of: func() attestation.Evidence {
		q := teetest.NewDCAP(data, true)
		change(q)
		return q.Evidence()
	}}
}

func sgx(name string, code check.Code, change func(*teetest.DCAP)) vector {
	return vector{name: "sgx " + name, code: code, of: func() attestation.Evidence {
		q := teetest.NewDCAP(data, false)
		change(q)
		return q.Evidence()
	}, alone: "it does not read quotes of SGX"}
}

func levels(q *teetest.DCAP, l ...teetest.JSON) { q.TCBInfo["tcbLevels"] = l }

func date(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func ofDCAP() []vector {
	good := dcap("good", "", nothing)
	module := func(q *teetest.DCAP) { q.Body[teetest.AtVersions+1] = 1 }
	return append(ofCollateral(), []vector{
		good,
		sgx("good", "", nothing), sgx("debug", check.Debug, func(q *teetest.DCAP) { q.Body[48] = 2 }),
		sgx("measurement", check.Signature, nothing).but(func(e *attestation.Evidence) { e.Quote[48+64] ^= 1 }),
		sgx("levels of TDX", check.TCBDoc, func(q *teetest.DCAP) { q.TCBInfo["id"] = "TDX" }),
		dcap("module of version 1", "", module),
		dcap("version", check.Version, func(q *teetest.DCAP) { q.Header[0] = 6 }),
		dcap("kind of key", check.Version, func(q *teetest.DCAP) { q.Header[2] = 3 }),
		dcap("environment", check.Version, func(q *teetest.DCAP) { q.Header[4] = 0x82 }),
		dcap("vendor", check.Version, func(q *teetest.DCAP) { q.Header[12] ^= 1 }),
		dcap("report data", check.ReportData, func(q *teetest.DCAP) { q.Body[520] ^= 1 }),
		dcap("build", check.Signature, nothing).but(func(e *attestation.Evidence) { e.Quote[48+teetest.AtBuild] ^= 1 }),
		dcap("runtime", check.Signature, nothing).but(func(e *attestation.Evidence) { e.Quote[48+teetest.AtRuntime] ^= 1 }),
		dcap("signature", check.Signature, nothing).but(func(e *attestation.Evidence) { e.Quote[48+584+4] ^= 1 }),
		dcap("key", check.KeyBinding, nothing).but(func(e *attestation.Evidence) { e.Quote[48+584+4+64] ^= 1 }),
		dcap("debug", check.Debug, func(q *teetest.DCAP) { q.Body[teetest.AtAttributes] = 1 }),
		dcap("migration", check.Migration, func(q *teetest.DCAP) { q.Body[teetest.AtAttributes+3] = 1 << 5 }),
		dcap("exceptions", check.Exceptions, func(q *teetest.DCAP) { q.Body[teetest.AtAttributes+3] = 0 }),
		dcap("chain in another form", check.Format, nothing).but(func(e *attestation.Evidence) {
			e.Quote[bytes.Index(e.Quote, []byte("-----BEGIN CERTIFICATE-----\n"))+28+64] = ' '
		}).only("it reads the forms of its release of Go"),
		dcap("bound to another key", check.KeyBinding, func(q *teetest.DCAP) { q.QE[320] = 1 }),
		dcap("signer of the quoting enclave", check.QEIdentity, func(q *teetest.DCAP) { q.QE[128] ^= 1 }),
		dcap("product of the quoting enclave", check.QEIdentity, func(q *teetest.DCAP) { q.QE[256] ^= 1 }),
		dcap("attributes of the quoting enclave", check.QEIdentity, func(q *teetest.DCAP) { q.QE[48] |= 2 }),
		dcap("miscellany of the quoting enclave", check.QEIdentity, func(q *teetest.DCAP) { q.QE[16] = 1 }),
		dcap("old quoting enclave", check.QEStatus, func(q *teetest.DCAP) { q.QE[258] = 5 }),
		dcap("oldest quoting enclave", check.QEStatus, func(q *teetest.DCAP) { q.QE[258] = 0 }),
		dcap("report of the quoting enclave", check.QESignature, nothing).but(func(e *attestation.Evidence) {
			e.Quote[48+584+4+128+6+64] ^= 1
		}),
		dcap("platform below a level", check.TCBStatus, func(q *teetest.DCAP) { q.Processor(teetest.FMSPC, 6) }),
		dcap("platform below all levels", check.TCBLevel, func(q *teetest.DCAP) { q.Processor(teetest.FMSPC, 4) }),
		dcap("revoked level", check.TCBStatus, func(q *teetest.DCAP) { levels(q, teetest.Level(7, 5, "Revoked")) }),
		dcap("hardening needed", check.TCBStatus, func(q *teetest.DCAP) {
			levels(q, teetest.Level(7, 5, "SWHardeningNeeded"))
		}),
		dcap("no levels", check.TCBLevel, func(q *teetest.DCAP) { levels(q) }),
		dcap("old module", check.TCBLevel, func(q *teetest.DCAP) { q.Body[teetest.AtVersions] = 3 }),
		dcap("signer of the module", check.Module, func(q *teetest.DCAP) { q.Body[teetest.AtModuleSigner] = 1 }),
		dcap("attributes of the module", check.Module, func(q *teetest.DCAP) { q.Body[teetest.AtModuleAttributes] = 1 }),
		dcap("unknown module", check.Module, func(q *teetest.DCAP) { q.Body[teetest.AtVersions+1] = 9 }),
		dcap("old module of version 1", check.ModuleStatus, func(q *teetest.DCAP) {
			module(q)
			q.Body[teetest.AtVersions] = 3
		}),
		dcap("kind of processor", check.Platform, func(q *teetest.DCAP) { q.Processor("50806f000001", 7) }),
		dcap("no extension", check.PCKExtensions, func(q *teetest.DCAP) { q.Leaf.ExtraExtensions = nil }),
		dcap("cut", check.Format, nothing).but(func(e *attestation.Evidence) { e.Quote = e.Quote[:len(e.Quote)-1] }),
		dcap("bytes after the signature", check.Format, nothing).but(func(e *attestation.Evidence) {
			e.Quote = append(e.Quote, 1)
		}).only("it keeps them as extra bytes"),
		{name: "tdx older documents", code: check.Replay, of: good.of, seen: teetest.Now.Unix(), alone: history},
	}...)
}

// ofCollateral are vectors about the collateral of TDX.
func ofCollateral() []vector {
	return []vector{
		dcap("certificate expired", check.Validity, func(q *teetest.DCAP) { expired(q.Leaf) }),
		dcap("issuer expired", check.Validity, func(q *teetest.DCAP) { expired(q.Issuer) }),
		dcap("signer of documents expired", check.Validity, func(q *teetest.DCAP) { expired(q.Signer) }),
		dcap("certificate of the future", check.Validity, func(q *teetest.DCAP) { future(q.Leaf) }),
		dcap("another root", check.Root, func(q *teetest.DCAP) { q.Foreign = true }),
		dcap("issuer that is none", check.Chain, func(q *teetest.DCAP) { q.Leaf.Subject.CommonName = "Intel SGX PCK" }),
		dcap("another signer of documents", check.SigningKey, func(q *teetest.DCAP) {
			q.Signer.Subject.CommonName = "Intel"
		}),
		dcap("no signer of documents", check.SigningKey, nothing).but(func(e *attestation.Evidence) { e.Certificates = nil }),
		dcap("documents changed", check.TCBDoc, nothing).but(func(e *attestation.Evidence) {
			e.TCBInfo = []byte(strings.Replace(string(e.TCBInfo), "UpToDate", "UptoDate", 1))
		}),
		dcap("description changed", check.QEIdentityDoc, nothing).but(func(e *attestation.Evidence) {
			e.QEIdentity = []byte(strings.Replace(string(e.QEIdentity), `"isvsvn":6`, `"isvsvn":5`, 1))
		}),
		dcap("no documents", check.QEIdentityDoc, nothing).but(func(e *attestation.Evidence) { e.QEIdentity = nil }),
		dcap("description of another enclave", check.QEIdentityDoc, func(q *teetest.DCAP) { q.QEIdentity["id"] = "QE" }),
		dcap("list of another environment", check.TCBDoc, func(q *teetest.DCAP) { q.TCBInfo["id"] = "SGX" }),
		dcap("list of an old version", check.TCBDoc, func(q *teetest.DCAP) { q.TCBInfo["version"] = 2 }),
		dcap("levels expired", check.TCBAge, func(q *teetest.DCAP) { q.TCBInfo["nextUpdate"] = date(teetest.Now.Add(-day)) }),
		dcap("levels of the future", check.TCBAge, func(q *teetest.DCAP) {
			q.TCBInfo["issueDate"] = date(teetest.Now.Add(day))
		}).only(early),
		dcap("description expired", check.QEIdentityAge, func(q *teetest.DCAP) {
			q.QEIdentity["nextUpdate"] = date(teetest.Now.Add(-day))
		}),
		dcap("description of the future", check.QEIdentityAge, func(q *teetest.DCAP) {
			q.QEIdentity["issueDate"] = date(teetest.Now.Add(day))
		}).only(early),
		dcap("no lists", check.CRL, nothing).but(func(e *attestation.Evidence) { e.Revocations = nil }),
		dcap("a list too many", check.CRL, nothing).but(func(e *attestation.Evidence) {
			e.Revocations = append(e.Revocations, e.Revocations[0])
		}).only("it takes named lists"),
		dcap("one list", check.CRL, nothing).but(func(e *attestation.Evidence) { e.Revocations = e.Revocations[:1] }),
		dcap("list changed", check.CRL, nothing).but(func(e *attestation.Evidence) {
			e.Revocations[1] = flip(e.Revocations[1], len(e.Revocations[1])-1)
		}),
		dcap("list of the root expired", check.CRLDate, func(q *teetest.DCAP) {
			q.RootList.NextUpdate = teetest.Now.Add(-time.Hour)
		}),
		dcap("list expired", check.CRLDate, func(q *teetest.DCAP) {
			q.PlatformList.NextUpdate = teetest.Now.Add(-time.Hour)
		}),
		dcap("list of the future", check.CRLDate, func(q *teetest.DCAP) {
			q.PlatformList.ThisUpdate = teetest.Now.Add(time.Hour)
		}).only(early),
		dcap("processor revoked", check.Revoked, func(q *teetest.DCAP) { teetest.Revoke(q.PlatformList, 3) }),
		dcap("issuer revoked", check.Revoked, func(q *teetest.DCAP) { teetest.Revoke(q.RootList, 4) }),
		dcap("signer of documents revoked", check.Revoked, func(q *teetest.DCAP) { teetest.Revoke(q.RootList, 6) }),
	}
}

func flip(b []byte, at int) []byte {
	b = append([]byte(nil), b...)
	b[at] ^= 1
	return b
}

// wants checks which check refuses.
func wants(t *testing.T, err error, code check.Code) {
	t.Helper()
	if f, ok := errors.AsType[*check.Failure](err); !ok || f.Code != code {
		t.Errorf("%v, wanted %q", err, code)
	}
}

// Each vector is refused by its own check, and the second verifier agrees but for those with a reason.
func TestVectors(t *testing.T) {
	agreed, codes := 0, map[check.Code]bool{}
	for _, v := range append(ofSNP(), ofDCAP()...) {
		t.Run(v.name, func(t *testing.T) {
			e := v.of()
			_, err := verify(v, &e)
			f, refused := errors.AsType[*check.Failure](err)
			switch {
			case err == nil != (v.code == "") || err != nil && !refused:
				t.Fatalf("%v, wanted %q", err, v.code)
			case refused && f.Code != v.code:
				t.Errorf("%v, wanted %q", err, v.code)
			case refused && f.Code.Text() == "":
				t.Errorf("%s has no text", f.Code)
			}
			codes[v.code] = true
			second := reference(v, e)
			switch {
			case v.alone == "" && (second == nil) != (err == nil):
				t.Errorf("%v, and the second verifier: %v", err, second)
			case v.alone == "":
				agreed++
			case strings.HasPrefix(v.name, "sgx"):
			case second != nil:
				t.Errorf("the second verifier refuses it, too: %v", second)
			}
		})
	}
	if agreed < 40 || len(codes) < 25 {
		t.Errorf("both verifiers agree on %d vectors with %d codes", agreed, len(codes))
	}
	t.Logf("both verifiers agree on %d vectors; %d codes", agreed, len(codes))
}

// Lists that no check reads are counted, and not parsed.
func TestListsAreCountedFirst(t *testing.T) {
	for _, v := range []vector{sevsnp("", "", func(*teetest.SNP) {}), dcap("", "", func(*teetest.DCAP) {})} {
		e := v.of()
		e.Revocations = [][]byte{[]byte("no list"), []byte("no list"), []byte("no list")}
		if _, err := verify(v, &e); err == nil || !strings.Contains(err.Error(), "3 lists of revoked certificates") {
			t.Errorf("three lists: %v", err)
		}
	}
}
