package rpc

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/starling-network/starling/client/api/apipb"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/stream"
)

// prober answers grpc.health.v1: the checks of /v1/health as one word for each service. The network counts for the
// NetworkService alone: a validator that does not answer is no reason to send readers of runs to another server.
type prober struct {
	grpc_health_v1.UnimplementedHealthServer
	s *Server
}

// Check implements grpc.health.v1.Health.
func (p prober) Check(ctx context.Context,
	in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	status := p.status(ctx, in.Service)
	if status == grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, failure.New(http.StatusNotFound, "SERVICE_UNKNOWN", "there is no such service here",
			"reflection lists what there is")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: status}, nil
}

// Watch implements grpc.health.v1.Health: a status, and every other one that follows.
func (p prober) Watch(in *grpc_health_v1.HealthCheckRequest,
	to grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	leave, err := p.s.Streams.Enter()
	if err != nil {
		return err
	}
	defer leave()
	ctx := to.Context()
	rc := carrierOf(ctx).rc
	if err := rc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	changed, done := p.s.Streams.Follow("health "+in.Service,
		func(ctx context.Context) (string, error) { return p.status(ctx, in.Service).String(), nil })
	defer done()
	said := grpc_health_v1.HealthCheckResponse_UNKNOWN
	beat := func() error { return rc.SetWriteDeadline(time.Now().Add(p.s.Timeout)) }
	p.s.Streams.Run(ctx, beat, changed, func() error {
		now := p.status(ctx, in.Service)
		if now == said {
			return nil
		}
		said = now
		_ = beat()
		return to.Send(&grpc_health_v1.HealthCheckResponse{Status: now})
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return stream.ErrEnded
}

// status of a service, or, for "", of the server.
func (p prober) status(ctx context.Context, service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	check := p.s.Health.CheckRuns
	if _, ok := p.s.grpc.GetServiceInfo()[service]; !ok && service != "" {
		return grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	}
	if service == apipb.NetworkService_ServiceDesc.ServiceName {
		check = p.s.Health.CheckNetwork
	}
	if !check(ctx).OK {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}
