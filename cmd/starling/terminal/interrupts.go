package terminal

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interrupts returns the signals to end that come after the one that ended the context of a command.
func Interrupts(ctx context.Context) <-chan os.Signal {
	stop := make(chan os.Signal, 2)
	go func() {
		<-ctx.Done()
		signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	}()
	return stop
}
