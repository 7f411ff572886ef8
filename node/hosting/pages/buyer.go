package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/hosting"
)

// Errors of buyers.
var (
	ErrNone   = errors.New("no provider sells the page")
	errSeller = errors.New("the provider did not answer as it has to")
)

const patience = 2 * time.Minute // for an answer, with a page

// Buyer buys pages of one data set from its providers, the cheapest first.
type Buyer struct {
	Chain  string
	Model  hosting.Model   // that the data set is on the network
	Places []hosting.Place // of its providers, with prices in the coin of the purse
	Client *http.Client
	Purse  *purse.Purse

	excluded map[string]error // providers that are not asked any more
}

// Counts of a purchase.
type Counts struct {
	Pages   int    `json:"pages"`   // that were bought
	Present int    `json:"present"` // that were there already, and cost nothing
	Bytes   int64  `json:"bytes"`   // that were bought
	Spent   uint64 `json:"spent"`   // grains
}

// each asks the providers, the cheapest first, until one answers.
func (b *Buyer) each(do func(p hosting.Place) error) error {
	places := slices.Clone(b.Places)
	slices.SortStableFunc(places, func(a, c hosting.Place) int { return cmp.Compare(a.Prices.Output, c.Prices.Output) })
	failed := []error{ErrNone}
	for _, p := range places {
		if why := b.excluded[p.Provider]; why != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.Provider, why))
			continue
		}
		err := do(p)
		if err == nil || errors.Is(err, purse.ErrBudget) {
			return err
		}
		if b.excluded == nil {
			b.excluded = map[string]error{}
		}
		b.excluded[p.Provider] = err
		failed = append(failed, fmt.Errorf("%s: %w", p.Provider, err))
	}
	return errors.Join(failed...)
}

// Manifest gets the manifest, and compares it with the network.
func (b *Buyer) Manifest(ctx context.Context) (m Manifest, err error) {
	err = b.each(func(p hosting.Place) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		reply, err := b.get(ctx, p, pathManifest, "")
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		data, err := body(reply, MaxManifest)
		if err == nil {
			m, err = Decode(data)
		}
		if err == nil {
			err = m.Is(b.Model)
		}
		return err
	})
	return m, err
}

// Fetch gets pages of a data set into a folder. Pages that are there are not bought again.
func (b *Buyer) Fetch(ctx context.Context, m Manifest, pages []int, to string,
	progress func(done, of int)) (c Counts, err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return c, err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return c, err
	}
	defer root.Close()
	for i, page := range pages {
		if page < 0 || page >= m.Pages() {
			return c, fmt.Errorf("%w: %d, of %d", ErrPage, page, m.Pages())
		}
		if data, err := m.Read(root, page); err == nil && m.Check(page, data) == nil {
			c.Present++
			continue
		}
		before := b.Purse.Spent()
		data, err := b.page(ctx, m, page)
		c.Spent += b.Purse.Spent() - before
		if err == nil {
			err = m.Write(root, page, data)
		}
		if err != nil {
			return c, err
		}
		c.Pages++
		c.Bytes += int64(len(data))
		progress(i+1, len(pages))
	}
	return c, nil
}

// page buys a page. A provider whose page is not that of the manifest keeps its price, and is not asked any more.
func (b *Buyer) page(ctx context.Context, m Manifest, page int) (data []byte, err error) {
	err = b.each(func(p hosting.Place) error {
		var err error
		if data, err = b.ask(ctx, p, page, m.Size(page)); err == nil {
			err = m.Check(page, data)
		}
		return err
	})
	return data, err
}

// ask buys a page from one provider.
func (b *Buyer) ask(ctx context.Context, p hosting.Place, page, size int) (data []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path := pathManifest + "/" + strconv.Itoa(page)
	reply, err := b.get(ctx, p, path, b.Purse.Probe(p))
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusPaymentRequired {
		defer reply.Body.Close()
		return body(reply, size) // it is free
	}
	_, terms, err := x402.ReadRequired(reply.Body, b.Chain)
	_ = reply.Body.Close() // it was read
	if err == nil {
		err = agree(p, terms)
	}
	if err != nil {
		return nil, err
	}
	hold, payment, err := b.Purse.Pay(ctx, p, terms)
	if err != nil {
		return nil, err
	}
	cost, sent := uint64(0), false
	defer func() {
		if sent && cost == 0 {
			hold.Left() // the provider may charge it
		}
		err = errors.Join(err, hold.Settle(cost))
	}()
	sent = true
	if reply, err = b.get(ctx, p, path, payment); err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", errSeller, reply.StatusCode)
	}
	settled, err := x402.ReadSettlement(reply.Header.Get(x402.HeaderResponse))
	if err == nil && settled.Cost > hold.Most() {
		err = fmt.Errorf("%w: %d grains for a page, at most %d", purse.ErrOverbill, settled.Cost, hold.Most())
	}
	if err != nil {
		cost = hold.Most()
		return nil, err
	}
	cost = settled.Cost
	return body(reply, size)
}

// agree compares the terms of a provider with its place on the network.
func agree(p hosting.Place, t x402.Terms) error {
	x := t.Extra
	if t.PayTo != p.Provider || x.Model != p.Model || x.Prompt != 0 || x.Answer != 1 || x.Most > p.Prices.Cost(0, 1) {
		return fmt.Errorf("%w: %d grains to %.80q for %d pages of data set %d", purse.ErrOverbill, x.Most, t.PayTo, x.Answer,
			x.Model)
	}
	return nil
}

func (b *Buyer) get(ctx context.Context, p hosting.Place, path, payment string) (*http.Response, error) {
	at, err := url.Parse(p.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("%w: %.100q is no URL of HTTP", errSeller, p.URL)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	if payment != "" {
		q.Header.Set(x402.HeaderPayment, payment)
	}
	return b.Client.Do(q)
}

// body reads an answer of at most some bytes.
func body(reply *http.Response, most int) ([]byte, error) {
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", errSeller, reply.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(reply.Body, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%w: more than %d bytes", errSeller, most)
	}
	return data, err
}
