package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/internal/pushtest"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/push/record"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/verify"
)

// submissions are sent to a server of a test, in this process.
type submissions struct {
	t    *testing.T
	url  string
	stop func()
}

func serveJobs(t *testing.T, root, data string, push ...string) submissions {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	opened, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, root, dashboard.WebOptions{Listen: "127.0.0.1:0", Data: data, Push: strings.Join(push, ""),
			Opened: func(url string) { opened <- url }})
	}()
	select {
	case url := <-opened:
		return submissions{t, url, func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}}
	case err := <-ended:
		t.Fatal(err)
	}
	panic("unreachable")
}

// ask sends a request, and reads its answer into a value if the status is as wanted.
func (s submissions) ask(method, path, key string, body any, status int, into any) *http.Response {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		s.t.Fatalf("%s %s: %d, wanted %d: %v %s", method, path, answer.StatusCode, status, err, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			s.t.Fatal(err)
		}
	}
	return answer
}

// until follows the stream of a job until it is as wanted.
func (s submissions) until(id string, wanted func(api.Job) bool) api.Job {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+"/v1/jobs/"+id+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var u api.Update
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &u); err != nil {
				s.t.Fatal(err)
			}
			if wanted(u.Job) {
				return u.Job
			}
		}
	}
	s.t.Fatalf("the stream of %s ended: %v", id, lines.Err())
	panic("unreachable")
}

