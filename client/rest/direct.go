package rest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// direct lets a handler of this process answer, without a socket. It implements http.RoundTripper.
type direct struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. The body of the answer is written while it is read.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:0", r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	read, write := io.Pipe()
	w := &reply{header: http.Header{}, body: write, begun: make(chan struct{})}
	go func() {
		d.handler.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK) // unless it said another
		_ = write.Close()            // never fails
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		_ = read.Close() // never fails
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: -1, Request: r, Body: &answerBody{read, cancel},
	}, nil
}

// reply is an http.ResponseWriter into a pipe.
type reply struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	begun        chan struct{} // closed when status and sent are set
	once         sync.Once
}

// Header implements http.ResponseWriter.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *reply) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

// Write implements http.ResponseWriter. It waits until the bytes are read.
func (w *reply) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush implements http.Flusher: nothing is held back.
func (w *reply) Flush() { w.WriteHeader(http.StatusOK) }

// answerBody ends the handler when it is closed.
type answerBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
