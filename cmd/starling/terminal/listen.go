package terminal

import (
	"context"
	"net"
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
