// Package metrics is the Prometheus metrics of a process. docs/operate.md lists the names.
//
// It counts what its callers report; it measures nothing itself, and no result depends on it.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/starling-network/starling/compute/kernel"
)

// Set is the metrics of one process, and those of the libraries in it. Its methods are called concurrently.
type Set struct {
	registry  *prometheus.Registry
	height    prometheus.Gauge
	blockTime prometheus.Gauge
	actions   *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
}

// New returns the metrics of a process with a role, such as "worker".
func New(version, role string) *Set {
	s := &Set{
		registry: prometheus.NewRegistry(),
		height: prometheus.NewGauge(prometheus.GaugeOpts{Name: "starling_chain_height",
			Help: "Height of the latest block that the process has seen."}),
		blockTime: prometheus.NewGauge(prometheus.GaugeOpts{Name: "starling_chain_block_timestamp_seconds",
			Help: "Time of that block, as the validators agreed on it, in seconds since 1970."}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "starling_actions_total",
			Help: "Actions of the role that ended, by kind and outcome: done, overtaken by others, failed, or " +
				"stopped with the process."}, []string{"action", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "starling_action_duration_seconds",
			Help: "Time that an action took.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 9)}, []string{"action"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "starling_build_info",
		Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "numerics": strconv.Itoa(int(kernel.Newest)),
			"kernels": kernel.Active().String(), "go": runtime.Version(), "role": role}})
	build.Set(1)
	s.registry.MustRegister(build, s.height, s.blockTime, s.actions, s.seconds)
	return s
}

// Block takes note of a block.
func (s *Set) Block(height int64, at time.Time) {
	s.height.Set(float64(height))
	s.blockTime.Set(float64(at.UnixMilli()) / 1e3)
}

// Action takes note of an action that ended.
func (s *Set) Action(name, outcome string, took time.Duration) {
	s.actions.WithLabelValues(name, outcome).Inc()
	s.seconds.WithLabelValues(name).Observe(took.Seconds())
}

// Gauge adds a gauge that is read when it is asked for.
func (s *Set) Gauge(name, help string, read func() float64) {
	s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counter adds a counter that is read when it is asked for.
func (s *Set) Counter(name, help string, read func() float64) {
	s.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

// Traffic adds counters of the bytes that go over blob streams.
func (s *Set) Traffic(read func() (sent, received uint64)) {
	s.Counter("starling_blob_sent_bytes_total", "Bytes sent over blob streams, framing included.",
		func() float64 { n, _ := read(); return float64(n) })
	s.Counter("starling_blob_received_bytes_total", "Bytes received over blob streams, framing included.",
		func() float64 { _, n := read(); return float64(n) })
}

// Handler answers with all metrics of the process: ours, those of Go and the process, and those that libraries such as
// CometBFT keep in the default registry.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(prometheus.Gatherers{s.registry, prometheus.DefaultGatherer}, promhttp.HandlerOpts{})
}

// Serve answers GET /metrics at an address, host:port, until stop is called. An empty address serves nothing.
func (s *Set) Serve(ctx context.Context, address string) (stop func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: cannot listen: %w: give another host:port", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return func() error {
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}
