package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of connections. They end a request that is not sent to its end, and one whose answer is not read.
const (
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 20 * time.Second
	writeTimeout   = 20 * time.Second
	idleTimeout    = 2 * time.Minute
	pingAfter      = 30 * time.Second // of silence on a connection by HTTP/2
	maxHeader      = 16 << 10
	maxConnections = 4096
	maxStreams     = 100 // requests at once of a connection by HTTP/2
)

// Serve answers on a listener until the context ends; streams end with it. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: s.Limits.Header, ReadTimeout: s.Limits.Body, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: s.Limits.Write,
			WriteByteTimeout: s.Limits.Write},
	}
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetUnencryptedHTTP2(true) // for gRPC: a client that knows that it wants it says so with its first bytes
	stop := context.AfterFunc(ctx, func() {
		s.Stop()
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if h.Shutdown(timeout) != nil {
			_ = h.Close() // the requests that are left had a second to end
		}
	})
	defer stop()
	go func() { _, _ = s.Runs.List(ctx) }() // long runs are read now, so that the first reader does not wait for it
	err := h.Serve(bounded(l, maxConnections))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Stop ends all streams. The server answers no more of them.
func (s *Server) Stop() { s.streams.Stop() }

// bounded accepts at most n connections at once; further ones wait in the queue of the system.
func bounded(l net.Listener, n int) net.Listener {
	return &boundedListener{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type boundedListener struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (b *boundedListener) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &boundedConn{Conn: c, release: sync.OnceFunc(func() { <-b.free })}, nil
}

func (b *boundedListener) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	release func()
}

func (c *boundedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
