package terminal

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Listen listens at the host:port of the flag --listen.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, WithExit(&Problem{Code: "LISTEN", What: "cannot listen at " + address, Why: err.Error(),
			Fix: "give another host:port with --listen"}, ExitConflict)
	}
	return l, nil
}

// Serve answers requests at a listener until stop is called.
func Serve(l net.Listener, h http.Handler) (stop func()) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return func() { _ = server.Close(); <-served }
}
