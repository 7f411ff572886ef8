package dcap

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/starling-network/starling/protocol/attestation/check"
)

// Limits of the documents of the service.
const (
	MaxDocument = 96 << 10 // bytes
	maxLevels   = 256
)

// hexed is a text of hexadecimal digits.
type hexed []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hexed) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	*h = b
	return err
}

// date is a date such as 2026-11-30T08:00:00Z, in seconds since 1970.
type date int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *date) UnmarshalText(text []byte) error {
	if len(text) != len("2006-01-02T15:04:05Z") {
		return strconv.ErrSyntax
	}
	var n [6]int64
	for i, at := range [6]int{0, 5, 8, 11, 14, 17} {
		end := at + 2
		if i == 0 {
			end = 4
		}
		v, err := strconv.ParseUint(string(text[at:end]), 10, 16)
		if err != nil {
			return err
		}
		n[i] = int64(v)
	}
	if string(text[4:5])+string(text[7:8])+string(text[10:11])+string(text[13:14])+string(text[16:17])+
		string(text[19:]) != "--T::Z" || n[0] < 1970 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 || n[3] > 23 ||
		n[4] > 59 || n[5] > 59 {
		return strconv.ErrRange
	}
	// days since 1970 in a year that begins in March, so that the day of a leap year is the last one
	y, m := n[0], n[1]-3
	if m < 0 {
		y, m = y-1, m+12
	}
	days := 365*y + y/4 - y/100 + y/400 + (153*m+2)/5 + n[2] - 1 - 719_468
	*d = date(((days*24+n[3])*60+n[4])*60 + n[5])
	return nil
}

// level is a set of versions, with its status.
type level struct {
	TCB struct {
		SGX     []component `json:"sgxtcbcomponents"`
		TDX     []component `json:"tdxtcbcomponents"`
		PCE     uint16      `json:"pcesvn"`
		Version uint16      `json:"isvsvn"`
	} `json:"tcb"`
	Date   date   `json:"tcbDate"`
	Status string `json:"tcbStatus"`
}

type component struct {
	Version uint8 `json:"svn"`
}

// upToDate is the only status that is accepted.
const upToDate = "UpToDate"

// module is a TDX module.
type module struct {
	ID         string  `json:"id"`
	Signer     hexed   `json:"mrsigner"`
	Attributes hexed   `json:"attributes"`
	Mask       hexed   `json:"attributesMask"`
	Levels     []level `json:"tcbLevels"`
}

// platform is the document about the levels of a kind of processor.
type platform struct {
	ID         string   `json:"id"`
	Version    int      `json:"version"`
	Issued     date     `json:"issueDate"`
	Next       date     `json:"nextUpdate"`
	FMSPC      hexed    `json:"fmspc"`
	PCE        hexed    `json:"pceId"`
	Number     int64    `json:"tcbEvaluationDataNumber"`
	Module     module   `json:"tdxModule"`
	Identities []module `json:"tdxModuleIdentities"`
	Levels     []level  `json:"tcbLevels"`
}

// identity is the document about a quoting enclave.
type identity struct {
	ID         string  `json:"id"`
	Version    int     `json:"version"`
	Issued     date    `json:"issueDate"`
	Next       date    `json:"nextUpdate"`
	Number     int64   `json:"tcbEvaluationDataNumber"`
	Misc       hexed   `json:"miscselect"`
	MiscMask   hexed   `json:"miscselectMask"`
	Attributes hexed   `json:"attributes"`
	Mask       hexed   `json:"attributesMask"`
	Signer     hexed   `json:"mrsigner"`
	Product    uint16  `json:"isvprodid"`
	Levels     []level `json:"tcbLevels"`
}

// document reads a document of the service, {"NAME": ..., "signature": "..."}, whose signature is over the bytes of the
// value of NAME as they are.
func document(b []byte, name string, by *x509.Certificate, into any, code check.Code) error {
	if len(b) > MaxDocument {
		return check.Fail(check.Size, "a document of %d bytes, at most %d", len(b), MaxDocument)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return check.Fail(code, "%v", err)
	}
	var signature hexed
	if err := json.Unmarshal(parts["signature"], &signature); err != nil || len(parts) != 2 {
		return check.Fail(code, "a document with a signature is wanted, of %d parts: %v", len(parts), err)
	}
	if !signed(by, parts[name], signature) {
		return check.Fail(code, "the signature is not that of %s over %s", by.Subject.CommonName, name)
	}
	if err := json.Unmarshal(parts[name], into); err != nil {
		return check.Fail(code, "%s: %v", name, err)
	}
	return nil
}

// signed checks a signature of 64 bytes on P-256 with the key of a certificate.
func signed(by *x509.Certificate, message, signature []byte) bool {
	key, ok := by.PublicKey.(*ecdsa.PublicKey)
	return ok && key.Curve == elliptic.P256() && verifies(key, message, signature)
}

func verifies(key *ecdsa.PublicKey, message, signature []byte) bool {
	if len(signature) != pointSize {
		return false
	}
	digest := sha256.Sum256(message)
	return ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
}

// masked reports whether a value under a mask is as expected.
func masked(value, mask, want []byte) bool {
	if len(mask) != len(value) || len(want) != len(value) {
		return false
	}
	got := bytes.Clone(value)
	for i := range got {
		got[i] &= mask[i]
	}
	return bytes.Equal(got, want)
}
