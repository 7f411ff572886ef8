package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/api/apipb"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/internal/porttest"
)

// ask sends a request, and reads its answer into a value if it has one of the statuses.
func (o *ordering) ask(method, path, kind string, body io.Reader, into any, statuses ...int) (status int) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.url+path, body)
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	for _, wanted := range statuses {
		if err == nil && answer.StatusCode == wanted {
			if err := json.Unmarshal(text, into); err != nil {
				o.t.Fatal(err)
			}
			return answer.StatusCode
		}
	}
	o.t.Fatalf("%s %s: %d, %v %s", method, path, answer.StatusCode, err, text)
	return 0
}

// post sends JSON.
func (o *ordering) post(path string, body, into any, statuses ...int) int {
	o.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.ask("POST", path, "application/json", bytes.NewReader(text), into, statuses...)
}

// By a gateway, a model is tuned in OpenAI's form on a network, paused there, resumed, and asked; and a job is ordered
// by gRPC.
func TestWebOrdersByEveryInterface(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir := writeJob(t, ""), t.TempDir()
	jobtest.WriteBase(t, filepath.Join(filepath.Dir(job), "tiny"))
	net, port := filepath.Join(dir, "net"), porttest.Ports(t, 40)
	up(t, net, "--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port))
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	s := serves(t, "gateway: ", []string{"gateway", out, "--data", filepath.Dir(job), "--network",
		fmt.Sprintf("http://127.0.0.1:%d", port+1), "--home", filepath.Join(net, "consumer")})
	var v api.Version
	var none api.Problem
	s.ask("GET", "/v1/version", "", http.NoBody, &v, http.StatusOK)
	if s.ask("GET", "/", "", http.NoBody, &none, http.StatusNotFound); !v.Orders || !v.Submits || none.Code != "NO_PAGES" {
		t.Errorf("%+v, %+v", v, none)
	}
	t.Run("openai", func(t *testing.T) { (&ordering{t, s.url, nil}).tune(t) })
	t.Run("grpc", func(t *testing.T) { (&ordering{t, s.url, nil}).call(t, job) })
}

func (o *ordering) tune(t *testing.T) {
	line := `{"messages": [{"role": "user", "content": "What does the bird do?"}, {"role": "assistant", "content": "It ` +
		`sings."}]}` + "\n"
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "examples.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, strings.Repeat(line, 50)) // to memory
	_ = w.WriteField("purpose", "fine-tune")
	_ = w.Close()
	var file api.FileObject
	o.ask("POST", "/v1/files", w.FormDataContentType(), &form, &file, http.StatusOK)
	var j api.FineTuningJob
	o.post("/v1/fine_tuning/jobs", map[string]any{"model": "tiny", "training_file": file.ID,
		"hyperparameters": map[string]any{"n_epochs": 50, "batch_size": 4}}, &j, http.StatusOK)
	at := "/v1/fine_tuning/jobs/" + j.ID
	var answer json.RawMessage
	for o.post(at+"/pause", nil, &answer, http.StatusOK, http.StatusConflict) != http.StatusOK { // until it has a run
		if !strings.Contains(string(answer), "job_waits") {
			t.Fatalf("%s", answer)
		}
		<-seldom()
	}
	if err := json.Unmarshal(answer, &j); err != nil || j.Status != "paused" {
		t.Fatalf("%v %s", err, answer)
	}
	o.post(at+"/resume", nil, &j, http.StatusOK)
	for j.Status == "queued" || j.Status == "running" {
		<-seldom()
		o.ask("GET", at, "", http.NoBody, &j, http.StatusOK)
	}
	if j.Status != "succeeded" || j.FineTunedModel == nil {
		t.Fatalf("%+v %+v", j, j.Error)
	}
	var said struct {
		Choices []struct{ Message struct{ Content string } }
	}
	o.post("/v1/chat/completions", map[string]any{"model": *j.FineTunedModel, "seed": 1, "max_completion_tokens": 4,
		"messages": []map[string]string{{"role": "user", "content": "What?"}}}, &said, http.StatusOK)
	if len(said.Choices) != 1 {
		t.Errorf("%+v", said)
	}
}

func (o *ordering) call(t *testing.T, job string) {
	text, err := os.ReadFile(job)
	if err != nil {
		t.Fatal(err)
	}
	c, err := grpc.NewClient(strings.TrimPrefix(o.url, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	jobs := apipb.NewJobServiceClient(c)
	key := "called"
	j, err := jobs.SubmitJob(t.Context(), &apipb.SubmitJobRequest{Config: string(text), IdempotencyKey: key})
	if err != nil {
		t.Fatal(err)
	}
	again, err := jobs.SubmitJob(t.Context(), &apipb.SubmitJobRequest{Config: string(text), IdempotencyKey: key})
	if err != nil || again.Id != j.Id {
		t.Errorf("the same key gives %v and %v: %v", j.Id, again.GetId(), err)
	}
	events, err := jobs.WatchJob(t.Context(), &apipb.WatchJobRequest{Id: j.Id})
	if err != nil {
		t.Fatal(err)
	}
	for j.State != "done" {
		e, err := events.Recv()
		if err != nil {
			t.Fatalf("%s: %v", j.State, err)
		}
		if u := e.GetUpdate(); u != nil {
			j = u.Job
		}
	}
}
