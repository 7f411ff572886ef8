package rpc

import (
	"time"

	"google.golang.org/grpc"

	"github.com/starling-network/starling/web/stream"
)

// caller is the client of a call that streams: a sink.
type caller struct {
	s  *Server
	m  *Method
	to grpc.ServerStream
}

// Send implements stream.Sink. The message has the event in the field of its name, and its id in another.
func (c *caller) Send(id, event string, data any) error {
	fields := map[string]any{event: data}
	if id != "" {
		fields["id"] = id
	}
	message, err := c.m.encode(fields)
	if err != nil {
		return err
	}
	c.s.Streams.Sent()
	_ = c.Beat()
	return c.to.SendMsg(message)
}

// Beat implements stream.Sink. It writes nothing, since HTTP/2 finds out by itself whether the client lives.
func (c *caller) Beat() error {
	return carrierOf(c.to.Context()).rc.SetWriteDeadline(time.Now().Add(c.s.Timeout))
}

// stream answers a call by the stream of its route.
func (s *Server) stream(m *Method, to grpc.ServerStream) error {
	in := m.In.New()
	if err := to.RecvMsg(in.Interface()); err != nil {
		return err
	}
	ctx := to.Context()
	r, err := s.request(ctx, m, in)
	if err != nil {
		return err
	}
	c := &caller{s, m, to}
	// the request is read; the call lives on
	err = m.Route.Events(r, func() (stream.Sink, error) { return c, carrierOf(ctx).rc.SetReadDeadline(time.Time{}) })
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return stream.ErrEnded
}
