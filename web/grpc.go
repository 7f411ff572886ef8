package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/starling-network/starling/client/api/apipb"
)

// gRPC is the REST API in another form: the annotation of a method in client/api/proto names the route that answers it,
// and the messages have the keys of the JSON. A call becomes the request of its route, under the same scope, and the
// answer of the route's handler becomes the message. Nothing below knows a method by its name.

// method is a method of a service.
type method struct {
	name    string // /starling.v1.JobService/GetJob
	route   route
	in, out protoreflect.MessageType
	body    bool            // what is not elsewhere is in the body of the route's request
	inPath  map[string]bool // fields that are
}

// fieldsInHeaders are fields of requests that the routes take as headers.
var fieldsInHeaders = map[string]string{"idempotency_key": "Idempotency-Key", "last_event_id": "Last-Event-ID"}

// newMethod finds the route of a method. A method without one is a mistake of this program.
func newMethod(d protoreflect.MethodDescriptor) *method {
	rule := proto.GetExtension(d.Options(), annotations.E_Http).(*annotations.HttpRule)
	verb, path := http.MethodGet, rule.GetGet()
	if rule.GetPost() != "" {
		verb, path = http.MethodPost, rule.GetPost()
	}
	m := &method{name: fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name()), body: rule.GetBody() == "*",
		inPath: map[string]bool{}}
	for _, r := range routes {
		if r.method == verb && r.path == path {
			m.route = r
		}
	}
	for _, found := range pathParam.FindAllStringSubmatch(path, -1) {
		m.inPath[found[1]] = true
	}
	var err, wrong error
	m.in, err = protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	m.out, wrong = protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if (m.route.handle == nil) == (m.route.events == nil) || err != nil || wrong != nil {
		panic("web: nothing answers " + m.name)
	}
	return m
}

// newGRPC makes a server of all services.
func (s *Server) newGRPC() *grpc.Server {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(maxBody), grpc.UnaryInterceptor(s.guardCall),
		grpc.StreamInterceptor(s.guardStream))
	file := apipb.File_starling_v1_service_proto
	for i := range file.Services().Len() {
		service := file.Services().Get(i)
		d := grpc.ServiceDesc{ServiceName: string(service.FullName()), HandlerType: (*any)(nil), Metadata: file.Path()}
		for j := range service.Methods().Len() {
			m := newMethod(service.Methods().Get(j))
			name := string(service.Methods().Get(j).Name())
			if m.route.events != nil {
				d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, ServerStreams: true,
					Handler: func(_ any, to grpc.ServerStream) error { return s.stream(m, to) }})
				continue
			}
			d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name,
				Handler: func(_ any, ctx context.Context, decode func(any) error, guard grpc.UnaryServerInterceptor) (any, error) {
					return guard(ctx, decode, &grpc.UnaryServerInfo{Server: s, FullMethod: m.name},
						func(ctx context.Context, _ any) (any, error) { return s.call(ctx, m, decode) })
				}})
		}
		g.RegisterService(&d, s)
	}
	grpc_health_v1.RegisterHealthServer(g, prober{s: s})
	reflection.Register(g)
	return g
}

// carrier is the HTTP request that a call came with.
type carrier struct {
	*http.Request
	rc *http.ResponseController
}

type carrierKey struct{}

func carrierOf(ctx context.Context) carrier { return ctx.Value(carrierKey{}).(carrier) }

// serveGRPC numbers a call and has it answered.
func (s *Server) serveGRPC(w http.ResponseWriter, r *http.Request) {
	id := newID()
	w.Header().Set("X-Request-Id", id)
	ctx := context.WithValue(r.Context(), requestKey{}, id)
	ctx = context.WithValue(ctx, carrierKey{}, carrier{r, http.NewResponseController(w)})
	s.grpc.ServeHTTP(w, r.WithContext(ctx))
}

