package gateway

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/protocol/hosting"
)

const (
	fresh       = 10 * time.Second // for which the places of providers are taken as they were read
	typical     = 100              // tokens of the answer whose time is compared
	weight      = 0.3              // of the latest measurement in a mean
	firstPause  = time.Second      // after the first failure of a provider
	longestWait = 5 * time.Minute
)

// measured is what a gateway has measured of a provider.
type measured struct {
	latency, rate float64 // seconds to the first text; tokens per second after it
	answers       int
	failures      int // in a row
	until         time.Time
	excluded      string // why it is not asked any more
}

// seconds is the time of a typical answer; 0: not measured.
func (m *measured) seconds() float64 {
	if m.answers == 0 {
		return 0
	}
	return m.latency + typical/max(m.rate, 1e-3)
}

// router knows the providers of a model, and chooses among them.
type router struct {
	network purse.Network
	model   uint64
	denom   string
	now     func() time.Time

	mu     sync.Mutex
	read   time.Time
	places []hosting.Place
	about  map[string]*measured
}

// of needs the lock.
func (r *router) of(provider string) *measured {
	m := r.about[provider]
	if m == nil {
		m = &measured{}
		r.about[provider] = m
	}
	return m
}

// candidates are the places to ask, the best first: by the product of price and time, each in relation to the least. A
// provider that was not measured has the least time, so that it is measured. One that failed waits, and is asked when
// no other is left.
func (r *router) candidates(ctx context.Context) ([]hosting.Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); now.Sub(r.read) > fresh {
		places, err := r.network.Places(ctx, r.model)
		if err != nil && r.read.IsZero() {
			return nil, err
		}
		if err == nil {
			r.places, r.read = places, now
		}
	}
	var list []hosting.Place
	price, seconds := math.Inf(1), math.Inf(1)
	for _, p := range r.places {
		m := r.of(p.Provider)
		if !p.Open() || p.Prices.Denom != r.denom || m.excluded != "" {
			continue
		}
		list = append(list, p)
		price = min(price, priceOf(p))
		if s := m.seconds(); s > 0 {
			seconds = min(seconds, s)
		}
	}
	score := func(p hosting.Place) float64 {
		m := r.of(p.Provider)
		s := priceOf(p) / price
		if m.seconds() > 0 {
			s *= m.seconds() / seconds
		}
		if r.now().Before(m.until) {
			s += 1e12
		}
		return s
	}
	slices.SortStableFunc(list, func(a, b hosting.Place) int {
		return cmp.Or(cmp.Compare(score(a), score(b)), cmp.Compare(a.Provider, b.Provider))
	})
	return list, nil
}

// priceOf is the price of a typical request, as many tokens in as out.
func priceOf(p hosting.Place) float64 { return 1 + float64(p.Prices.Input) + float64(p.Prices.Output) }

// answered records the times of an answer.
func (r *router) answered(provider string, latency, whole time.Duration, tokens int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.of(provider)
	m.failures, m.until = 0, time.Time{}
	rate := float64(max(tokens-1, 1)) / max((whole-latency).Seconds(), 1e-6)
	if m.answers++; m.answers == 1 {
		m.latency, m.rate = latency.Seconds(), rate
		return
	}
	m.latency += weight * (latency.Seconds() - m.latency)
	m.rate += weight * (rate - m.rate)
}

// failed lets a provider wait, longer after each failure.
func (r *router) failed(provider string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.of(provider)
	m.until = r.now().Add(min(firstPause<<min(m.failures, 20), longestWait))
	m.failures++
}

// exclude ends the use of a provider.
func (r *router) exclude(provider, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(provider).excluded = why
}

// Standing is what a gateway knows of a provider.
type Standing struct {
	Model    uint64  `json:"model"` // number
	Provider string  `json:"provider"`
	Latency  float64 `json:"latency_seconds"`
	Rate     float64 `json:"tokens_per_second"`
	Answers  int     `json:"answers"`
	Failures int     `json:"failures"` // in a row
	Excluded string  `json:"excluded,omitempty"`
}

// standings lists the providers that were asked, in the order of their addresses.
func (r *router) standings() (list []Standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for provider, m := range r.about {
		if m.answers+m.failures > 0 || m.excluded != "" {
			list = append(list, Standing{Model: r.model, Provider: provider, Latency: m.latency, Rate: m.rate,
				Answers: m.answers, Failures: m.failures, Excluded: m.excluded})
		}
	}
	slices.SortFunc(list, func(a, b Standing) int { return cmp.Compare(a.Provider, b.Provider) })
	return list
}

// String is a line about a provider.
func (s Standing) String() string {
	if s.Excluded != "" {
		return fmt.Sprintf("%s  not asked any more: %s", s.Provider, s.Excluded)
	}
	return fmt.Sprintf("%s  %d answers, %.3f s to the first text, %.1f tokens/s", s.Provider, s.Answers, s.Latency, s.Rate)
}
