package extra

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/web/openai"
)

// endless writes until its context ends.
type endless struct {
	openai.Model
	began chan struct{}
}

func (e endless) Bound(openai.Request) (prompt, most int, err error) { return 1, 1, nil }

func (e endless) Generate(ctx context.Context, _ openai.Request, _ func(openai.Piece) error) (openai.Result, error) {
	close(e.began)
	<-ctx.Done()
	return openai.Result{Tokens: 1}, ctx.Err()
}

// A pause ends the text under way, which the reader may ask for again, and admits no further one.
func TestAHostWritesNothingInAPause(t *testing.T) {
	p, err := pause.Open(t.TempDir(), pause.Conditions{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	m := endless{began: make(chan struct{})}
	g := gate{m, p, busy.New(time.Now)}
	ended := make(chan error)
	go func() {
		_, err := g.Generate(t.Context(), openai.Request{}, nil)
		ended <- err
	}()
	<-m.began
	if _, err := p.Pause(0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, openai.ErrBusy) {
		t.Errorf("the text under way ends with %v", err)
	}
	if _, err := g.Generate(t.Context(), openai.Request{}, nil); !errors.Is(err, openai.ErrBusy) {
		t.Errorf("in the pause: %v", err) // began would be closed twice
	}
	if classes, _ := g.busy.Shares(); len(classes) != 1 || classes[0].Class != busy.Hosting {
		t.Errorf("%+v", classes)
	}
}
