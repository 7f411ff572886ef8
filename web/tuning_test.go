package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/sourcetest"
)

// tuned asks for something about the job of a tailor, in a state.
func tuned[T any](t *testing.T, change func(h *source.History), path string) (v T) {
	t.Helper()
	lib := sourcetest.New()
	lib.Put("ftjob-1", func(h *source.History) {
		*h = *sourcetest.Run(3)
		h.Job.Updated, h.Job.Tokens = time.Unix(5000, 0), 3000
		if change != nil {
			change(h)
		}
	})
	status, _, text := get(t, server(t, Config{Runs: lib, Tuner: &sourcetest.Tuner{}}), "/v1/fine_tuning/jobs"+path)
	if err := json.Unmarshal([]byte(text), &v); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, status, text, err)
	}
	return v
}

// Every state of a run is a status that OpenAI's clients know.
func TestTuningStatus(t *testing.T) {
	for state, c := range map[string]struct {
		reason *api.Reason
		status string
		over   bool
		code   string
	}{
		"queued":   {&api.Reason{Code: "queued"}, "queued", false, ""},
		"running":  {&api.Reason{Code: "training"}, "running", false, ""},
		"done":     {nil, "succeeded", true, ""},
		"done ":    {&api.Reason{Code: "diverged", Text: "it diverged"}, "failed", true, "diverged"},
		"failed":   {&api.Reason{Code: "DISK_FULL", Text: "no room"}, "failed", true, "disk_full"},
		"halted":   {&api.Reason{Code: "no_workers", Text: "none left"}, "failed", true, "no_workers"},
		"stopped":  {&api.Reason{Code: "cancelled"}, "cancelled", true, ""},
		"stopped ": {&api.Reason{Code: "stopped", Text: "no process trains it"}, "paused", false, "stopped"},
	} {
		j := tuned[api.FineTuningJob](t,
			func(h *source.History) { h.Job.State, h.Job.Reason = strings.TrimSpace(state), c.reason },
			"/ftjob-1")
		if j.Status != c.status || (j.FinishedAt != nil) != c.over ||
			(j.FineTunedModel != nil) != (c.status == "succeeded") || (j.Error != nil) != (c.code != "") || j.Error != nil &&
			*j.Error.Code != c.code {
			t.Errorf("%s: %+v %+v", state, j, j.Error)
		}
	}
	j := tuned[api.FineTuningJob](t, nil, "/ftjob-1")
	if *j.FineTunedModel != "ft:base:mine:ftjob-1" || *j.TrainedTokens != 3000 || j.CreatedAt != 1000 ||
		*j.FinishedAt != 5000 || j.Seed != 7 || j.Hyperparameters.Epochs != 3 || j.ValidationFile != nil {
		t.Errorf("%+v", j)
	}
}

