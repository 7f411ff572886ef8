package uplink

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A wait ends when no block comes, and not while blocks come.
func TestWhile(t *testing.T) {
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		blocks, began := make(chan int), time.Now()
		go func() {
			for range 5 {
				<-time.After(50 * time.Second) // by the clock of the test
				blocks <- 1
			}
		}()
		err := While(t.Context(), blocks, time.Minute, wait)
		if took := time.Since(began); !errors.Is(err, ErrSilent) || took != 5*50*time.Second+time.Minute {
			t.Errorf("%v after %s", err, took)
		}
		closed := make(chan int)
		close(closed)
		if err := While(t.Context(), closed, time.Minute, wait); !errors.Is(err, ErrSilent) {
			t.Errorf("the connection ended: %v", err)
		}
		gone := errors.New("gone")
		if err := While(t.Context(), blocks, time.Minute, func(context.Context) error { return gone }); err != gone {
			t.Errorf("an error of its own: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := While(ctx, blocks, 0, wait); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a limit: %v", err)
		}
	})
}
