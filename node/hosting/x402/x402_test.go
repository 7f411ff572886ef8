package x402

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
)

var dai = coin.Coin{Denom: "adai", Symbol: "dai", Exponent: 18}

func asked(c coin.Coin) *Required {
	return Ask("pay first", c, Terms{Network: "net", Resource: "http://127.0.0.1/v1/completions", PayTo: "starling1x",
		Extra: Extra{Model: 3, Input: 5, Output: 7, Prompt: 11, Answer: 13, Most: 17, Channel: 19, Total: 23}})
}

// The terms have the field names of x402, amounts in base units as text, and are read back.
func TestTerms(t *testing.T) {
	r := asked(dai)
	status, body := r.Refuse()
	raw, err := json.Marshal(body)
	if err != nil || status != http.StatusPaymentRequired {
		t.Fatal(status, err)
	}
	var plain struct {
		Version int `json:"x402Version"`
		Accepts []map[string]any
	}
	if err := json.Unmarshal(raw, &plain); err != nil || plain.Version != 1 || len(plain.Accepts) != 1 {
		t.Fatalf("%s: %v", raw, err)
	}
	for key, want := range map[string]any{"scheme": Scheme, "network": "net", "maxAmountRequired": "17000000000",
		"asset": "adai", "payTo": "starling1x", "resource": "http://127.0.0.1/v1/completions"} {
		if got := plain.Accepts[0][key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	reason, terms, err := ReadRequired(bytes.NewReader(raw), "net")
	if err != nil || reason != "pay first" || terms != r.Accepts[0] {
		t.Errorf("%q %+v %v", reason, terms, err)
	}
	if own := asked(coin.Coin{}).Accepts[0]; own.Asset != "uzen" || own.Most != "17" {
		t.Errorf("%+v", own)
	}
	for name, body := range map[string]string{
		"another network": string(raw),
		"no JSON":         "pay",
		"too long":        strings.Repeat(" ", MaxRequired+1),
		"none":            `{"x402Version":1,"accepts":[]}`,
		"no amount":       strings.Replace(string(raw), `"17000000000"`, `"x"`, 1),
		"less":            strings.Replace(string(raw), `"17000000000"`, `"-1"`, 1),
		"too much":        strings.Replace(string(raw), `"most":"17"`, `"most":"9007199254740992"`, 1),
		"version":         strings.Replace(string(raw), `"x402Version":1`, `"x402Version":2`, 1),
	} {
		network := "net"
		if name == "another network" {
			network = "other"
		}
		if _, _, err := ReadRequired(strings.NewReader(body), network); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func voucher() hosting.Voucher {
	return hosting.Voucher{Chain: "net", Channel: 19, Amount: 1 << 52, Signature: []byte("signature")}
}

func TestPayments(t *testing.T) {
	v, err := ReadPayment(Pay(voucher()))
	if err != nil || v.Chain != "net" || v.Channel != 19 || v.Amount != 1<<52 || string(v.Signature) != "signature" {
		t.Errorf("%+v %v", v, err)
	}
	change := func(from, to string) string {
		raw, err := base64.StdEncoding.DecodeString(Pay(voucher()))
		if err != nil || !strings.Contains(string(raw), from) {
			t.Fatal(from, err)
		}
		return base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(raw), from, to, 1)))
	}
	for name, header := range map[string]string{
		"nothing":  "",
		"too long": strings.Repeat("A", MaxPayment+1),
		"no code":  "{}",
		"no JSON":  base64.StdEncoding.EncodeToString([]byte("x")),
		"version":  change(`"x402Version":1`, `"x402Version":3`),
		"scheme":   change(Scheme, "exact"),
		"amount":   change(`"4503599627370496"`, `"-1"`),
		"a number": change(`"4503599627370496"`, `1e3`),
	} {
		if _, err := ReadPayment(header); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettlements(t *testing.T) {
	s := Settlement{Success: true, Network: "net", Payer: "starling1p", Channel: 19, Cost: 7, Total: 11, Prompt: 2,
		Answer: 3, Receipt: []byte("receipt")}
	got, err := ReadSettlement(s.Header())
	if err != nil || string(got.Receipt) != "receipt" || got.Cost != 7 || got.Total != 11 || got.Answer != 3 {
		t.Errorf("%+v %v", got, err)
	}
	s.Answer = -1
	if _, err := ReadSettlement(s.Header()); !errors.Is(err, ErrForm) {
		t.Error(err)
	}
}

// Bytes of strangers are read back as they are written, or refused.
func FuzzReadPayment(f *testing.F) {
	f.Add(Pay(voucher()))
	f.Add("")
	f.Fuzz(func(t *testing.T, header string) {
		v, err := ReadPayment(header)
		if err != nil {
			return
		}
		again, err := ReadPayment(Pay(v))
		same := again.Channel == v.Channel && again.Amount == v.Amount && bytes.Equal(again.Signature, v.Signature)
		if err != nil && len(Pay(v)) <= MaxPayment || err == nil && !same {
			t.Errorf("%+v is read as %+v: %v", v, again, err)
		}
	})
}

func FuzzReadRequired(f *testing.F) {
	raw, _ := json.Marshal(asked(dai))
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, terms, err := ReadRequired(bytes.NewReader(raw), "net"); err == nil && terms.Network != "net" {
			t.Errorf("%+v", terms)
		}
	})
}

func FuzzReadSettlement(f *testing.F) {
	f.Add(Settlement{Cost: 5, Receipt: []byte("x")}.Header())
	f.Fuzz(func(t *testing.T, header string) {
		if s, err := ReadSettlement(header); err == nil && (s.Prompt < 0 || s.Answer < 0) {
			t.Errorf("%+v", s)
		}
	})
}
