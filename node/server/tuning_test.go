package server

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/verify"
)

// upload sends a file of examples as OpenAI's clients do.
func (s submissions) upload(text string) (f api.FileObject) {
	s.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, err := form.CreateFormFile("file", "examples.jsonl")
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = io.WriteString(part, text) // to memory
	_ = form.WriteField("purpose", "fine-tune")
	_ = form.Close()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+"/v1/files", &b)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&f); err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%d %v", answer.StatusCode, err)
	}
	return f
}

// A model is tuned with a file of conversations, and the result once more, with the losses of a validation file; both
// can be verified. Runs and data lie apart.
func TestFineTuning(t *testing.T) {
	t.Parallel()
	root, data := t.TempDir(), t.TempDir()
	jobtest.WriteBase(t, filepath.Join(data, "tiny"))
	s := serveJobs(t, root, data)
	defer func() { s.stop() }()
	line := `{"messages": [{"role": "user", "content": "What does the bird do?"}, {"role": "assistant", "content": "It ` +
		`sings."}]}` + "\n"
	train := s.upload(strings.Repeat(line, 20))
	held := s.upload(strings.Repeat(line, 3))
	over := func(j api.Job) bool { return j.State != "queued" && j.State != "running" }

	asked := map[string]any{"model": "tiny", "training_file": train.ID,
		"hyperparameters": map[string]any{"n_epochs": 1, "batch_size": 4, "learning_rate_multiplier": "auto"},
		"suffix":          "birds",
		"metadata":        map[string]string{"project": "wings"}, "integrations": nil}
	var first, again api.FineTuningJob
	s.ask("POST", "/v1/fine_tuning/jobs", "k", asked, http.StatusOK, &first)
	if first.Status != "queued" && first.Status != "running" || first.Hyperparameters.Rate != 1 ||
		first.Hyperparameters.Batch != 4 || first.Seed != 42 {
		t.Errorf("%+v", first)
	}
	if s.ask("POST", "/v1/fine_tuning/jobs", "k", asked, http.StatusOK, &again); again.ID != first.ID {
		t.Errorf("the same key gives %s and %s", first.ID, again.ID)
	}
	if j := s.until(first.ID, over); j.State != "done" {
		log, _ := os.ReadFile(filepath.Join(root, first.ID, rundir.FileLog))
		t.Fatalf("%+v %+v\n%s", j, j.Reason, log[max(0, len(log)-4000):])
	}
	s.ask("GET", "/v1/fine_tuning/jobs/"+first.ID, "", nil, http.StatusOK, &first)
	if first.Status != "succeeded" || *first.FineTunedModel != "ft:tiny:birds:"+first.ID || *first.TrainedTokens == 0 {
		t.Fatalf("%+v", first)
	}

	var second api.FineTuningJob
	s.ask("POST", "/v1/fine_tuning/jobs", "",
		api.FineTuningRequest{Model: *first.FineTunedModel, TrainingFile: train.ID, ValidationFile: held.ID,
			Method: &api.TuningMethod{Type: "supervised",
				Supervised: api.SupervisedMethod{Hyperparameters: api.Hyperparameters{Epochs: 1, Batch: 1}}}}, http.StatusOK,
		&second)
	for _, step := range [][2]string{{"pause", "paused"}, {"pause", "paused"}, {"resume", ""}, {"pause", "paused"},
		{"cancel", "cancelled"}, {"resume", ""}} {
		s.ask("POST", "/v1/fine_tuning/jobs/"+second.ID+"/"+step[0], "", nil, http.StatusOK, &second)
		if step[1] != "" && second.Status != step[1] {
			t.Errorf("%s: %+v", step[0], second)
		}
	}
	if j := s.until(second.ID, over); j.State != "done" || j.EvalLoss == nil {
		log, _ := os.ReadFile(filepath.Join(root, second.ID, rundir.FileLog))
		t.Fatalf("%+v %+v\n%s", j, j.Reason, log[max(0, len(log)-4000):])
	}
	var models api.OpenAIModels
	s.ask("GET", "/v1/models", "", nil, http.StatusOK, &models)
	if models.Object != "list" || len(models.Data) != 2 ||
		models.Data[0].ID != "ft:"+*first.FineTunedModel+"::"+second.ID || models.Data[1].ID != *first.FineTunedModel {
		t.Errorf("%+v", models.Data)
	}
	for _, m := range models.Data {
		var said struct {
			Fingerprint string `json:"system_fingerprint"`
			Choices     []struct{ Message struct{ Content string } }
		}
		s.ask("POST", "/v1/chat/completions", "",
			map[string]any{"model": m.ID, "seed": 1, "max_completion_tokens": 4,
				"messages": []map[string]string{{"role": "user", "content": "What?"}}}, http.StatusOK, &said)
		if len(said.Choices) != 1 || !strings.HasPrefix(said.Fingerprint, "fp_") {
			t.Errorf("%s says %+v", m.ID, said)
		}
	}
	var events api.FineTuningEvents
	s.ask("GET", "/v1/fine_tuning/jobs/"+second.ID+"/events", "", nil, http.StatusOK, &events)
	if n := len(events.Data); n < 3 || events.Data[1].Data == nil || events.Data[1].Data.ValidLoss == nil ||
		!strings.HasPrefix(events.Data[0].Message, "New fine-tuned model created: ft:ft:tiny:birds:") {
		t.Errorf("%+v", events)
	}
	var list api.FineTuningJobs
	s.ask("GET", "/v1/fine_tuning/jobs", "", nil, http.StatusOK, &list)
	if len(list.Data) != 2 {
		t.Errorf("%+v", list)
	}
	t.Run("client", func(t *testing.T) { testTuningClient(t, s.url+"/v1", strings.Repeat(line, 20), first, second.ID) })
	for _, id := range []string{first.ID, second.ID} {
		if text, err := os.ReadFile(filepath.Join(root, id, "chat_template.jinja")); err != nil ||
			!strings.Contains(string(text), "<assistant>") {
			t.Errorf("%s: a template of %q, %v", id, text, err)
		}
		if _, err := verify.Run(t.Context(), filepath.Join(root, id), verify.Options{Shipped: true}); err != nil {
			t.Error(err)
		}
	}
	var gone api.ModelDeleted
	s.ask("DELETE", "/v1/models/"+models.Data[0].ID, "", nil, http.StatusOK, &gone)
	left, err := os.ReadDir(filepath.Join(root, second.ID))
	if weights := slices.ContainsFunc(left,
		func(e os.DirEntry) bool { return e.Name() == prepare.FileModel || e.Name() == "blobs" }); weights || err != nil ||
		!gone.Deleted {
		t.Errorf("%+v leaves %v %v", gone, left, err)
	}
	if s.ask("GET", "/v1/models", "", nil, http.StatusOK, &models); len(models.Data) != 1 ||
		models.Data[0].ID != *first.FineTunedModel {
		t.Errorf("%+v", models.Data)
	}
	var kept api.FineTuningJob
	if s.ask("GET", "/v1/fine_tuning/jobs/"+second.ID, "", nil, http.StatusOK, &kept); kept.Status != "succeeded" {
		t.Errorf("%+v", kept)
	}
	const pair = `{"input": {"messages": [{"role": "user", "content": "What?"}]}, "preferred_output": [{"role": ` +
		`"assistant", "content": "A bird."}], "non_preferred_output": [{"role": "assistant", "content": "No."}]}` + "\n"
	var third api.FineTuningJob
	s.ask("POST", "/v1/fine_tuning/jobs", "", api.FineTuningRequest{Model: *first.FineTunedModel,
		TrainingFile: s.upload(strings.Repeat(pair, 8)).ID, Method: &api.TuningMethod{Type: "dpo",
			DPO: api.DPOMethod{Hyperparameters: api.DPOHyperparameters{Epochs: 1, Batch: 2}}}}, http.StatusOK, &third)
	if j := s.until(third.ID, over); j.State != "done" || third.Method.Type != "dpo" ||
		third.Method.DPO.Hyperparameters.Beta != 0.1 {
		log, _ := os.ReadFile(filepath.Join(root, third.ID, rundir.FileLog))
		t.Fatalf("%+v %+v\n%s", third.Method, j, log[max(0, len(log)-4000):])
	}
	const question = `{"messages": [{"role": "user", "content": "A?"}], "answer": "B"}` + "\n"
	var fourth api.FineTuningJob
	s.ask("POST", "/v1/fine_tuning/jobs", "", api.FineTuningRequest{Model: *first.FineTunedModel,
		TrainingFile: s.upload(strings.Repeat(question, 8)).ID, Method: &api.TuningMethod{Type: "reinforcement",
			Reinforcement: &api.ReinforcementMethod{
				Grader: api.Grader{Type: "string_check", Name: "same", Operation: "eq", Input: "{{sample.output_text}}",
					Reference: "{{item.answer}}"},
				Hyperparameters: api.ReinforcementHyperparameters{Epochs: 1, Batch: 2, Compute: 0.25}}}},
		http.StatusOK, &fourth)
	if j := s.until(fourth.ID, over); j.State != "done" || fourth.Method.Type != "reinforcement" ||
		fourth.Method.Reinforcement.Hyperparameters.Compute != 0.25 {
		log, _ := os.ReadFile(filepath.Join(root, fourth.ID, rundir.FileLog))
		t.Fatalf("%+v %+v\n%s", fourth.Method, j, log[max(0, len(log)-4000):])
	}
}

