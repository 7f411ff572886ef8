package uplink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/starling-network/starling/client/endpoint"
)

// A worker waits for the network of its machine, and not for a validator that does not run.
func TestConnectWaitsForARoute(t *testing.T) {
	none := &endpoint.Unreachable{Network: "http://a",
		Err: fmt.Errorf("dial: %w", os.NewSyscallError("connect", syscall.EHOSTUNREACH))}
	refused := &endpoint.Unreachable{Network: "http://a", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx     context.Context
		answers []error // the last again and again
		tries   int
		want    error
	}{
		"at once":      {t.Context(), []error{nil}, 1, nil},
		"a bit later":  {t.Context(), []error{none, none, nil}, 3, nil},
		"never":        {t.Context(), []error{none}, routeTries, none},
		"refused":      {t.Context(), []error{refused, nil}, 1, refused},
		"then refused": {t.Context(), []error{none, refused, nil}, 2, refused},
		"given up":     {ended, []error{none}, 1, none},
	} {
		tries, said := 0, 0
		every := routeEvery / 1_000_000
		if c.ctx == ended {
			every = routeEvery // the context ends the wait
		}
		_, err := connect(c.ctx, func(string) { said++ }, every, func() (any, error) {
			tries++
			return nil, c.answers[min(tries, len(c.answers))-1]
		})
		if !errors.Is(err, c.want) || tries != c.tries || said != min(1, tries-1) && c.ctx != ended {
			t.Errorf("%s: %v after %d tries, said %d times", name, err, tries, said)
		}
	}
}
