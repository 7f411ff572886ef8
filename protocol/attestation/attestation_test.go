package attestation_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	sevdata "github.com/google/go-sev-guest/verify/testdata"
	tdxdata "github.com/google/go-tdx-guest/testing/testdata"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/internal/teetest"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/check"
	"github.com/starling-network/starling/protocol/attestation/snp"
)

// A quote holds until the first of its dates, and for a week at most; its checks have dates and texts.
func TestResult(t *testing.T) {
	for _, v := range []vector{ofSNP()[0], dcap("good", "", nothing), sgx("good", "", nothing),
		dcap("soon over", "", func(q *teetest.DCAP) { q.TCBInfo["nextUpdate"] = date(teetest.Now.Add(day)) })} {
		e := v.of()
		r, err := verify(v, &e)
		if err != nil {
			t.Fatal(v.name, err)
		}
		want := teetest.Now.Unix() + attestation.MaxAge
		if v.name == "tdx soon over" {
			want = teetest.Now.Add(day).Unix()
		}
		if r.Until != want || r.Platform == "" || (r.LevelDate > 0) == (v.name == "snp good") {
			t.Errorf("%s: until %d, wanted %d: %+v", v.name, r.Until, want, r)
		}
		m, data2, err := attestation.Peek(e.Quote)
		if err != nil || m != r.Measurement || data2 != data {
			t.Errorf("%s: peeked %s, %v", v.name, m, err)
		}
		again, err := attestation.ParseMeasurement(m.String())
		if err != nil || again != m || again.Digest() != m.Digest() {
			t.Errorf("%s: %s, %v", v.name, again, err)
		}
		for _, p := range r.Passed {
			if p.Code.Text() == "" || p.Until > 0 && (p.From > teetest.Now.Unix() || p.Until < r.Until) {
				t.Errorf("%s: %+v", v.name, p)
			}
		}
	}
	for _, text := range []string{"", "tdx", "tdx:0a", "sev:" + strings.Repeat("0a", 48),
		"tdx:" + strings.Repeat("0g", 48)} {
		if m, err := attestation.ParseMeasurement(text); err == nil {
			t.Errorf("%q is %s", text, m)
		}
	}
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "change every byte of certificates and documents, too")

// Every changed byte of a signed region is refused: of the report or quote, of certificates, lists and documents.
func TestEverySignedByteCounts(t *testing.T) {
	snpGood, tdxGood := ofSNP()[0], dcap("good", "", nothing)
	report, quote := snpGood.of(), tdxGood.of()
	inDocument := func(b []byte, name string) (from, to int) {
		return bytes.Index(b, []byte(name)) + len(name) + 2, bytes.LastIndex(b, []byte(`,"signature"`))
	}
	tcbFrom, tcbTo := inDocument(quote.TCBInfo, `"tcbInfo"`)
	qeFrom, qeTo := inDocument(quote.QEIdentity, `"enclaveIdentity"`)
	const signature = 48 + 584 + 4
	quoteOf := func(e *attestation.Evidence) *[]byte { return &e.Quote }
	certificate := func(i int) func(*attestation.Evidence) *[]byte {
		return func(e *attestation.Evidence) *[]byte { return &e.Certificates[i] }
	}
	list := func(i int) func(*attestation.Evidence) *[]byte {
		return func(e *attestation.Evidence) *[]byte { return &e.Revocations[i] }
	}
	for name, c := range map[string]struct {
		v        vector
		of       func(*attestation.Evidence) *[]byte
		from, to int
	}{
		"report":           {snpGood, quoteOf, 0, snp.Size},
		"VCEK":             {snpGood, certificate(0), 0, len(report.Certificates[0])},
		"ASK":              {snpGood, certificate(1), 0, len(report.Certificates[1])},
		"ARK":              {snpGood, certificate(2), 0, len(report.Certificates[2])},
		"list of AMD":      {snpGood, list(0), 0, len(report.Revocations[0])},
		"quote":            {tdxGood, quoteOf, 0, 48 + 584},
		"signatures":       {tdxGood, quoteOf, signature, signature + 128 + 6 + 384 + 64},
		"data of the QE":   {tdxGood, quoteOf, signature + 582, signature + 584 + 32},
		"signer":           {tdxGood, certificate(0), 0, len(quote.Certificates[0])},
		"list of the root": {tdxGood, list(0), 0, len(quote.Revocations[0])},
		"list of the CA":   {tdxGood, list(1), 0, len(quote.Revocations[1])},
		"levels":           {tdxGood, func(e *attestation.Evidence) *[]byte { return &e.TCBInfo }, tcbFrom, tcbTo},
		"quoting enclave":  {tdxGood, func(e *attestation.Evidence) *[]byte { return &e.QEIdentity }, qeFrom, qeTo},
	} {
		e := report
		if c.v.name == tdxGood.name {
			e = quote
		}
		e.Certificates, e.Revocations = append([][]byte(nil), e.Certificates...), append([][]byte(nil), e.Revocations...)
		whole := *c.of(&e)
		if _, err := verify(c.v, &e); err != nil || c.to <= c.from || c.to > len(whole) {
			t.Fatalf("%s, %d to %d of %d: %v", name, c.from, c.to, len(whole), err)
		}
		step := 1
		if name != "report" && name != "quote" && !*long { // one of 23, from a place that the name gives
			step = 23
		}
		for i := c.from + len(name)%step; i < c.to; i += step {
			*c.of(&e) = flip(whole, i)
			if _, err := verify(c.v, &e); !errors.Is(err, attestation.ErrRefused) {
				t.Errorf("%s: byte %d is changed, and %v", name, i, err)
			}
		}
	}
}

