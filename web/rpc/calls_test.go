package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/api/apipb"
	"github.com/starling-network/starling/web/finetune"
	"github.com/starling-network/starling/web/health"
	"github.com/starling-network/starling/web/jobs"
	"github.com/starling-network/starling/web/models"
	"github.com/starling-network/starling/web/network"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/sourcetest"
	"github.com/starling-network/starling/web/stream"
)

// server answers the routes of the services from the sources of sourcetest.
func server() *Server {
	runs, chain := sourcetest.New(), sourcetest.Network{}
	streams := stream.New(stream.Config{Poll: time.Hour, Heartbeat: time.Hour, Timeout: time.Hour, Max: 10})
	checks := &health.API{Runs: runs, Network: chain, Streams: streams}
	launcher := &sourcetest.Launcher{}
	return New(Config{Streams: streams, Health: checks, Timeout: time.Hour, Log: slog.New(slog.DiscardHandler),
		Count: func(int, time.Duration) {},
		Routes: slices.Concat((&jobs.API{Runs: runs, Launcher: launcher, Network: chain, Streams: streams}).Routes(),
			(&models.API{Runs: runs, Tunings: &finetune.API{Runs: runs}}).Routes(),
			(&network.API{Network: chain}).Routes(), checks.Routes(),
			[]route.Route{{Method: "GET", Path: "/v1/version", Answer: api.Version{},
				Handle: func(*http.Request) (any, error) { return api.Version{}, nil }}})})
}

// Errors of the sources, and of callers that went, have codes of their own.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   codes.Code
		stable string
	}{
		{context.DeadlineExceeded, codes.DeadlineExceeded, "TIMED_OUT"},
		{fmt.Errorf("sources: %w", context.Canceled), codes.Canceled, "CANCELED"},
	} {
		f := failureOf(c.err)
		if got := status.Code(statusOf(f, "1")); got != c.code || f.Code != c.stable {
			t.Errorf("%v is %s and %s, want %s and %s", c.err, got, f.Code, c.code, c.stable)
		}
	}
}

// unary are the methods of a server that do not stream.
func unary(s *Server) (all []*Method) {
	services := apipb.File_starling_v1_service_proto.Services()
	for i := range services.Len() {
		all = append(all, MethodsOf(services.Get(i), s.Routes)...)
	}
	return slices.DeleteFunc(all, func(m *Method) bool { return m.Route.Handle == nil })
}

// FuzzCalls sends the messages of strangers to every method: whatever comes, an answer or a failure goes back.
func FuzzCalls(f *testing.F) {
	s := server()
	all := unary(s)
	for i := range all {
		f.Add(uint8(i), []byte("\x0a\x05first"))
	}
	f.Fuzz(func(t *testing.T, which uint8, message []byte) {
		if strings.Contains(string(message), "panic") {
			return
		}
		r := httptest.NewRequest("POST", "http://localhost/", nil)
		ctx := context.WithValue(r.Context(), carrierKey{}, carrier{r, http.NewResponseController(httptest.NewRecorder())})
		m := all[int(which)%len(all)]
		out, err := s.call(ctx, m, func(in any) error { return proto.Unmarshal(message, in.(proto.Message)) })
		if err == nil && out.ProtoReflect().Descriptor() != m.Out.Descriptor() {
			t.Errorf("%s answers %T", m.Name, out)
		}
		if err != nil && proto.Unmarshal(message, m.In.New().Interface()) == nil && failureOf(err).Code == "INTERNAL" {
			t.Errorf("%s fails with %v", m.Name, err)
		}
	})
}
