package web

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/web/sourcetest"
)

func TestHealth(t *testing.T) {
	code, _, body := get(t, server(t, Config{Network: sourcetest.Network{}}), "/v1/health")
	if code != 200 || !strings.Contains(body, `"degraded"`) || !strings.Contains(body, "older than a minute") {
		t.Errorf("%d %s", code, body)
	}
	_, _, body = get(t, server(t, Config{}), "/metrics")
	for _, want := range []string{`starling_web_jobs{state="done"} 1`, "starling_web_streams 0",
		`starling_web_requests_total{status="2xx"} 0`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

func TestRoomCheck(t *testing.T) {
	for text, room := range map[string]func() (int64, bool){
		`{"name":"disk","ok":false,"text":"0.5 GB`:     func() (int64, bool) { return 5e8, true },
		`{"name":"disk","ok":true,"text":"50.0 GB`:     func() (int64, bool) { return 5e10, true },
		`{"name":"disk","ok":true,"text":"how much is`: func() (int64, bool) { return 0, false },
	} {
		if _, _, body := get(t, server(t, Config{Room: room}), "/v1/health"); !strings.Contains(body, text) {
			t.Errorf("no %s in %s", text, body)
		}
	}
}
