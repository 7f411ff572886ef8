package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/starling-network/starling/node/notify"
	"github.com/starling-network/starling/node/rundir"
)

// listener is the webhook and the MLflow server of a job.
type listener struct {
	*httptest.Server
	mu     sync.Mutex
	events []notify.Event
	calls  []string // of MLflow
	status string
	losses int
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// keys are those of a job file that name it.
func (l *listener) keys() string {
	return fmt.Sprintf("notify: {webhook: %q}\ntracking: {mlflow: {uri: %q, experiment: birds}}\n", l.URL+"/hook", l.URL)
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/hook" {
		var e notify.Event
		if err := json.Unmarshal(body, &e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.events = append(l.events, e)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/")
	l.calls = append(l.calls, path)
	var in struct {
		Status  string `json:"status"`
		Metrics []struct {
			Key string `json:"key"`
		} `json:"metrics"`
	}
	_ = json.Unmarshal(body, &in) // a GET has none
	for _, m := range in.Metrics {
		if m.Key == "train/loss" {
			l.losses++
		}
	}
	switch path {
	case "experiments/get-by-name":
		fmt.Fprint(w, `{"experiment": {"experiment_id": "1"}}`)
	case "runs/create":
		fmt.Fprint(w, `{"run": {"info": {"run_id": "7"}}}`)
	case "runs/update":
		l.status = in.Status
		fmt.Fprint(w, "{}")
	default:
		fmt.Fprint(w, "{}")
	}
}

// heard checks that the servers were told of a job that is over.
func (l *listener) heard(t *testing.T, s rundir.Summary) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.events, func(e notify.Event) bool { return e.Event == notify.Finished })
	if at < 0 || l.events[at].Job != s.Job || l.events[at].Step != s.Steps || l.events[at].PaidUzen != s.PaidUzen {
		t.Errorf("the webhook got %+v of %+v", l.events, s)
	}
	if l.status != "FINISHED" || l.losses != s.Steps {
		t.Errorf("MLflow got %d losses of %d steps, and ends as %q: %v", l.losses, s.Steps, l.status, l.calls)
	}
}

// gives asks the faucet of a network for coins, twice.
func gives(t *testing.T, dir, network string) {
	t.Helper()
	var a struct {
		Address string `json:"address"`
	}
	does(t, &a, "worker", "identity", "--home", filepath.Join(dir, "newcomer"))
	c := command(t, "network", "faucet", "--home", filepath.Join(dir, "consumer"), "--network", network, "--listen",
		"127.0.0.1:0", "--zen", "120")
	s := news(t, c)
	defer func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() }()
	if !s.Scan() {
		t.Fatal("the faucet does not run")
	}
	url := regexp.MustCompile(`http://\S+`).FindString(s.Text())
	var gift struct {
		Uzen uint64 `json:"amount_uzen"`
	}
	does(t, &gift, "account", "request", "--home", filepath.Join(dir, "newcomer"), "--faucet", url)
	if gift.Uzen != 120_000_000 {
		t.Errorf("the faucet gave %d", gift.Uzen)
	}
	again := command(t, "account", "request", a.Address, "--faucet", url)
	if out, err := again.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("FAUCET_LIMIT")) {
		t.Errorf("another request within the day: %v\n%s", err, out)
	}
	var held struct {
		Balance uint64 `json:"balance_uzen"`
	}
	does(t, &held, "account", "show", a.Address, "--network", network)
	if held.Balance != 120_000_000 {
		t.Errorf("the newcomer has %+v", held)
	}
}
