package mlflow

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
)

func metrics(from, to int) (out []api.Metric) {
	for i := from; i < to; i++ {
		out = append(out, api.Metric{Kind: "step", Step: uint32(i), Loss: 4, LearningRate: 0.1})
	}
	return out
}

func open(t *testing.T, c Config) *Writer {
	t.Helper()
	if c.Failed == nil {
		c.Failed = func(err error, lost int) { t.Errorf("%v, %d lost", err, lost) }
	}
	c.Retry = time.Millisecond
	w, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRun(t *testing.T) {
	s := newServer(t, 0)
	params := map[string]string{"long": strings.Repeat("é", 400)}
	for i := range 230 {
		params[fmt.Sprint("p", i)] = "1"
	}
	w := open(t, Config{URI: s.URL + "/", Experiment: "birds", Run: "quick", Job: "job-1", Params: params,
		Tags: map[string]string{"a": "b"}})
	w.Add(metrics(1, 1201))
	w.Add([]api.Metric{{Kind: "step", Step: 1201, Loss: math.NaN(), LearningRate: 0.1}})
	w.Close(Finished)
	if len(s.runs) != 1 {
		t.Fatal(s.calls)
	}
	x := s.runs[0]
	if len(x.metrics) != 2*1200+1 || x.metrics[0].Key != "train/loss" || x.metrics[0].Value != 4 ||
		x.metrics[0].Step != 1 || x.metrics[0].Timestamp == 0 {
		t.Errorf("%d metrics, first %+v", len(x.metrics), x.metrics[0])
	}
	if len(x.params) != 231 || x.tags["a"] != "b" || x.tags[jobTag] != "job-1" || x.name != "quick" ||
		x.experiment != "1" || x.status != Finished || x.ended == 0 {
		t.Errorf("%+v", x)
	}

	w = open(t, Config{URI: s.URL, Experiment: "birds", Run: "quick", Job: "job-1", Params: map[string]string{"p1": "2"},
		Resumed: true})
	w.Add(metrics(1202, 1203))
	w.Close(Killed)
	w = open(t, Config{URI: s.URL, Job: "job-2", Resumed: true})
	w.Close(Failed)
	if len(s.runs) != 2 || len(x.metrics) != 2*1201+1 || x.status != Killed || s.runs[1].experiment != "0" ||
		s.runs[1].status != Failed {
		t.Errorf("after a resumption: %d runs, %d metrics, %+v", len(s.runs), len(x.metrics), s.runs[1])
	}
}

// Metrics that an unreachable server does not accept are sent again.
func TestAwayForAWhile(t *testing.T) {
	s := newServer(t, 3)
	away := make(chan error, 1)
	w := open(t, Config{URI: s.URL, Job: "job-1", Away: func(err error) { away <- err }})
	w.Add(metrics(1, 11))
	if err := <-away; !strings.Contains(err.Error(), "502") {
		t.Error(err)
	}
	w.Close(Finished)
	if len(s.runs) != 1 || len(s.runs[0].metrics) != 20 || s.runs[0].status != Finished {
		t.Errorf("%v", s.calls)
	}
}

// Without a server the caller loses nothing but the metrics there.
func TestAway(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hangs.Close()
	defer close(release)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "PERMISSION_DENIED")
	}))
	defer refuses.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, uri := range []string{hangs.URL, refuses.URL, gone.URL} {
		told, all := 0, 0
		w := open(t, Config{URI: uri, Job: "job-1", CloseTimeout: time.Millisecond, Failed: func(err error, lost int) {
			if told++; err == nil {
				t.Error("no reason is given")
			}
			all += lost
		}})
		w.Add(metrics(1, 101))
		w.Close(Finished)
		if told != 1 || all != 200 {
			t.Errorf("told %d times of %d metrics", told, all)
		}
	}
	var nobody *Writer
	nobody.Add(metrics(1, 2))
	nobody.Close(Finished)
}

func TestCredentials(t *testing.T) {
	for _, c := range []struct {
		user, token, name string
		want              string
	}{
		{"", "", "", ""}, {"bird:sings@", "t", "", "Basic YmlyZDpzaW5ncw=="}, {"", "t", "x", "Bearer t"},
		{"", "", "bird", "Basic YmlyZDpzaW5ncw=="},
	} {
		t.Setenv("MLFLOW_TRACKING_TOKEN", c.token)
		t.Setenv("MLFLOW_TRACKING_USERNAME", c.name)
		t.Setenv("MLFLOW_TRACKING_PASSWORD", "sings")
		s := newServer(t, 0)
		open(t, Config{URI: strings.Replace(s.URL, "://", "://"+c.user, 1), Job: "job-1"}).Close(Finished)
		if s.auth != c.want {
			t.Errorf("%+v: %q", c, s.auth)
		}
	}
	for _, uri := range []string{"databricks", "file:///tmp/x", "http://", ""} {
		if _, err := Open(Config{URI: uri}); err == nil {
			t.Errorf("%q is taken for an address", uri)
		}
	}
}
