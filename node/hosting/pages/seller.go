package pages

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/coin"
	rules "github.com/starling-network/starling/protocol/hosting"
)

// Paths of the interface: the manifest is free, a page is paid.
const (
	pathManifest = "/v1/pages"
	atOnce       = 16 // pages that are read at the same time
)

// Terms are those of a seller.
type Terms struct {
	Chain string
	Place rules.Place
	Coin  coin.Coin // of the prices
}

// Seller sells the pages of a folder. A page costs what a token of an answer does.
type Seller struct {
	manifest Manifest
	root     *os.Root
	terms    Terms
	vouchers *hosting.Vouchers
	look     func(ctx context.Context) error // at the channels of the network
	reads    chan struct{}
	free     *allowance
}

// NewSeller returns the seller of the data set in a folder.
func NewSeller(m Manifest, root *os.Root, t Terms, v *hosting.Vouchers, look func(ctx context.Context) error) *Seller {
	return &Seller{manifest: m, root: root, terms: t, vouchers: v, look: look, reads: make(chan struct{}, atOnce),
		free: &allowance{now: time.Now}}
}

// Handler answers requests for the manifest and for pages. A page that is not paid is answered with status 402 and the
// terms, and an address that read more manifests than its allowance with status 429.
func (s *Seller) Handler() http.Handler {
	mux, manifest := http.NewServeMux(), s.manifest.Encode()
	mux.HandleFunc("GET "+pathManifest, func(w http.ResponseWriter, r *http.Request) {
		if wait := s.free.take(r.RemoteAddr, len(manifest)); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
			refuse(w, http.StatusTooManyRequests, map[string]string{"error": "this address read the manifest too often"})
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(manifest)))
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(manifest) // the reader may be gone
	})
	mux.HandleFunc("GET "+pathManifest+"/{page}", s.page)
	return mux
}

func refuse(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the reader may be gone
}

func (s *Seller) page(w http.ResponseWriter, r *http.Request) {
	page, err := strconv.Atoi(r.PathValue("page"))
	if err != nil || page < 0 || page >= s.manifest.Pages() {
		refuse(w, http.StatusNotFound, map[string]string{"error": "no such page"})
		return
	}
	hold, channel, err := s.admit(r)
	if required, ok := errors.AsType[*x402.Required](err); ok {
		status, body := required.Refuse()
		refuse(w, status, body)
		return
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, map[string]string{"error": "the channels of the network are not known"})
		return
	}
	data, err := s.read(r.Context(), page)
	cost := s.price()
	if err != nil {
		cost = 0 // a page that this machine failed to read costs nothing
	}
	settled := x402.Settlement{Success: err == nil, Network: s.terms.Chain, Channel: channel, Cost: cost, Answer: 1}
	if hold != nil {
		var lost error
		if settled.Payer, settled.Total, lost = hold.Settle(cost); lost != nil {
			err = errors.Join(err, lost)
		}
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, map[string]string{"error": "the page cannot be read"})
		return
	}
	w.Header().Set(x402.HeaderResponse, settled.Header())
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data) // the reader may be gone: the page was paid
}

// read reads a page, and compares it with its digest: the file may have changed.
func (s *Seller) read(ctx context.Context, page int) ([]byte, error) {
	select {
	case s.reads <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.reads }()
	data, err := s.manifest.Read(s.root, page)
	if err != nil {
		return nil, err
	}
	return data, s.manifest.Check(page, data)
}

// price of a page in grains.
func (s *Seller) price() uint64 { return s.terms.Place.Prices.Cost(0, 1) }

// admit takes the voucher of a request, or answers with the terms. Pages without a price need none.
func (s *Seller) admit(r *http.Request) (*hosting.Hold, uint64, error) {
	cost := s.price()
	if cost == 0 {
		return nil, 0, nil
	}
	p := s.terms.Place
	extra := x402.Extra{Model: p.Model, Output: p.Prices.Output, Answer: 1, Most: cost}
	ask := func(why string) error {
		return x402.Ask(why, s.terms.Coin, x402.Terms{Network: s.terms.Chain, Resource: "http://" + r.Host + r.URL.Path,
			Description: "a page of a data set", MimeType: "application/octet-stream", PayTo: p.Provider, Timeout: 60,
			Extra: extra})
	}
	header := r.Header.Get(x402.HeaderPayment)
	if header == "" {
		return nil, 0, ask("the header " + x402.HeaderPayment + " with a voucher of a payment channel is needed")
	}
	v, err := x402.ReadPayment(header)
	if err != nil {
		return nil, 0, ask(err.Error())
	}
	if !s.vouchers.Knows(v.Channel) {
		if err := s.look(r.Context()); err != nil {
			return nil, 0, err
		}
	}
	hold, err := s.vouchers.Admit(v, cost)
	if err == nil {
		return hold, v.Channel, nil
	}
	if !errors.Is(err, hosting.ErrChannel) && !errors.Is(err, rules.ErrForged) {
		extra.Channel, extra.Total = v.Channel, s.vouchers.Total(v.Channel, cost)
	}
	return nil, 0, ask(err.Error())
}
