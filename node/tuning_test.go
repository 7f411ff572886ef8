package node

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
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
	for name, text := range map[string][]byte{fileConfig: c.JSON(), fileTokenizer: tokenizer.Bytes().JSON(), fileModel: weights} {
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
	for _, id := range []string{first.ID, second.ID} {
		if _, err := Verify(t.Context(), filepath.Join(root, id), VerifyOptions{}); err != nil {
			t.Error(err)
		}
	}
}
