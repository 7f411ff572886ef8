package openai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Limits of connections: a request that does not come to its end ends with them. How long an answer may take is the
// model's business, how long its reader, Config.Timeout.
const (
	headerPatience = 5 * time.Second
	bodyPatience   = 20 * time.Second
	idlePatience   = 2 * time.Minute
	maxHeader      = 16 << 10
)

// Serve answers on a listener until ctx ends, and then gives those who are being answered a second. It closes the
// listener.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	h := &http.Server{Handler: handler, ReadHeaderTimeout: headerPatience, ReadTimeout: bodyPatience,
		IdleTimeout: idlePatience, MaxHeaderBytes: maxHeader}
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if h.Shutdown(patience) != nil {
			_ = h.Close() // whoever is left has had its second
		}
	})
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