// The roots of a new network are those that the libraries of Google trust, and the roots of tests are not among them.
func TestRootsAreThoseOfTheMakers(t *testing.T) {
	roots := attestation.Roots()
	if err := attestation.ValidateRoots(roots); err != nil {
		t.Fatal(err)
	}
	got := map[canon.Digest]attestation.Technology{}
	for _, r := range roots {
		got[r.Digest] = r.Technology
	}
	for digest, technology := range makers(t) {
		if got[digest] != technology {
			t.Errorf("%s of %s is not pinned", digest, technology)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d roots", len(got))
	}
	for _, r := range teetest.Roots() {
		if got[r.Digest] != "" {
			t.Error("a root of tests is pinned")
		}
	}
}

// FuzzVerify writes bytes over a part of good evidence: nothing panics, a refusal names its check, and what is accepted
// says the same as before.
func FuzzVerify(f *testing.F) {
	vectors := []vector{ofSNP()[0], dcap("good", "", nothing), sgx("good", "", nothing)}
	var all []attestation.Evidence
	var good []attestation.Measurement
	for i, v := range vectors {
		all = append(all, v.of())
		r, err := verify(v, &all[i])
		if err != nil {
			f.Fatal(err)
		}
		good = append(good, r.Measurement)
		for part := range 6 {
			f.Add(i, part, 100*part, []byte{1, 0xff, 0x30, 0x82}, i*part)
		}
	}
	f.Fuzz(func(t *testing.T, which, part, at int, b []byte, cut int) {
		which = int(uint(which) % uint(len(vectors)))
		e := all[which]
		e.Certificates, e.Revocations = slices.Clone(e.Certificates), slices.Clone(e.Revocations)
		p := piece(&e, part)
		*p = slices.Clone(*p)
		copy((*p)[min(uint(at), uint(len(*p))):], b)
		*p = (*p)[:len(*p)-int(min(uint(cut), uint(len(*p))))]
		r, err := verify(vectors[which], &e)
		if err == nil && (r.Measurement != good[which] || r.Until > teetest.Now.Unix()+attestation.MaxAge) {
			t.Fatalf("%+v", r)
		}
		if f, ok := errors.AsType[*check.Failure](err); err != nil && (!ok || f.Code.Text() == "") {
			t.Fatal(err)
		}
	})
}

// FuzzPeek reads quotes of strangers: a real report, a real quote, and bytes that are neither.
func FuzzPeek(f *testing.F) {
	for _, b := range [][]byte{sevdata.AttestationBytes, tdxdata.RawQuote, nil, {4, 0, 2, 0}, {3, 0, 2, 0}} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := attestation.Peek(b); err != nil && !errors.Is(err, attestation.ErrRefused) {
			t.Fatal(err)
		}
	})
}

func piece(e *attestation.Evidence, part int) *[]byte {
	switch uint(part) % 6 {
	case 0:
		return &e.Quote
	case 1:
		return &e.Certificates[0]
	case 2:
		return &e.Certificates[len(e.Certificates)-1]
	case 3:
		return &e.Revocations[0]
	case 4:
		return &e.TCBInfo
	}
	return &e.QEIdentity
}

func BenchmarkVerify(b *testing.B) {
	for _, v := range []vector{ofSNP()[0], dcap("good", "", nothing)} {
		e := v.of()
		b.Run(v.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := verify(v, &e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