// Jobs are planned, submitted, cancelled and refused; a job that was interrupted by the end of the server resumes
// with the next server, which copies its model to the store of the operator.
func TestSubmittedJobs(t *testing.T) {
	t.Parallel()
	j := jobtest.Small(t)
	root, data := t.TempDir(), j.Dir()
	store := pushtest.StartStore(t, "models")
	for name, value := range store.Environment() { // no other test of this process copies models
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
	s := serveJobs(t, root, data)
	spec := api.Spec{Config: string(j.Source), Overrides: []string{"training.max_steps=24"}}
	var p api.Plan
	s.ask("POST", "/v1/plans", "", spec, http.StatusOK, &p)
	if p.Rounds != 6 || p.Workers != 3 || p.CostUzen == 0 || p.Parameters == 0 || p.DiskBytes == 0 ||
		p.Tokens != 24*6*16 ||
		p.StepSeconds <= 0 || p.Seconds <= p.StepSeconds || p.MemoryBytes == 0 || p.Placement.Workers != 3 ||
		p.Placement.MemoryBytes <= p.MemoryBytes ||
		p.Placement.Fits != "yes" || p.Rejections == nil {
		t.Errorf("%+v", p)
	}
	var first, again, second api.Job
	answer := s.ask("POST", "/v1/jobs", "a", api.Submission{Spec: spec, Plan: p.ID}, http.StatusAccepted, &first)
	if first.ID != "small" || answer.Header.Get("Location") != "/v1/jobs/small" || first.State != "queued" &&
		first.State != "running" || first.Steps != 24 {
		t.Errorf("%s %+v", answer.Header.Get("Location"), first)
	}
	if s.ask("POST", "/v1/jobs", "a", api.Submission{Spec: spec}, http.StatusAccepted, &again); again.ID != first.ID {
		t.Errorf("the same key gives %s and %s", first.ID, again.ID)
	}
	var wrong api.Problem
	if s.ask("POST", "/v1/jobs", "a", api.Submission{Spec: api.Spec{Config: spec.Config}}, http.StatusUnprocessableEntity,
		&wrong); wrong.Code != "KEY_REUSED" {
		t.Errorf("%+v", wrong)
	}
	s.ask("POST", "/v1/jobs", "b", api.Submission{Spec: spec, Name: "../../other one"}, http.StatusAccepted, &second)
	if second.ID != "other-one" || second.State != "queued" || second.Reason == nil || second.Reason.Code != "queued" {
		t.Errorf("%+v %+v", second, second.Reason)
	}
	for range 2 { // the second time it has stopped already
		if s.ask("POST", "/v1/jobs/other-one/cancel", "", nil, http.StatusOK, &second); second.State != "stopped" ||
			second.Reason.Code != "cancelled" {
			t.Errorf("%+v %+v", second, second.Reason)
		}
	}
	s.ask("POST", "/v1/jobs/nobody/cancel", "", nil, http.StatusNotFound, nil)

	s.until("small", func(j api.Job) bool { return j.State == "running" && j.Phase != "" && j.Phase != "preparing" })
	s.stop()
	s = serveJobs(t, root, data, "s3://models/runs")
	defer func() { s.stop() }()
	if s.ask("GET", "/v1/jobs/small", "", nil, http.StatusOK, &first); first.State != "stopped" ||
		!strings.Contains(first.Reason.Next, "submit it again") {
		t.Errorf("%+v %+v", first, first.Reason)
	}
	if s.ask("POST", "/v1/jobs", "a", api.Submission{Spec: spec}, http.StatusAccepted, &again); again.ID != first.ID {
		t.Errorf("after a restart, the same key gives %s and %s", first.ID, again.ID)
	}
	over := s.until("small", func(j api.Job) bool { return j.State != "queued" && j.State != "running" })
	if over.State != "done" || over.Step != 24 || over.EvalLoss == nil || !strings.HasPrefix(p.ID, over.Job+"-") {
		log, _ := os.ReadFile(filepath.Join(root, "small", rundir.FileLog))
		t.Fatalf("%+v %+v\n%s", over, over.Reason, log[max(0, len(log)-4000):])
	}
	copied := s.until("small", func(j api.Job) bool { return len(j.Pushes) == 1 && j.Pushes[0].State == record.Done })
	weights, err := os.ReadFile(filepath.Join(root, "small", "model.safetensors"))
	if err != nil || !bytes.Equal(store.Objects()["runs/small/model.safetensors"].Bytes, weights) {
		t.Errorf("%+v, %v: the store has other weights", copied.Pushes, err)
	}
	if _, err := verify.Run(t.Context(), filepath.Join(root, "small"), verify.Options{}); err != nil {
		t.Error(err)
	}
	if s.ask("POST", "/v1/jobs/small/cancel", "", nil, http.StatusConflict, &wrong); wrong.Code != "JOB_OVER" {
		t.Errorf("%+v", wrong)
	}
	if s.ask("POST", "/v1/jobs", "a", api.Submission{Spec: spec}, http.StatusAccepted, &again); again.State != "done" {
		t.Errorf("a finished job is %s when it is submitted again", again.State)
	}

	stale := api.Submission{Spec: spec, Plan: "job-0"}
	s.ask("POST", "/v1/jobs", "c", stale, http.StatusAccepted, &second)
	if failed := s.until(second.ID, func(j api.Job) bool { return j.State == "failed" }); second.ID != "small-2" ||
		failed.Reason.Code != "PLAN_STALE" {
		t.Errorf("%s: %+v", second.ID, failed.Reason)
	}
}

// Forbidden settings of a submitted job are refused with their line, and without information about this machine.
func TestSubmissionsAreConfined(t *testing.T) {
	j := jobtest.Small(t)
	if err := os.Mkdir(filepath.Join(j.Dir(), "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := serveJobs(t, filepath.Join(j.Dir(), "out"), j.Dir())
	defer s.stop()
	for name, c := range map[string]struct{ set, code string }{
		"a file above":      {"datasets.0.path=../text.txt", "JOB_FILE_OUTSIDE"},
		"a pattern above":   {"datasets.0.path=a/../../**/*", "JOB_FILE_OUTSIDE"},
		"an absolute path":  {"datasets.0.path=/etc/passwd", "JOB_FILE_OUTSIDE"},
		"a model elsewhere": {"model={base_model: /etc, tokenizer: byte-level}", "JOB_FILE_OUTSIDE"},
		"a tokenizer":       {"model.tokenizer=../../tokenizer.json", "JOB_FILE_OUTSIDE"},
		"what others left":  {"datasets.0.path=out/**/*", "JOB_NO_DATA"},
		"no such file":      {"datasets.0.path=nothing.txt", "JOB_NO_DATA"},
		"a store":           {"output.push=[s3://models/mine]", "JOB_FILE_OUTSIDE"},
		"an unknown key":    {"bugdet.max_cost=1", "JOB_UNKNOWN_KEY"},
	} {
		for _, path := range []string{"/v1/plans", "/v1/jobs"} {
			var p api.Problem
			s.ask("POST", path, "", api.Spec{Config: string(j.Source), Overrides: []string{c.set}},
				http.StatusUnprocessableEntity, &p)
			if text, _ := json.Marshal(p); p.Code != "JOB_INVALID" || len(p.Problems) != 1 || p.Problems[0].Code != c.code ||
				strings.Contains(string(text), j.Dir()) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	var inside api.Plan
	s.ask("POST", "/v1/plans", "", api.Spec{Config: string(j.Source),
		Overrides: []string{"datasets.0.path=" + filepath.Join(j.Dir(), "text.txt")}}, http.StatusOK, &inside)
	var p api.Problem
	if s.ask("POST", "/v1/plans", "", api.Spec{Config: string(j.Source), Overrides: []string{"budget.max_cost=0.000001"}},
		http.StatusUnprocessableEntity, &p); p.Code != "BUDGET_TOO_SMALL" {
		t.Errorf("%+v", p)
	}
	if entries, err := os.ReadDir(filepath.Join(j.Dir(), "out")); err != nil || len(entries) != 0 {
		t.Errorf("refused jobs left %d folders: %v", len(entries), err)
	}
}