// Events and checkpoints come the latest first, and page by page.
func TestTuningRecord(t *testing.T) {
	var texts []string
	after := ""
	for range 5 {
		e := tuned[api.FineTuningEvents](t, nil, "/ftjob-1/events?limit=1&after="+after)
		texts, after = append(texts, e.Data[0].Message), e.Data[0].ID
		if e.HasMore != (len(texts) < 5) || (e.Data[0].Type == "metrics") != (e.Data[0].Data != nil) {
			t.Errorf("%+v", e)
		}
	}
	want := []string{"New fine-tuned model created: ft:base:mine:ftjob-1",
		"Step 30/30: training loss=0.0000, validation loss=2.3333",
		"Step 20/30: training loss=0.0000, validation loss=2.5000",
		"Step 10/30: training loss=0.0000, validation loss=3.0000", "Created fine-tuning job: ftjob-1"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	c := tuned[api.FineTuningCheckpoints](t, nil, "/ftjob-1/checkpoints?limit=2")
	if len(c.Data) != 2 || !c.HasMore || c.Data[0].Model != "ft:base:mine:ftjob-1" ||
		c.Data[1].Model != "ft:base:mine:ftjob-1:ckpt-step-20" || c.Data[0].CreatedAt != 1006 || *c.LastID != c.Data[1].ID ||
		c.Data[0].StateRoot == "" {
		t.Errorf("%+v", c)
	}
	l := tuned[api.FineTuningJobs](t, nil, "")
	if len(l.Data) != 1 || l.HasMore || l.Data[0].ID != "ftjob-1" {
		t.Errorf("%+v", l)
	}
}

// A run that continued the next day has the events of that day.
func TestTuningTimes(t *testing.T) {
	ends := map[uint32]int64{1: 1100, 2: 90_000, 3: 90_002}
	resumed := func(h *source.History) {
		h.Job.Updated = time.Unix(90_010, 0)
		for i := range h.Metrics {
			if m := &h.Metrics[i]; m.Kind == "round" && m.Round > 0 {
				m.Time = time.Unix(ends[m.Round], 0)
			}
		}
	}
	var got []int64
	for _, e := range tuned[api.FineTuningEvents](t, resumed, "/ftjob-1/events").Data {
		got = append(got, e.CreatedAt)
	}
	if want := []int64{90_010, 90_002, 90_000, 1100, 1000}; !slices.Equal(got, want) {
		t.Errorf("events at %v, want %v", got, want)
	}
	if c := tuned[api.FineTuningCheckpoints](t, resumed, "/ftjob-1/checkpoints").Data; c[0].CreatedAt != 90_002 ||
		c[2].CreatedAt != 1100 {
		t.Errorf("%+v", c)
	}
}

// Impossible requests are refused in OpenAI's form; a file that a job needs stays.
func TestTuningRefuses(t *testing.T) {
	lib := sourcetest.New()
	lib.Put("ftjob-1", func(h *source.History) { h.Job.State = "running" })
	whole := server(t, Config{Runs: lib, Launcher: &sourcetest.Launcher{}, Files: sourcetest.Files{},
		Tuner: &sourcetest.Tuner{}})
	shows := server(t, Config{Runs: lib})
	for name, c := range map[string]struct {
		s                          *Server
		method, path, body, origin string
		status                     int
		code                       string
	}{
		"read-only": {shows, "POST", "/v1/fine_tuning/jobs", `{"model": "base", "training_file": "file-1"}`, "",
			http.StatusNotImplemented, "submission_off"},
		"nothing":     {shows, "GET", "/v1/fine_tuning/jobs/ftjob-1", "", "", http.StatusNotFound, "not_found"},
		"unknown":     {whole, "POST", "/v1/fine_tuning/jobs/ftjob-2/cancel", "", "", http.StatusNotFound, "not_found"},
		"another run": {whole, "GET", "/v1/fine_tuning/jobs/first/events", "", "", http.StatusNotFound, "not_found"},
		"model": {whole, "POST", "/v1/fine_tuning/jobs", `{"model": "none", "training_file": "file-1"}`, "",
			http.StatusNotFound, "model_not_found"},
		"key": {whole, "POST", "/v1/fine_tuning/jobs", `{"model": "base", "training_file": "file-1", "epochs": 3}`,
			"", http.StatusBadRequest, "body_invalid"},
		"number": {whole, "POST", "/v1/fine_tuning/jobs",
			`{"model": "base", "training_file": "file-1", "hyperparameters": {"n_epochs": "many"}}`, "", http.StatusBadRequest,
			"body_invalid"},
		"cross-site": {whole, "POST", "/v1/fine_tuning/jobs", `{"model": "base"}`, "http://elsewhere.example",
			http.StatusForbidden, "cross_site"},
		"in use": {whole, "DELETE", "/v1/files/file-1", "", "", http.StatusConflict, "file_in_use"},
		"pause": {shows, "POST", "/v1/fine_tuning/jobs/ftjob-1/pause", "", "", http.StatusNotImplemented,
			"submission_off"},
		"base":       {whole, "DELETE", "/v1/models/other", "", "", http.StatusNotFound, "model_not_found"},
		"as a base":  {whole, "DELETE", "/v1/models/base", "", "", http.StatusConflict, "model_in_use"},
		"elsewhere":  {whole, "POST", "/v1/responses", `{}`, "", http.StatusNotFound, "unknown_url"},
		"no vectors": {whole, "POST", "/v1/embeddings", `{}`, "", http.StatusNotFound, "unknown_url"},
		"cursor":     {whole, "GET", "/v1/fine_tuning/jobs?after=ftjob-9", "", "", http.StatusBadRequest, "invalid_value"},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		c.s.ServeHTTP(w, r)
		var e api.OpenAIError
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != c.status || e.Error.Code == nil ||
			*e.Error.Code != c.code {
			t.Errorf("%s: %d %s %v", name, w.Code, w.Body, err)
		}
	}
}

// The models of a server are asked at its address, by those whose token may submit.
func TestModelsAreAsked(t *testing.T) {
	tokens, err := access.ParseTokens(strings.NewReader("aaaaaaaaaaaaaaaaaaaaaaaa read\n" +
		"bbbbbbbbbbbbbbbbbbbbbbbb read,submit"))
	if err != nil {
		t.Fatal(err)
	}
	s := server(t, Config{Models: sourcetest.Model{}, Tokens: tokens})
	ask := func(s *Server, path, token, body string) (int, string) {
		r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const reader, writer = "aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb"
	const chat = `{"model": "ft:base:mine:ftjob-1", "messages": [{"role": "user", "content": "Hi there"}]`
	for name, c := range map[string]struct {
		s                 *Server
		path, token, body string
		status            int
		text              string
	}{
		"chat":   {s, "/v1/chat/completions", writer, chat + "}", http.StatusOK, `"content":"Hi there"`},
		"stream": {s, "/v1/chat/completions", writer, chat + `, "stream": true}`, http.StatusOK, "data: [DONE]"},
		"completion": {s, "/v1/completions", writer, `{"model": "ft:base:mine:ftjob-1", "prompt": "Once"}`, http.StatusOK,
			`"text":"Once"`},
		"no model": {s, "/v1/completions", writer, `{"prompt": "Once"}`, http.StatusBadRequest,
			"missing_required_parameter"},
		"unknown": {s, "/v1/completions", writer, `{"model": "x"}`, http.StatusNotFound, "model_not_found"},
		"reader":  {s, "/v1/chat/completions", reader, chat + "}", http.StatusForbidden, `"scope_missing"`},
		"nobody":  {s, "/v1/completions", "", "{}", http.StatusUnauthorized, `"error"`},
		"none":    {server(t, Config{}), "/v1/chat/completions", "", chat + "}", http.StatusNotImplemented, "serving_off"},
	} {
		if status, text := ask(c.s, c.path, c.token, c.body); status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	// the list in OpenAI's form has the fields of OpenAI, and no others
	var list map[string]json.RawMessage
	_, _, text := get(t, server(t, Config{Models: sourcetest.Model{}}), "/v1/models")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 2 || string(list["object"]) != `"list"` ||
		!strings.Contains(string(list["data"]), `"ft:base:mine:ftjob-1"`) {
		t.Errorf("%v %s", err, text)
	}
	if status, _, text := get(t, server(t, Config{Models: sourcetest.Model{}}),
		"/v1/models/other"); status != http.StatusNotFound || !strings.Contains(text, "model_not_found") {
		t.Errorf("%d %s", status, text)
	}
}

// The keys of OpenAI's form that say nothing about training are taken, and what a job measured is a file of its own.
func TestTuningResults(t *testing.T) {
	lib := sourcetest.New()
	lib.Put("ftjob-1", func(h *source.History) {
		*h = *sourcetest.Run(3)
		h.Job.ID, h.Job.Updated = "ftjob-1", time.Unix(5000, 0)
	})
	s := server(t, Config{Runs: lib, Launcher: &sourcetest.Launcher{}, Files: sourcetest.Files{},
		Tuner: &sourcetest.Tuner{}})
	ask := func(method, path, body string, v any) http.Header {
		t.Helper()
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if raw, ok := v.(*string); ok {
			*raw = w.Body.String()
		} else if err := json.Unmarshal(w.Body.Bytes(), v); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return w.Header()
	}
	var j api.FineTuningJob
	ask("POST", "/v1/fine_tuning/jobs", `{"model": "base", "training_file": "file-1", "metadata": {"project": `+
		`"birds"}, "integrations": null}`, &j)
	if j.Metadata == nil || j.Integrations == nil || len(j.ResultFiles) != 1 {
		t.Fatalf("%+v", j)
	}
	var text string
	var about api.FileObject
	var list api.FileObjects
	kind := ask("GET", "/v1/files/"+j.ResultFiles[0]+"/content", "", &text).Get("Content-Type")
	if want := "step,train_loss,valid_loss\n10,0,3\n20,0,2.5\n30,0,2.3333333333333335\n"; text != want ||
		kind != "text/csv; charset=utf-8" {
		t.Errorf("%q of type %s", text, kind)
	}
	if ask("GET", "/v1/files/"+j.ResultFiles[0], "", &about); about.Purpose != "fine-tune-results" ||
		about.Bytes != int64(len(text)) || about.CreatedAt != 5000 {
		t.Errorf("%+v", about)
	}
	if ask("GET", "/v1/files?purpose=fine-tune-results", "", &list); len(list.Data) != 1 || list.Data[0] != about {
		t.Errorf("%+v", list)
	}
	if ask("GET", "/v1/files", "", &list); len(list.Data) != 2 {
		t.Errorf("%+v", list)
	}
	var gone api.ModelDeleted
	if ask("DELETE", "/v1/models/ft:base:mine:ftjob-1", "", &gone); !gone.Deleted || gone.ID != "ft:base:mine:ftjob-1" {
		t.Errorf("%+v", gone)
	}
	lib.Put("ftjob-1", func(h *source.History) { h.Job.State = "running" })
	if ask("POST", "/v1/fine_tuning/jobs/ftjob-1/pause", "", &j); len(j.ResultFiles) != 0 {
		t.Errorf("a job that is not over has results: %+v", j)
	}
}
