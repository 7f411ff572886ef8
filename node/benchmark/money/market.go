package money

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
	nodehosting "github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/gateway"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

const (
	chainID = "starling-bench-money"
	funds   = 1_000_000_000 // uzen of each account
	bond    = 10_000_000    // uzen of a provider
	price   = 100_000       // uzen for a million tokens
	broken  = 1500          // bytes of a stream after which a provider ends

	maxAnswer = 1 << 20 // bytes
)

// market is a chain with one validator, a model that three providers host, a gateway to them, and a server of the model
// itself: all in this process, over HTTP.
type market struct {
	local, through string // URLs
	gateway        *gateway.Gateway
	kill           atomic.Bool // the provider that answers next ends in the middle of the text

	ends []func() error
}

func (m *market) close() (err error) {
	for i := len(m.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, m.ends[i]())
	}
	return err
}

func key(name string) *wallet.Key {
	return wallet.KeyFromSeed(canon.Sum("starling/bench/money/account", []byte(name)))
}

func (m *market) open(ctx context.Context, dir string, o Options) error {
	names := []string{"payer"}
	for i := range providers {
		names = append(names, fmt.Sprint("provider-", i))
	}
	config := chain.Config{Home: filepath.Join(dir, "validator"), ChainID: chainID, BlockTime: time.Second / 2}
	for _, name := range names {
		config.Accounts = append(config.Accounts, chain.Funded{Address: key(name).Address(), Amount: funds})
	}
	v, err := chain.Start(ctx, config)
	if err != nil {
		return err
	}
	m.ends = append(m.ends, func() error { v.Stop(); return nil })
	account := func(name string) *client.Client {
		c := client.New(v.Client(), key(name))
		m.ends = append(m.ends, func() error { c.Close(); return nil })
		return c
	}
	payer := account("payer")
	if err := payer.Ready(ctx); err != nil {
		return err
	}
	h := host{folder: filepath.Join(dir, "hosted"), threads: o.Threads, market: m}
	if err := h.write(o); err != nil {
		return err
	}
	for _, name := range names[1:] {
		if err := h.provide(ctx, account(name), name); err != nil {
			return err
		}
	}
	local, err := h.engine()
	if err != nil {
		return err
	}
	if m.local, err = m.serve(openai.New(local, openai.Config{})); err != nil {
		return err
	}
	m.gateway, err = gateway.Open(ctx, gateway.Config{Network: payer.Hosting, Chain: chainID, Account: payer.Address(),
		Model: h.model, Budget: funds / 2, Dir: filepath.Join(dir, "gateway"), Private: true,
		Log: slog.New(slog.DiscardHandler), Height: func(ctx context.Context) (int64, error) {
			head, err := payer.Ledger.Head(ctx)
			return head.Height, err
		}})
	if err != nil {
		return err
	}
	m.ends = append(m.ends, m.gateway.Close)
	m.through, err = m.serve(openai.New(m.gateway, openai.Config{}))
	return err
}

// serve answers HTTP at a port of the loopback, and returns the URL.
func (m *market) serve(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = s.Serve(l) }() // until Close
	m.ends = append(m.ends, s.Close)
	return "http://" + l.Addr().String(), nil
}

// host is what all providers of the model have in common.
type host struct {
	*market
	folder  string
	threads int
	model   hosting.Model
	checked *checked.Model
}

// write writes the model, with random weights.
func (h *host) write(o Options) error {
	c, err := describe(o.Width, o.Layers)
	if err != nil {
		return err
	}
	if err := writeModel(c, h.folder); err != nil {
		return err
	}
	m, err := pretrained.Load(h.folder)
	if err != nil {
		return err
	}
	if h.checked, err = checked.New(m); err != nil {
		return err
	}
	h.model = hosting.Model{Name: "bench", Files: canon.Sum("starling/bench/money/files"), Weights: h.checked.Weights}
	return nil
}

// engine loads the model.
func (h *host) engine() (*serve.Engine, error) {
	e, err := serve.Open(h.folder, serve.Options{Name: h.model.Name, Threads: h.threads, Checked: true})
	if err == nil {
		h.ends = append(h.ends, func() error { e.Close(); return nil })
	}
	return e, err
}

// provide hosts the model for an account, which registers it if none has.
func (h *host) provide(ctx context.Context, c *client.Client, name string) error {
	err := c.Ready(ctx)
	if err == nil && h.model.ID == 0 {
		h.model.ID, err = c.Hosting.Register(ctx, h.model)
	}
	if err != nil {
		return err
	}
	e, err := h.engine()
	if err != nil {
		return err
	}
	v, err := nodehosting.OpenVouchers(filepath.Join(filepath.Dir(h.folder), name), chainID)
	if err != nil {
		return err
	}
	h.ends = append(h.ends, v.Close)
	place := hosting.Place{Model: h.model.ID, Provider: c.Address(), Bond: bond,
		Prices: hosting.Prices{Input: price, Output: price}}
	sign := signer.Signer{Model: h.checked, Chain: chainID, Number: h.model.ID, Key: key(name)}
	r := &nodehosting.Redeemer{Network: c.Hosting, Provider: c.Address(), Model: h.model.ID, Vouchers: v, Least: funds,
		Log: slog.New(slog.DiscardHandler)}
	p := nodehosting.New(e, nodehosting.Terms{Chain: chainID, Place: place, Coin: coin.Coin{},
		Receipt: func(made openai.Result) ([]byte, error) {
			head, err := c.Ledger.Head(ctx)
			if err != nil {
				return nil, err
			}
			s, err := sign.Sign(made.Drawn, head.Height)
			return s.Encode(), err
		}}, v, r.Look)
	mortal := &mortal{Handler: p.Handler(openai.New(p, openai.Config{})), kill: &h.kill}
	if place.URL, err = h.serve(mortal); err != nil {
		return err
	}
	return c.Hosting.Host(ctx, place)
}

// mortal is a provider that ends in the middle of a stream when kill is set, and answers nothing from then on.
type mortal struct {
	http.Handler
	kill *atomic.Bool
	dead atomic.Bool
}

func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.dead.Load() {
		panic(http.ErrAbortHandler)
	}
	m.Handler.ServeHTTP(&pulse{ResponseWriter: w, of: m}, r)
}

// pulse counts the bytes of an answer.
type pulse struct {
	http.ResponseWriter
	of      *mortal
	written int
}

// Unwrap is for http.ResponseController.
func (p *pulse) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *pulse) Write(b []byte) (int, error) {
	if p.written += len(b); p.written > broken && p.of.kill.Swap(false) {
		p.of.dead.Store(true)
		conn, _, err := http.NewResponseController(p.ResponseWriter).Hijack()
		if err != nil {
			return 0, err
		}
		return 0, errors.Join(net.ErrClosed, conn.Close())
	}
	return p.ResponseWriter.Write(b)
}

// ask asks a server for a text.
func ask(ctx context.Context, url string, seed, tokens int) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "bench", "prompt": "Once upon a time", "max_tokens": tokens,
		"seed": seed})
	if err != nil {
		return "", err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.1000s", r.Status, answer)
	}
	var made struct{ Choices []struct{ Text string } }
	if err := json.Unmarshal(answer, &made); err != nil {
		return "", err
	}
	if len(made.Choices) != 1 {
		return "", fmt.Errorf("an answer of %d texts", len(made.Choices))
	}
	return made.Choices[0].Text, nil
}
