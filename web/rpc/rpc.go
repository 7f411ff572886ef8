// Package rpc serves the API by gRPC. The annotation of a method in client/api/proto names the route that answers it,
// and the messages have the keys of the JSON: a call becomes the request of its route, under the same scope, and the
// answer of the route's handler becomes the message. The package knows no method by its name, and answers nothing
// itself but gRPC's own checks of health.
package rpc

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/starling-network/starling/client/api/apipb"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/health"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/stream"
)

// Config is what a server of gRPC needs. Every field but Tokens is needed.
type Config struct {
	Routes  []route.Route
	Tokens  *access.Tokens // nil: none are needed
	Hosts   access.Hosts
	Streams *stream.Streams
	Health  *health.API
	Timeout time.Duration                        // of a write, and of a call whose route has none of its own
	Count   func(status int, took time.Duration) // counts a call by the status of HTTP that it would have
	Log     *slog.Logger
}

// Server answers calls. It is an http.Handler of requests whose type of content is application/grpc.
type Server struct {
	Config
	grpc *grpc.Server
}

// New returns a server of all services.
func New(c Config) *Server {
	s := &Server{Config: c}
	s.grpc = grpc.NewServer(grpc.MaxRecvMsgSize(route.MaxBody), grpc.UnaryInterceptor(s.guardCall),
		grpc.StreamInterceptor(s.guardStream))
	services := apipb.File_starling_v1_service_proto.Services()
	for i := range services.Len() {
		s.grpc.RegisterService(s.describe(services.Get(i)), s)
	}
	grpc_health_v1.RegisterHealthServer(s.grpc, prober{s: s})
	reflection.Register(s.grpc)
	return s
}

// describe is a service with its handlers.
func (s *Server) describe(service protoreflect.ServiceDescriptor) *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: string(service.FullName()), HandlerType: (*any)(nil),
		Metadata: service.ParentFile().Path()}
	for _, m := range MethodsOf(service, s.Routes) {
		name := path.Base(m.Name)
		if m.Route.Events != nil {
			d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, ServerStreams: true,
				Handler: func(_ any, to grpc.ServerStream) error { return s.stream(m, to) }})
			continue
		}
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context,
			decode func(any) error, guard grpc.UnaryServerInterceptor) (any, error) {
			return guard(ctx, decode, &grpc.UnaryServerInfo{Server: s, FullMethod: m.Name},
				func(ctx context.Context, _ any) (any, error) { return s.call(ctx, m, decode) })
		}})
	}
	return d
}

// carrier is the HTTP request that a call came with.
type carrier struct {
	*http.Request
	rc *http.ResponseController
}

type carrierKey struct{}

func carrierOf(ctx context.Context) carrier { return ctx.Value(carrierKey{}).(carrier) }

// ServeHTTP implements http.Handler: it numbers a call and has it answered.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := request.NewID()
	w.Header().Set("X-Request-Id", id)
	ctx := request.WithID(r.Context(), id)
	ctx = context.WithValue(ctx, carrierKey{}, carrier{r, http.NewResponseController(w)})
	s.grpc.ServeHTTP(w, r.WithContext(ctx))
}

// guardCall stands before every call, as guard does before every request.
func (s *Server) guardCall(ctx context.Context, in any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (out any, err error) {
	defer s.settle(ctx, info.FullMethod, time.Now(), &err)
	if err := s.Hosts.Refuse(carrierOf(ctx).Request); err != nil {
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
	if err := s.Hosts.Refuse(c.Request); err != nil {
		return err
	}
	if info.IsClientStream { // reflection: more is asked as it goes
		end := time.Now().Add(route.PlanTimeout)
		_, _ = c.rc.SetReadDeadline(end), c.rc.SetWriteDeadline(end)
	}
	return handle(srv, to)
}

// settle turns what a call failed with, or its panic, into a status, and counts it.
func (s *Server) settle(ctx context.Context, name string, began time.Time, err *error) {
	id := request.ID(ctx)
	if p := recover(); p != nil {
		s.Log.Error("panic", "request_id", id, "method", name, "panic", p, "stack", string(debug.Stack()))
		*err = failure.Internal()
	}
	code := http.StatusOK
	if *err != nil {
		f := failureOf(*err)
		code = f.Status
		if code >= 500 {
			s.Log.Error("request failed", "request_id", id, "method", name, "err", *err)
		}
		*err = statusOf(f, id)
	}
	s.Count(code, time.Since(began))
}

// call answers a call by its route.
func (s *Server) call(ctx context.Context, m *Method, decode func(any) error) (proto.Message, error) {
	timeout := m.Route.Timeout
	if timeout == 0 {
		timeout = s.Timeout
	}
	rc, end := carrierOf(ctx).rc, time.Now().Add(timeout)
	_, _ = rc.SetReadDeadline(end), rc.SetWriteDeadline(end.Add(s.Timeout))
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	in := m.In.New()
	if err := decode(in.Interface()); err != nil {
		return nil, err
	}
	r, err := s.request(ctx, m, in)
	if err != nil {
		return nil, err
	}
	v, err := m.Route.Handle(r)
	if err != nil {
		return nil, err
	}
	if body, ok := v.(answer.Raw); ok {
		return m.message(body.Bytes)
	}
	return m.encode(v)
}

// request is the request to a route that a call stands for, once its caller was admitted.
func (s *Server) request(ctx context.Context, m *Method, in protoreflect.Message) (*http.Request, error) {
	from := carrierOf(ctx)
	ctx, err := s.Tokens.Allow(ctx, from.Request, m.Route.Scope)
	if err != nil {
		return nil, err
	}
	r := (&http.Request{Method: m.Route.Method, Host: from.Host, Header: http.Header{}}).WithContext(ctx)
	query, rest := url.Values{}, in.New()
	in.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch name := d.TextName(); {
		case m.InPath[name]:
			r.SetPathValue(name, v.String())
		case fieldsInHeaders[name] != "":
			r.Header.Set(fieldsInHeaders[name], v.String())
		case m.Body:
			rest.Set(d, v)
		default:
			query.Set(name, v.String())
		}
		return true
	})
	for name := range m.InPath {
		if r.PathValue(name) == "" {
			return nil, request.BadParam(name, "", "what is asked for")
		}
	}
	r.URL = &url.URL{Path: m.Route.Path, RawQuery: query.Encode()}
	r.Body = http.NoBody
	if m.Body {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(rest.Interface())
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", answer.JSON)
		r.Body = io.NopCloser(bytes.NewReader(text))
	}
	return r, nil
}