// guardCall stands before every call, as guard does before every request.
func (s *Server) guardCall(ctx context.Context, in any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (out any, err error) {
	defer s.settle(ctx, info.FullMethod, time.Now(), &err)
	if err := s.stranger(carrierOf(ctx).Request); err != nil {
		return nil, err
	}
	return handle(ctx, in)
}

// guardStream stands before every stream.
func (s *Server) guardStream(srv any, to grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) (err error) {
	ctx := to.Context()
	defer s.settle(ctx, info.FullMethod, time.Now(), &err)
	c := carrierOf(ctx)
	if err := s.stranger(c.Request); err != nil {
		return err
	}
	if info.IsClientStream { // reflection: more is asked as it goes
		end := time.Now().Add(planPatience)
		_, _ = c.rc.SetReadDeadline(end), c.rc.SetWriteDeadline(end)
	}
	return handle(srv, to)
}

// settle turns what a call failed with, or its panic, into a status, and counts it.
func (s *Server) settle(ctx context.Context, name string, began time.Time, err *error) {
	id := requestID(carrierOf(ctx).WithContext(ctx))
	if p := recover(); p != nil {
		s.Log.Error("panic", "request_id", id, "method", name, "panic", p, "stack", string(debug.Stack()))
		*err = fail(http.StatusInternalServerError, "INTERNAL", "the server failed to answer",
			"the log of the server has the request by its request_id")
	}
	code := http.StatusOK
	if *err != nil {
		f := knownCall(*err)
		code = f.Status
		if code >= 500 {
			s.Log.Error("request failed", "request_id", id, "method", name, "err", *err)
		}
		*err = statusOf(f, id)
	}
	s.stats.request(code, time.Since(began))
}

// call answers a call by its route.
func (s *Server) call(ctx context.Context, m *method, decode func(any) error) (proto.Message, error) {
	patience := m.route.patience
	if patience == 0 {
		patience = s.Limits.Write
	}
	rc, end := carrierOf(ctx).rc, time.Now().Add(patience)
	_, _ = rc.SetReadDeadline(end), rc.SetWriteDeadline(end.Add(s.Limits.Write))
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	in := m.in.New()
	if err := decode(in.Interface()); err != nil {
		return nil, err
	}
	r, err := s.request(ctx, m, in)
	if err != nil {
		return nil, err
	}
	v, err := m.route.handle(s, r)
	if err != nil {
		return nil, err
	}
	if body, ok := v.(raw); ok {
		return m.message(body.bytes)
	}
	return m.encode(v)
}

// request is the request to a route that a call stands for, from somebody who may make it.
func (s *Server) request(ctx context.Context, m *method, in protoreflect.Message) (*http.Request, error) {
	from := carrierOf(ctx)
	if err := s.Tokens.allow(from.Request, m.route.scope); err != nil {
		return nil, err
	}
	r := (&http.Request{Method: m.route.method, Host: from.Host, Header: http.Header{}}).WithContext(ctx)
	query, rest := url.Values{}, in.New()
	in.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch name := d.TextName(); {
		case m.inPath[name]:
			r.SetPathValue(name, v.String())
		case fieldsInHeaders[name] != "":
			r.Header.Set(fieldsInHeaders[name], v.String())
		case m.body:
			rest.Set(d, v)
		default:
			query.Set(name, v.String())
		}
		return true
	})
	for name := range m.inPath {
		if r.PathValue(name) == "" {
			return nil, badParam(name, "", "what is asked for")
		}
	}
	r.URL = &url.URL{Path: m.route.path, RawQuery: query.Encode()}
	r.Body = http.NoBody
	if m.body {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(rest.Interface())
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Body = io.NopCloser(bytes.NewReader(text))
	}
	return r, nil
}

// encode is an answer as the message of a method.
func (m *method) encode(v any) (proto.Message, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return m.message(text)
}

func (m *method) message(text []byte) (proto.Message, error) {
	out := m.out.New().Interface()
	return out, protojson.Unmarshal(text, out)
}

// caller is who makes a call that streams: a sink.
type caller struct {
	s  *Server
	m  *method
	to grpc.ServerStream
}

// send implements sink. The message has the event in the field of its name, and its id beside that.
func (c *caller) send(id, event string, data any) error {
	fields := map[string]any{event: data}
	if id != "" {
		fields["id"] = id
	}
	message, err := c.m.encode(fields)
	if err != nil {
		return err
	}
	c.s.stats.events.Add(1)
	_ = c.beat()
	return c.to.SendMsg(message)
}

// beat implements sink: HTTP/2 finds out by itself whether the other side lives, and a silent stream has nothing to
// write.
func (c *caller) beat() error {
	return carrierOf(c.to.Context()).rc.SetWriteDeadline(time.Now().Add(c.s.Limits.Write))
}

// stream answers a call by the stream of its route.
func (s *Server) stream(m *method, to grpc.ServerStream) error {
	in := m.in.New()
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
	err = m.route.events(s, r, func() (sink, error) { return c, carrierOf(ctx).rc.SetReadDeadline(time.Time{}) })
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errStreamEnded
}

var errStreamEnded = &Failure{Status: http.StatusServiceUnavailable, Code: "STREAM_ENDED", Detail: "the server ends",
	Fix: "watch again, with the id of the last event as last_event_id", Retry: time.Second}