// testTuningClient does all that again with OpenAI's own client, which is answered the job that it would have
// submitted.
func testTuningClient(t *testing.T, url, examples string, job api.FineTuningJob, other string) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run OpenAI's client with")
	}
	clients := filepath.Join("..", "..", "web", "clients")
	if _, err := os.Stat(filepath.Join(clients, "node_modules", "openai")); err != nil {
		t.Skip("OpenAI's client is not installed: run `npm ci --ignore-scripts` in web/clients")
	}
	var stderr strings.Builder
	inputs.Of(t, filepath.Join(clients, "tuning.mjs"))
	cmd := exec.CommandContext(t.Context(), node, "tuning.mjs", url, examples, "k")
	cmd.Dir, cmd.Stderr = clients, &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var heard struct {
		File                           api.FileObject
		Content, Model, Said, Streamed string
		Results                        string
		Files, Jobs, Events, Models    []string
		Job                            api.FineTuningJob
		Checkpoints                    []api.FineTuningCheckpoint
		Deleted                        api.FileDeleted
		Errors                         map[string]struct {
			Kind, Code, Param string
			Status            int
		}
	}
	if err := json.Unmarshal(raw, &heard); err != nil {
		t.Fatal(err)
	}
	if heard.File.ID != job.TrainingFile || heard.File.Filename != "examples.jsonl" || heard.Content != examples ||
		len(heard.Files) != 2 || !heard.Deleted.Deleted {
		t.Errorf("%+v %q %+v", heard.File, heard.Files, heard.Deleted)
	}
	if heard.Job.ID != job.ID || heard.Job.Status != "succeeded" || !slices.Equal(heard.Jobs, []string{other, job.ID}) ||
		len(heard.Events) < 3 || len(heard.Checkpoints) != len(heard.Events)-2 {
		t.Errorf("%+v %q %q %+v", heard.Job, heard.Jobs, heard.Events, heard.Checkpoints)
	}
	if last := heard.Checkpoints[0]; last.Model != *job.FineTunedModel || heard.Model != last.Model ||
		len(heard.Models) != 2 || heard.Said != heard.Streamed {
		t.Errorf("%+v %q %q, said %q, streamed %q", last, heard.Model, heard.Models, heard.Said, heard.Streamed)
	}
	if heard.Job.Metadata["project"] != "wings" || !strings.HasPrefix(heard.Results, "step,train_loss,valid_loss\n") ||
		strings.Count(heard.Results, "\n") != len(heard.Events)-1 {
		t.Errorf("%+v %q", heard.Job.Metadata, heard.Results)
	}
	for name, want := range map[string]struct {
		kind   string
		status int
		code   string
	}{
		"cancel": {"ConflictError", 409, "job_over"}, "pause": {"ConflictError", 409, "job_over"},
		"embeddings": {"NotFoundError", 404, "unknown_url"}, "moderations": {"NotFoundError", 404, "unknown_url"},
		"responses": {"NotFoundError", 404, "unknown_url"}, "delete": {"NotFoundError", 404, "model_not_found"},
		"unnamed": {"BadRequestError", 400, "missing_required_parameter"},
		"image":   {"BadRequestError", 400, "unsupported_content"}, "wandb": {"BadRequestError", 400, "invalid_value"},
		"line": {"BadRequestError", 400, "invalid_file"}, "model": {"NotFoundError", 404, "model_not_found"},
		"file": {"NotFoundError", 404, "not_found"},
	} {
		if got := heard.Errors[name]; got.Kind != want.kind || got.Status != want.status || got.Code != want.code {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
