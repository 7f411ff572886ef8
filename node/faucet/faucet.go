// Package faucet gives coins of one account, over HTTP, to any address, within daily limits: for test networks, whose
// coins have no value. It records its gifts in a file, so that a restart keeps the limits.
//
// It does not identify persons: one with ten addresses on ten hosts gets ten gifts, up to the limit for all together.
package faucet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/wallet"
)

// Limits bound what is given within a day. Each is above zero.
type Limits struct {
	Amount  uint64 // uzen of one gift; an address gets one a day
	PerHost int    // gifts to one host
	Total   uint64 // uzen of all gifts
}

const (
	day      = 24 * time.Hour
	maxBody  = 4 << 10
	sendTime = time.Minute
)

// Send moves coins, and returns when that is in a block.
type Send func(ctx context.Context, to string, uzen uint64) (hash string, height int64, err error)

// gift is what was given.
type gift struct {
	Time    time.Time `json:"time"`
	Address string    `json:"address"`
	Host    string    `json:"host"`
	Uzen    uint64    `json:"uzen"`
}

// Faucet is an HTTP handler: POST / with {"address": ADDRESS} gives, GET / says the limits.
type Faucet struct {
	limits Limits
	send   Send
	now    func() time.Time

	mu    sync.Mutex // of one gift after the other: an account signs one transaction at a time
	file  *os.File
	gifts []gift // of the last day
}

// Open reads what was given from a file, and keeps it there.
func Open(path string, limits Limits, send Send, now func() time.Time) (*Faucet, error) {
	if limits.Amount == 0 || limits.PerHost < 1 || limits.Total < limits.Amount {
		return nil, errors.New("faucet: the limits are above zero, and the total is at least one gift")
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	f := &Faucet{limits: limits, send: send, now: now, file: file}
	for s := bufio.NewScanner(file); s.Scan(); {
		var g gift
		if json.Unmarshal(s.Bytes(), &g) == nil { // a last line may be cut off
			f.gifts = append(f.gifts, g)
		}
	}
	return f, nil
}

// Close closes the file.
func (f *Faucet) Close() error { return f.file.Close() }

// refusal is an answer that gives nothing.
type refusal struct {
	status int
	Code   string `json:"code"`
	Error  string `json:"error"`
	wait   time.Duration
}

// given is an answer that gives.
type given struct {
	Address string `json:"address"`
	Uzen    uint64 `json:"amount_uzen"`
	Hash    string `json:"hash"`
	Height  int64  `json:"height"`
}

func (f *Faucet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path != "/":
		refuse(w, refusal{http.StatusNotFound, "NOT_FOUND", "POST / gives coins", 0})
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(map[string]any{"amount_uzen": f.limits.Amount, "gifts_per_address_a_day": 1,
			"gifts_per_host_a_day": f.limits.PerHost, "total_uzen_a_day": f.limits.Total})
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		refuse(w, refusal{http.StatusMethodNotAllowed, "METHOD", "POST / gives coins", 0})
	default:
		f.give(w, r)
	}
}

func refuse(w http.ResponseWriter, why refusal) {
	if why.wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(why.wait/time.Second)+1))
	}
	w.WriteHeader(why.status)
	_ = json.NewEncoder(w).Encode(why)
}

func (f *Faucet) give(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Address string `json:"address"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in)
	if err == nil {
		err = wallet.CheckAddress(in.Address)
	}
	if err != nil {
		refuse(w, refusal{http.StatusBadRequest, "ADDRESS_INVALID", `send {"address": "starling1..."}: ` + err.Error(), 0})
		return
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := gift{f.now().UTC(), strings.ToLower(in.Address), host, f.limits.Amount}
	if why, ok := f.allowed(g); !ok {
		refuse(w, why)
		return
	}
	// The gift counts before it is sent, so that a lost answer does not lead to a second gift.
	if err := f.note(g); err != nil {
		refuse(w, refusal{http.StatusInternalServerError, "FAUCET_DISK", "the faucet cannot write down what it gives", 0})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), sendTime)
	defer cancel()
	hash, height, err := f.send(ctx, g.Address, g.Uzen)
	if err != nil {
		refuse(w, refusal{http.StatusBadGateway, "FAUCET_FAILED", err.Error(), 0})
		return
	}
	_ = json.NewEncoder(w).Encode(given{g.Address, g.Uzen, hash, height})
}

func (f *Faucet) note(g gift) error {
	line, err := json.Marshal(g)
	if err == nil {
		_, err = f.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err == nil {
		f.gifts = append(f.gifts, g)
	}
	return err
}

// allowed holds a gift against the limits of the day before it.
func (f *Faucet) allowed(g gift) (refusal, bool) {
	for len(f.gifts) > 0 && g.Time.Sub(f.gifts[0].Time) >= day {
		f.gifts = f.gifts[1:]
	}
	total, hosts := uint64(0), 0
	var oldest, ofHost time.Time
	for _, old := range f.gifts {
		if oldest.IsZero() {
			oldest = old.Time
		}
		if old.Address == g.Address {
			return limited("this address got coins within the last day", old.Time, g.Time), false
		}
		if old.Host == g.Host {
			if hosts++; ofHost.IsZero() {
				ofHost = old.Time
			}
		}
		total += old.Uzen
	}
	switch {
	case hosts >= f.limits.PerHost:
		return limited("this host got as much as one may in a day", ofHost, g.Time), false
	case total+g.Uzen > f.limits.Total:
		return limited("the faucet gave all that it gives in a day", oldest, g.Time), false
	}
	return refusal{}, true
}

func limited(why string, since, now time.Time) refusal {
	return refusal{http.StatusTooManyRequests, "FAUCET_LIMIT", why, day - now.Sub(since)}
}
