package money

import (
	"context"
	"errors"
	"time"
)

const providers = 3

// hosted compares answers through a gateway with those of a local server, one request of each in turn, and then ends a
// provider in the middle of a text.
func hosted(ctx context.Context, dir string, o Options) (h Hosting, err error) {
	m := &market{}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := m.open(ctx, dir, o); err != nil {
		return h, err
	}
	h.Tokens = o.Tokens
	for _, url := range []string{m.local, m.through} { // channels open with the first request
		if _, err := ask(ctx, url, o.Requests, o.Tokens); err != nil {
			return h, err
		}
	}
	var took [2]float64
	var written [2]int
	for i := range o.Requests {
		for k, url := range []string{m.local, m.through} {
			began := time.Now()
			text, err := ask(ctx, url, i, o.Tokens)
			if err != nil {
				return h, err
			}
			took[k] += lap(&began)
			written[k] += len(text) // a byte is a token
		}
	}
	h.Local, h.Gateway = float64(written[0])/took[0], float64(written[1])/took[1]
	for i := range o.Requests {
		want, err := ask(ctx, m.local, i, o.Tokens)
		if err != nil {
			return h, err
		}
		if i == o.Requests/2 {
			m.kill.Store(true)
		}
		h.Requests++
		if got, err := ask(ctx, m.through, i, o.Tokens); err != nil || got != want {
			h.Lost++
		}
	}
	h.Failovers = m.gateway.Counts().Failovers
	return h, nil
}
