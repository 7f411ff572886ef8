// Package mlflow sends the metrics of a run to an MLflow tracking server, over its REST API (version 2.0): it finds
// or makes the experiment, creates the run with its parameters and tags, logs metrics in batches and ends the run. A
// run that is resumed continues in the run of the server that has its tag.
//
// It is not a client of the rest of MLflow: it uploads no models and registers none. Training does not wait for the
// server: metrics that the server does not accept are kept, up to a limit, and sent again.
package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Config says which server, and what the run is.
type Config struct {
	URI        string            // of the server: http or https
	Experiment string            // its name; "": Default
	Run        string            // name of the run
	Job        string            // identifier of the job: the tag by which a resumed run is found
	Params     map[string]string // settings of the job
	Tags       map[string]string
	Resumed    bool // look for the run of an earlier process first

	// Failed is called once at most, with the error and the number of metrics that the server lacks.
	Failed func(err error, lost int)
	// Away is called once, when the server cannot be reached for the first time.
	Away func(err error)

	Retry        time.Duration // wait before the first repetition, doubled up to maxRetry; 0: a second
	CloseTimeout time.Duration // longest wait for the server when the run is over; 0: 5 seconds
}

// Limits of the API, and of this client.
const (
	maxBatch    = 1000 // metrics of one request
	maxParams   = 100  // of one request
	maxValue    = 500  // bytes of a parameter: what the oldest servers take
	maxAnswer   = 1 << 20
	callTimeout = 10 * time.Second
)

// jobTag is the tag that has the identifier of the job.
const jobTag = "starling.job"

// remote is a server.
type remote struct {
	base string
	http *http.Client
	auth func(*http.Request)
}

// dial takes the credentials from the address or, as MLflow's own client does, from MLFLOW_TRACKING_TOKEN or
// MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.
func dial(uri string) (*remote, error) {
	u, err := url.Parse(strings.TrimSuffix(uri, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("mlflow: %q is no http or https address", uri)
	}
	a := &remote{http: &http.Client{Timeout: callTimeout}, auth: func(*http.Request) {}}
	user, token := os.Getenv("MLFLOW_TRACKING_USERNAME"), os.Getenv("MLFLOW_TRACKING_TOKEN")
	switch {
	case u.User != nil:
		name := u.User.Username()
		password, _ := u.User.Password()
		u.User = nil
		a.auth = func(r *http.Request) { r.SetBasicAuth(name, password) }
	case token != "":
		a.auth = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	case user != "":
		password := os.Getenv("MLFLOW_TRACKING_PASSWORD")
		a.auth = func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	a.base = u.String() + "/api/2.0/mlflow/"
	return a, nil
}

// Error is an answer of the server that says no.
type Error struct {
	Status  int
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

func (e *Error) Error() string {
	return strings.TrimSpace(fmt.Sprintf("mlflow: the server answers %d %s %s", e.Status, e.Code, e.Message))
}

// temporary reports whether the same request may succeed later.
func temporary(err error) bool {
	no := (*Error)(nil)
	return !errors.As(err, &no) || no.Status >= 500 || no.Status == http.StatusTooManyRequests
}

// call posts a request, or gets where in is nil, and reads the answer into out.
func (a *remote) call(ctx context.Context, path string, in, out any) error {
	method, body := http.MethodGet, io.Reader(nil)
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		method, body = http.MethodPost, bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a.auth(r)
	answer, err := a.http.Do(r)
	if err != nil {
		return fmt.Errorf("mlflow: %w", err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("mlflow: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		no := &Error{}
		if json.Unmarshal(raw, no) != nil {
			no.Message = string(raw[:min(len(raw), 200)])
		}
		no.Status = answer.StatusCode
		return no
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("mlflow: the server's answer is no JSON: %w", err)
	}
	return nil
}

type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// metric is one number, as log-batch takes it.
type metric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"` // Unix milliseconds
	Step      int64   `json:"step"`
}

// experiment finds an experiment by its name, or makes it.
func (a *remote) experiment(ctx context.Context, name string) (string, error) {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
	}
	byName := "experiments/get-by-name?experiment_name=" + url.QueryEscape(name)
	err := a.call(ctx, byName, nil, &found)
	no := (*Error)(nil)
	if err == nil || !errors.As(err, &no) || no.Status != http.StatusNotFound {
		return found.Experiment.ID, err
	}
	var made struct {
		ID string `json:"experiment_id"`
	}
	err = a.call(ctx, "experiments/create", map[string]string{"name": name}, &made)
	if errors.As(err, &no) && no.Code == "RESOURCE_ALREADY_EXISTS" { // another client has made it since
		err = a.call(ctx, byName, nil, &found)
		return found.Experiment.ID, err
	}
	return made.ID, err
}

// run is a run of the server.
type run struct {
	Info struct {
		ID string `json:"run_id"`
	} `json:"info"`
}

// resumed finds the run of a job and opens it again; "": there is none.
func (a *remote) resumed(ctx context.Context, experiment, job string) (string, error) {
	var found struct {
		Runs []run `json:"runs"`
	}
	err := a.call(ctx, "runs/search", map[string]any{"experiment_ids": []string{experiment}, "max_results": 1,
		"filter": fmt.Sprintf("tags.`%s` = '%s'", jobTag, job)}, &found)
	if err != nil || len(found.Runs) == 0 {
		return "", err
	}
	id := found.Runs[0].Info.ID
	return id, a.call(ctx, "runs/update", map[string]any{"run_id": id, "status": "RUNNING"}, nil)
}

func (a *remote) create(ctx context.Context, experiment, name string, tags []pair, at time.Time) (string, error) {
	var made struct {
		Run run `json:"run"`
	}
	err := a.call(ctx, "runs/create", map[string]any{"experiment_id": experiment, "run_name": name,
		"start_time": at.UnixMilli(), "tags": tags}, &made)
	if err == nil && made.Run.Info.ID == "" {
		err = errors.New("mlflow: the server names no run")
	}
	return made.Run.Info.ID, err
}

func (a *remote) log(ctx context.Context, id string, metrics []metric, params []pair) error {
	return a.call(ctx, "runs/log-batch", map[string]any{"run_id": id, "metrics": metrics, "params": params}, nil)
}

func (a *remote) end(ctx context.Context, id, status string, at time.Time) error {
	return a.call(ctx, "runs/update", map[string]any{"run_id": id, "status": status, "end_time": at.UnixMilli()}, nil)
}
