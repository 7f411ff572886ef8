package metrics

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/link"
)

func TestMetricsSayWhatHappened(t *testing.T) {
	s := New("v1", "worker")
	s.Block(42, time.Unix(1000, 500e6))
	s.Action("train", "done", 3*time.Second)
	s.Action("train", "failed", time.Second)
	s.Traffic(func() (uint64, uint64) { return 11, 13 })
	s.Gauge("starling_runs", "Runs.", func() float64 { return 2 })
	s.Peers(func() []link.State {
		return []link.State{{Peer: "near", Addr: "/ip4/10.0.0.8", RoundTrip: time.Second / 2, Pace: 3, Download: 5, Sent: 7,
			Received: 9}, {Peer: "far", Relayed: true}}
	})
	near, far := peer.ID("near").String(), peer.ID("far").String()
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text := answer.Body.String()
	for _, want := range []string{
		"starling_chain_height 42\n", "starling_chain_block_timestamp_seconds 1000.5\n",
		`starling_actions_total{action="train",outcome="done"} 1`,
		`starling_actions_total{action="train",outcome="failed"} 1`, `starling_action_duration_seconds_sum{action="train"} 4`,
		"starling_blob_sent_bytes_total 11\n", "starling_blob_received_bytes_total 13\n", "starling_runs 2\n",
		`role="worker"`, `version="v1"`, "go_goroutines",
		`starling_peer_connected{peer="` + near + `",relayed="false"} 1`,
		`starling_peer_connected{peer="` + far + `",relayed="true"} 0`,
		`starling_peer_round_trip_seconds{peer="` + near + `"} 0.5`,
		`starling_peer_download_bytes_per_second{peer="` + near + `"} 5`,
		`starling_peer_received_bytes_total{peer="` + near + `"} 9`, `starling_peer_sent_bytes_total{peer="` + far + `"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var ours strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, "starling_") {
			ours.WriteString(line)
		}
	}
	problems, err := promlint.New(strings.NewReader(ours.String())).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestServe(t *testing.T) {
	s := New("v1", "worker")
	if stop, err := s.Serve(t.Context(), ""); err != nil || stop() != nil {
		t.Error("off", err)
	}
	if _, err := s.Serve(t.Context(), "nowhere"); err == nil {
		t.Error("an address without a port")
	}
	stop, err := s.Serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if b, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(b), "starling_build_info") {
		t.Errorf("%v\n%s", err, b)
	}
}
