package faucet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Gift is what a faucet gave.
type Gift struct {
	Address string `json:"address"`
	Uzen    uint64 `json:"amount_uzen"`
	Hash    string `json:"hash"`
	Height  int64  `json:"height"`
}

// ErrRefused is wrapped by the error for an answer of a faucet that gives nothing.
var ErrRefused = errors.New("the faucet gives nothing")

// Refused is a refusal in the words of a faucet. Wait is the time after which it may give again; 0: it does not say.
type Refused struct {
	Code string
	Text string
	Wait time.Duration
}

// Error implements error.
func (r *Refused) Error() string { return fmt.Sprintf("%v: %s (%s)", ErrRefused, r.Text, r.Code) }

// Unwrap makes a refusal ErrRefused.
func (r *Refused) Unwrap() error { return ErrRefused }

// Limits of an answer: a faucet answers when its gift is in a block.
const (
	askTime   = 90 * time.Second
	maxAnswer = 64 << 10
	maxText   = 500
)

// Ask asks the faucet at a URL for coins for an address. It returns a *Refused if the faucet answers and gives nothing.
func Ask(ctx context.Context, url, address string) (g Gift, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	body, err := json.Marshal(map[string]string{"address": address})
	if err != nil {
		return g, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return g, fmt.Errorf("faucet: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return g, fmt.Errorf("faucet: %w", err)
	}
	defer func() { err = errors.Join(err, r.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return g, fmt.Errorf("faucet: %w", err)
	}
	if r.StatusCode != http.StatusOK {
		return g, refusalOf(r, text)
	}
	if err := json.Unmarshal(text, &g); err != nil || g.Address != address {
		return g, &Refused{Code: "NO_FAUCET", Text: "the answer is not that of a faucet"}
	}
	return g, nil
}

// refusalOf reads a refusal. Its text is of a stranger: control characters and all after some hundred of them are left
// out.
func refusalOf(r *http.Response, text []byte) error {
	var said struct {
		Code  string `json:"code"`
		Error string `json:"error"`
	}
	if json.Unmarshal(text, &said) != nil || said.Code == "" {
		said.Code, said.Error = "NO_FAUCET", "it answers "+r.Status
	}
	wait, _ := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 31)
	return &Refused{Code: printable(said.Code), Text: printable(said.Error), Wait: time.Duration(wait) * time.Second}
}

// printable is a text without control characters, and of maxText characters at most.
func printable(text string) string {
	clean := make([]rune, 0, maxText)
	for _, c := range text {
		if c >= ' ' && c != 0x7f && len(clean) < maxText {
			clean = append(clean, c)
		}
	}
	return string(clean)
}
