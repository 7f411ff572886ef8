package openai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Limits of connections, within which a request must have arrived. The model decides how long an answer takes, and
// Config.Timeout how long a client may take to read it.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 20 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
)

// Serve answers on a listener until ctx ends, and then gives those who are being answered a second. It closes the
// listener.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	h := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if h.Shutdown(patience) != nil {
			_ = h.Close() // the rest had a second to finish
		}
	})
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
