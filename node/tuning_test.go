package node

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
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
)

// writeBase writes a tiny model with random weights.
func writeBase(t *testing.T, dir string) {
	t.Helper()
	c, err := model.Parse(model.Llama, map[string]any{"vocab_size": 256, "max_position_embeddings": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range c.Tensors() {
		names = append(names, n.Name)
	}
	weights, err := encodeWeights(names, c.Init(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	template := []byte(`{"chat_template": "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}", "eos_token": "\\n"}`)
	for name, text := range map[string][]byte{fileTokenizerConfig: template, fileConfig: c.JSON(), fileTokenizer: tokenizer.Bytes().JSON(), fileModel: weights} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

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

// A model is tuned with a file of conversations, and the result once more, with the losses of a validation file; both can be
// verified. Runs and data lie apart.
func TestFineTuning(t *testing.T) {
	root, data := t.TempDir(), t.TempDir()
	writeBase(t, filepath.Join(data, "tiny"))
	s := serveJobs(t, root, data)
	defer func() { s.stop() }()
	line := `{"messages": [{"role": "user", "content": "What does the bird do?"}, {"role": "assistant", "content": "It sings."}]}` + "\n"
	train := s.upload(strings.Repeat(line, 20))
	held := s.upload(strings.Repeat(line, 3))
	over := func(j api.Job) bool { return j.State != "queued" && j.State != "running" }

	asked := map[string]any{"model": "tiny", "training_file": train.ID, "hyperparameters": map[string]any{"n_epochs": 1, "batch_size": 4, "learning_rate_multiplier": "auto"}, "suffix": "birds"}
	var first, again api.FineTuningJob
	s.ask("POST", "/v1/fine_tuning/jobs", "k", asked, http.StatusOK, &first)
	if first.Status != "queued" && first.Status != "running" || first.Hyperparameters.Rate != 1 || first.Hyperparameters.Batch != 4 || first.Seed != 42 {
		t.Errorf("%+v", first)
	}
	if s.ask("POST", "/v1/fine_tuning/jobs", "k", asked, http.StatusOK, &again); again.ID != first.ID {
		t.Errorf("the same key gives %s and %s", first.ID, again.ID)
	}
	if j := s.until(first.ID, over); j.State != "done" {
		log, _ := os.ReadFile(filepath.Join(root, first.ID, fileLog))
		t.Fatalf("%+v %+v\n%s", j, j.Reason, log[max(0, len(log)-4000):])
	}
	s.ask("GET", "/v1/fine_tuning/jobs/"+first.ID, "", nil, http.StatusOK, &first)
	if first.Status != "succeeded" || *first.FineTunedModel != "ft:tiny:birds:"+first.ID || *first.TrainedTokens == 0 {
		t.Fatalf("%+v", first)
	}

	var second api.FineTuningJob
	s.ask("POST", "/v1/fine_tuning/jobs", "", api.FineTuningRequest{Model: *first.FineTunedModel, TrainingFile: train.ID, ValidationFile: held.ID,
		Method: &api.TuningMethod{Type: "supervised", Supervised: api.SupervisedMethod{Hyperparameters: api.Hyperparameters{Epochs: 1, Batch: 1}}}}, http.StatusOK, &second)
	s.ask("POST", "/v1/fine_tuning/jobs/"+second.ID+"/cancel", "", nil, http.StatusOK, &second)
	if second.Status != "cancelled" {
		t.Errorf("%+v", second)
	}
	s.ask("POST", "/v1/fine_tuning/jobs/"+second.ID+"/resume", "", nil, http.StatusOK, &second)
	if j := s.until(second.ID, over); j.State != "done" || j.EvalLoss == nil {
		log, _ := os.ReadFile(filepath.Join(root, second.ID, fileLog))
		t.Fatalf("%+v %+v\n%s", j, j.Reason, log[max(0, len(log)-4000):])
	}
	var models api.Models
	s.ask("GET", "/v1/models", "", nil, http.StatusOK, &models)
	if models.Object != "list" || len(models.Data) != 2 || models.Data[0].ID != "ft:"+*first.FineTunedModel+"::"+second.ID || models.Data[1].ID != *first.FineTunedModel {
		t.Errorf("%+v", models.Data)
	}
	for _, m := range models.Data {
		var said struct {
			Fingerprint string `json:"system_fingerprint"`
			Choices     []struct{ Message struct{ Content string } }
		}
		s.ask("POST", "/v1/chat/completions", "", map[string]any{"model": m.ID, "seed": 1, "max_completion_tokens": 4, "messages": []map[string]string{{"role": "user", "content": "What?"}}}, http.StatusOK, &said)
		if len(said.Choices) != 1 || !strings.HasPrefix(said.Fingerprint, "fp_") {
			t.Errorf("%s says %+v", m.ID, said)
		}
	}
	var events api.FineTuningEvents
	s.ask("GET", "/v1/fine_tuning/jobs/"+second.ID+"/events", "", nil, http.StatusOK, &events)
	if n := len(events.Data); n < 3 || events.Data[1].Data == nil || events.Data[1].Data.ValidLoss == nil || !strings.HasPrefix(events.Data[0].Message, "New fine-tuned model created: ft:ft:tiny:birds:") {
		t.Errorf("%+v", events)
	}
	var list api.FineTuningJobs
	s.ask("GET", "/v1/fine_tuning/jobs", "", nil, http.StatusOK, &list)
	if len(list.Data) != 2 {
		t.Errorf("%+v", list)
	}
	t.Run("client", func(t *testing.T) { testTuningClient(t, s.url+"/v1", strings.Repeat(line, 20), first, second.ID) })
	for _, id := range []string{first.ID, second.ID} {
		if text, err := os.ReadFile(filepath.Join(root, id, "chat_template.jinja")); err != nil || !strings.Contains(string(text), "<assistant>") {
			t.Errorf("%s: a template of %q, %v", id, text, err)
		}
		if _, err := Verify(t.Context(), filepath.Join(root, id), VerifyOptions{Shipped: true}); err != nil {
			t.Error(err)
		}
	}
}

// testTuningClient does all that again with OpenAI's own client, which is answered the job that it would have submitted.
func testTuningClient(t *testing.T, url, examples string, job api.FineTuningJob, other string) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run OpenAI's client with")
	}
	clients := filepath.Join("..", "web", "clients")
	if _, err := os.Stat(filepath.Join(clients, "node_modules", "openai")); err != nil {
		t.Skip("OpenAI's client is not installed: run `npm ci --ignore-scripts` in web/clients")
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), node, "tuning.mjs", url, examples, "k")
	cmd.Dir, cmd.Stderr = clients, &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var heard struct {
		File                           api.FileObject
		Content, Model, Said, Streamed string
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
	if heard.File.ID != job.TrainingFile || heard.File.Filename != "examples.jsonl" || heard.Content != examples || len(heard.Files) != 2 || !heard.Deleted.Deleted {
		t.Errorf("%+v %q %+v", heard.File, heard.Files, heard.Deleted)
	}
	if heard.Job.ID != job.ID || heard.Job.Status != "succeeded" || !slices.Equal(heard.Jobs, []string{other, job.ID}) || len(heard.Events) < 3 || len(heard.Checkpoints) != len(heard.Events)-2 {
		t.Errorf("%+v %q %q %+v", heard.Job, heard.Jobs, heard.Events, heard.Checkpoints)
	}
	if last := heard.Checkpoints[0]; last.Model != *job.FineTunedModel || heard.Model != last.Model || len(heard.Models) != 2 || heard.Said != heard.Streamed {
		t.Errorf("%+v %q %q, said %q, streamed %q", last, heard.Model, heard.Models, heard.Said, heard.Streamed)
	}
	for name, want := range map[string]struct {
		kind   string
		status int
		code   string
	}{
		"cancel": {"ConflictError", 409, "job_over"}, "line": {"BadRequestError", 400, "invalid_file"}, "model": {"NotFoundError", 404, "model_not_found"}, "file": {"NotFoundError", 404, "not_found"},
	} {
		if got := heard.Errors[name]; got.Kind != want.kind || got.Status != want.status || got.Code != want.code {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
