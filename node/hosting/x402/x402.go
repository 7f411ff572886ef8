// Package x402 writes and reads payments over HTTP in the form of x402 (version 1): a request without a payment is
// answered with status 402 and the terms, a paid one has a voucher of a payment channel in the header X-PAYMENT, and
// its answer has the cost in X-PAYMENT-RESPONSE. Amounts are decimal numbers in strings.
//
// The scheme is Scheme. Its vouchers are those of protocol/hosting. The package moves no coins and signs nothing.
package x402

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
)

// Names of the protocol.
const (
	Version        = 1
	Scheme         = "starling-channel"
	HeaderPayment  = "X-PAYMENT"
	HeaderResponse = "X-PAYMENT-RESPONSE"
)

// Limits of bytes of strangers.
const (
	MaxPayment    = 2 << 10   // of the header X-PAYMENT
	MaxRequired   = 64 << 10  // of the body of an answer with status 402
	MaxSettlement = 256 << 10 // of the header X-PAYMENT-RESPONSE: a receipt has most of it
)

// ErrForm is wrapped by the reasons why bytes are no payment, no terms and no settlement.
var ErrForm = errors.New("x402: not in the form of a payment")

// Required is the body of an answer with status 402. It is the error of a request that is not paid.
type Required struct {
	Version int     `json:"x402Version"`
	Reason  string  `json:"error"`
	Accepts []Terms `json:"accepts"`
}

// Terms say how a request may be paid.
type Terms struct {
	Scheme      string `json:"scheme"`
	Network     string `json:"network"` // chain ID
	Most        string `json:"maxAmountRequired"`
	Resource    string `json:"resource"`
	Description string `json:"description"`
	MimeType    string `json:"mimeType"`
	PayTo       string `json:"payTo"`
	Timeout     int    `json:"maxTimeoutSeconds"`
	Asset       string `json:"asset"` // denomination; Most is in its base units
	Extra       Extra  `json:"extra"`
}

// Extra has the fields of the scheme. Amounts are in grains of the coin.
type Extra struct {
	Model   uint64 `json:"model,string"`
	Input   uint64 `json:"input,string"`  // price of a million tokens of prompts
	Output  uint64 `json:"output,string"` // price of a million tokens of answers
	Prompt  int    `json:"promptTokens"`
	Answer  int    `json:"maxAnswerTokens"`
	Most    uint64 `json:"most,string"`              // the most that this request can cost
	Channel uint64 `json:"channel,string,omitempty"` // that was named; 0: none
	Total   uint64 `json:"total,string,omitempty"`   // that a voucher of this channel must be for, at least
}

// Error implements error.
func (r *Required) Error() string { return r.Reason }

// Refuse is the status and the body of the answer.
func (r *Required) Refuse() (status int, body any) { return http.StatusPaymentRequired, r }

// Ask returns the answer to a request that is not paid, in a coin.
func Ask(why string, c coin.Coin, t Terms) *Required {
	t.Scheme, t.Most = Scheme, c.Base(t.Extra.Most).String()
	if t.Asset = c.Denom; c.Own() {
		t.Asset = "uzen"
	}
	return &Required{Version: Version, Reason: why, Accepts: []Terms{t}}
}

// ReadRequired reads the body of an answer with status 402, and returns the terms of the scheme for a network.
func ReadRequired(body io.Reader, network string) (reason string, t Terms, err error) {
	raw, err := io.ReadAll(io.LimitReader(body, MaxRequired+1))
	if err != nil {
		return "", t, err
	}
	var r Required
	if len(raw) > MaxRequired {
		return "", t, fmt.Errorf("%w: terms of more than %d bytes", ErrForm, MaxRequired)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", t, fmt.Errorf("%w: %w", ErrForm, err)
	}
	for _, t := range r.Accepts {
		most, ok := new(big.Int), false
		if len(t.Most) < 60 {
			most, ok = most.SetString(t.Most, 10)
		}
		x := t.Extra
		sane := ok && most.Sign() >= 0 && max(x.Most, x.Total) < hosting.MaxAmount && min(x.Prompt, x.Answer) >= 0
		if r.Version == Version && t.Scheme == Scheme && t.Network == network && sane {
			return r.Reason, t, nil
		}
	}
	return r.Reason, t, fmt.Errorf("%w: none of %d ways to pay is %s on %s", ErrForm, len(r.Accepts), Scheme, network)
}

// payment is the JSON of the header X-PAYMENT.
type payment struct {
	Version int     `json:"x402Version"`
	Scheme  string  `json:"scheme"`
	Network string  `json:"network"`
	Payload payload `json:"payload"`
}

type payload struct {
	Channel   uint64 `json:"channel,string"`
	Amount    uint64 `json:"amount,string"` // grains
	Signature []byte `json:"signature"`
}

// Pay is the header X-PAYMENT of a voucher.
func Pay(v hosting.Voucher) string {
	return encode(payment{Version: Version, Scheme: Scheme, Network: v.Chain,
		Payload: payload{Channel: v.Channel, Amount: v.Amount, Signature: v.Signature}})
}

// ReadPayment reads the header X-PAYMENT. It checks no signature.
func ReadPayment(header string) (v hosting.Voucher, err error) {
	var p payment
	if err := decode(header, MaxPayment, &p); err != nil {
		return v, err
	}
	if p.Version != Version || p.Scheme != Scheme {
		return v, fmt.Errorf("%w: version %d of the scheme %.40q, wanted %d of %s", ErrForm, p.Version, p.Scheme, Version,
			Scheme)
	}
	return hosting.Voucher{Chain: p.Network, Channel: p.Payload.Channel, Amount: p.Payload.Amount,
		Signature: p.Payload.Signature}, nil
}

// Settlement states the cost of a request. Amounts are in grains.
type Settlement struct {
	Success bool   `json:"success"`
	Network string `json:"network"`
	Payer   string `json:"payer,omitempty"`
	Channel uint64 `json:"channel,string"`
	Cost    uint64 `json:"cost,string"`
	Total   uint64 `json:"total,string"` // of all requests of the channel
	Prompt  int    `json:"promptTokens"`
	Answer  int    `json:"answerTokens"`
	Receipt []byte `json:"receipt,omitempty"` // signed by the provider: the canonical bytes of protocol/answer.Signed
}

// Header is the header X-PAYMENT-RESPONSE.
func (s Settlement) Header() string { return encode(s) }

// ReadSettlement reads the header X-PAYMENT-RESPONSE.
func ReadSettlement(header string) (s Settlement, err error) {
	err = decode(header, MaxSettlement, &s)
	if err == nil && (s.Prompt < 0 || s.Answer < 0) {
		err = fmt.Errorf("%w: %d and %d tokens", ErrForm, s.Prompt, s.Answer)
	}
	return s, err
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of this package have JSON
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func decode(header string, most int, into any) error {
	if header == "" || len(header) > most {
		return fmt.Errorf("%w: a header of %d bytes, wanted 1 to %d", ErrForm, len(header), most)
	}
	raw, err := base64.StdEncoding.DecodeString(header)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}
