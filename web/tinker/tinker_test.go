package tinker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
)

// counting is an engine that computes nothing and counts what it is asked for.
type counting struct {
	passes int
	gate   chan struct{} // closed: passes need not wait
	lost   []string
}

func (*counting) Base() Base                  { return Base{Name: "base", Context: 8, Vocab: 10} }
func (*counting) Create(string, Create) error { return nil }
func (e *counting) Forward(_ string, data []Datum) (*Pass, error) {
	<-e.gate
	e.passes++
	p := &Pass{}
	for _, d := range data {
		p.LogProbs = append(p.LogProbs, make([]float32, len(d.Tokens)))
	}
	return p, nil
}
func (e *counting) Backward(model string, data []Datum, _ Loss) (*Pass, error) {
	return e.Forward(model, data)
}
func (*counting) Step(string, Step) (map[string]float64, error) { return map[string]float64{}, nil }
func (*counting) Save(string, Path, bool) error                 { return nil }
func (*counting) Load(string, Path, bool) error                 { return nil }
func (*counting) Saved(p Path) (Create, error) {
	return Create{}, failure.New(http.StatusNotFound, "NONE", p.String(), "")
}
func (e *counting) Unload(model string) { e.lost = append(e.lost, model) }
func (*counting) Sample(_ *Path, s Sample) (*Sampled, error) {
	return &Sampled{Sequences: make([]Sequence, s.Number)}, nil
}

func serve(t testing.TB, c Config) (*Server, *counting) {
	e := &counting{gate: make(chan struct{})}
	if c.Models == 0 {
		c.Models = 1
	}
	return New(t.Context(), e, c), e
}

// send sends a body and returns the status and the answer.
func send(t testing.TB, s *Server, path, body string) (int, map[string]any) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r := httptest.NewRequest(method, Prefix+path, strings.NewReader(body))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	answer := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v: %s", path, err, w.Body)
	}
	return w.Code, answer
}

// begin begins a session with a model.
func begin(t testing.TB, s *Server) (session, model string) {
	t.Helper()
	_, answer := send(t, s, "create_session", `{"tags": [], "sdk_version": "1", "user_metadata": {}}`)
	session, _ = answer["session_id"].(string)
	_, answer = send(t, s, "create_model", fmt.Sprintf(`{"session_id": %q, "model_seq_id": 0, "base_model": "base",
		"lora_config": {"rank": 4}, "type": "create_model"}`, session))
	model, _ = answer["model_id"].(string)
	if session == "" || model == "" {
		t.Fatal(answer)
	}
	return session, model
}

const oneDatum = `{"model_input": {"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]},
	"loss_fn_inputs": {"target_tokens": {"data": [2, 3], "dtype": "int64", "shape": [2]}}}`

func passBody(model, loss, config string, number int) string {
	return fmt.Sprintf(`{"model_id": %q, "seq_id": %d, "forward_backward_input": {"data": [%s], "loss_fn": %q%s}}`, model,
		number, oneDatum, loss, config)
}

// TestRefusals: each error has a status and a code, and names the reason.
func TestRefusals(t *testing.T) {
	s, e := serve(t, Config{})
	close(e.gate)
	session, model := begin(t, s)
	pass := func(datum string) string {
		return fmt.Sprintf(`{"model_id": %q, "forward_input": {"data": [%s], "loss_fn": "cross_entropy"}}`, model, datum)
	}
	sample := func(params string) string {
		return `{"base_model": "base", "prompt": {"chunks": [{"tokens": [1]}]}, "sampling_params": ` + params + `}`
	}
	step := func(adam string) string {
		return fmt.Sprintf(`{"model_id": %q, "adam_params": %s}`, model, adam)
	}
	for _, c := range []struct {
		path, body string
		status     int
		code, why  string
	}{
		{"forward", pass(`{"model_input": {"chunks": [` + strings.Repeat("{},", 1<<15) + `{"tokens": [1]}]}}`), 422,
			"BODY_INVALID", "objects and lists"},
		{"forward", "{", 422, "BODY_INVALID", "unexpected EOF"},
		{"forward", "{} {}", 422, "BODY_INVALID", "follows"},
		{"forward", `{"models": 1}`, 422, "BODY_INVALID", `unknown field "models"`},
		{"elsewhere", "{}", 404, "UNKNOWN_URL", "elsewhere"},
		{"forward", "", 405, "METHOD_UNKNOWN", "POST"},
		{"forward_backward", passBody(model, "cispo", "", 1), 400, "INVALID_VALUE", "cispo is not supported, because"},
		{"forward_backward", passBody(model, "mine", "", 1), 400, "INVALID_VALUE", `"mine" is no loss`},
		{"forward_backward", passBody(model, "ppo", `, "loss_fn_config": {"beta": 1}`, 1), 400, "INVALID_VALUE", "beta"},
		{"forward_backward", passBody(model, "ppo", `, "loss_fn_config": {"clip_low_threshold": 2}`, 1), 400,
			"INVALID_VALUE", "a ratio from 2"},
		{"forward_backward", passBody(model, "ppo", "", 1), 400, "INVALID_VALUE", "logprobs: ppo needs it"},
		{"forward_backward", passBody("model-0", "cross_entropy", "", 1), 404, "MODEL_UNKNOWN", "model"},
		{"forward", pass(strings.Replace(oneDatum, "[1, 2]", "[1, 10]", 1)), 400, "INVALID_VALUE", "the model has 10"},
		{"forward", pass(strings.Replace(oneDatum, "[1, 2]", "[1, 2, 3]", 1)), 400, "INVALID_VALUE", "2 elements"},
		{"forward", pass(strings.Replace(oneDatum, "[1, 2]", "[1,2,3,4,5,6,7,8,9]", 1)), 400, "INVALID_VALUE", "9 tokens"},
		{"forward", pass(strings.Replace(oneDatum, "[2, 3]", "[2, 3.5]", 1)), 400, "INVALID_VALUE", "no token"},
		{"forward", pass(strings.Replace(oneDatum, "encoded_text", "image", 1)), 400, "INVALID_VALUE", "tokens only"},
		{"forward", pass(strings.TrimSuffix(strings.Repeat(oneDatum+",", maxData+1), ",")), 400, "INVALID_VALUE", "1025"},
		{"create_model", `{"base_model": "other"}`, 404, "BASE_UNKNOWN", "other"},
		{"create_model", `{"session_id": "no", "base_model": "base"}`, 404, "SESSION_UNKNOWN", "session"},
		{"create_model", fmt.Sprintf(`{"session_id": %q, "base_model": "base"}`, session), 429, "MODELS_FULL", "models"},
		{"create_model", fmt.Sprintf(`{"session_id": %q, "base_model": "base", "lora_config": {"rank": 0}}`, session), 400,
			"INVALID_VALUE", "rank"},
		{"create_model", `{"base_model": "base", "optimizer_config": {"type": "dimuon"}}`, 400, "INVALID_VALUE", "dimuon"},
		{"optim_step", step(`{"beta1": 1}`), 400, "INVALID_VALUE", "beta1"},
		{"optim_step", step(`{"learning_rate": -1}`), 400, "INVALID_VALUE", "learning_rate"},
		{"optim_step", step("null"), 400, "INVALID_VALUE", "missing"},
		{"asample", sample(`{"max_tokens": 8}`), 400, "INVALID_VALUE", "max_tokens"},
		{"asample", sample(`{"temperature": -1}`), 400, "INVALID_VALUE", "temperature"},
		{"asample", sample(`{"top_p": 0}`), 400, "INVALID_VALUE", "top_p"},
		{"asample", sample(`{"top_k": 0}`), 400, "INVALID_VALUE", "top_k"},
		{"asample", sample(`{"stop": {}}`), 400, "INVALID_VALUE", "stop"},
		{"asample", sample(`{"stop": [11]}`), 400, "INVALID_VALUE", "stop"},
		{"asample", strings.Replace(sample(`{}`), `"base_model"`, `"num_samples": 200, "base_model"`, 1), 400,
			"INVALID_VALUE", "num_samples"},
		{"asample", strings.Replace(sample(`{}`), `"base_model"`, `"topk_prompt_logprobs": 2, "base_model"`, 1), 400,
			"INVALID_VALUE", "topk_prompt_logprobs"},
		{"asample", strings.Replace(sample(`{}`), `"base_model": "base"`, `"model_path": "tinker://../weights/a"`, 1), 400,
			"INVALID_VALUE", "model_path"},
		{"asample", strings.Replace(sample(`{}`), `"base_model": "base"`, `"sampling_session_id": "a"`, 1), 404,
			"SAMPLER_UNKNOWN", "sampling session"},
		{"save_weights", fmt.Sprintf(`{"model_id": %q, "path": "../a"}`, model), 400, "INVALID_VALUE", "path"},
		{"load_weights", fmt.Sprintf(`{"model_id": %q, "path": "tinker://a/sampler_weights/b"}`, model), 400,
			"INVALID_VALUE", "path"},
		{"retrieve_future", `{"request_id": "request-1"}`, 410, "RESULT_GONE", "no longer"},
		{"samplers/x", "", 404, "SAMPLER_UNKNOWN", "sampling session"},
	} {
		status, answer := send(t, s, c.path, c.body)
		detail, _ := answer["detail"].(string)
		if status != c.status || answer["code"] != c.code || !strings.Contains(detail, c.why) || answer["fix"] == "" {
			t.Errorf("%s %.120s: %d %v, want %d %s with %q", c.path, c.body, status, answer, c.status, c.code, c.why)
		}
	}
}

// TestPublishedBodies: the bodies of the published client, which sends all keys of its types (tinker 0.1 to 0.22,
// src/tinker/types), and further ones of later versions with their defaults.
func TestPublishedBodies(t *testing.T) {
	s, e := serve(t, Config{})
	close(e.gate)
	session, model := begin(t, s)
	for _, c := range [][2]string{
		{"client/config", `{"sdk_version": "0.22.0"}`},
		{"create_session", `{"tags": ["a"], "user_metadata": {"b": 1}, "sdk_version": "0.22.0", "type": "create_session"}`},
		{"session_heartbeat", `{"session_id": "SESSION", "type": "session_heartbeat"}`},
		{"get_info", `{"model_id": "MODEL", "type": "get_info"}`},
		{"create_sampling_session", `{"session_id": "SESSION", "sampling_session_seq_id": 0, "base_model": "base",
			"type": "create_sampling_session"}`},
		{"forward", `{"forward_input": {"data": [` + oneDatum + `], "loss_fn": "cross_entropy"}, "model_id": "MODEL",
			"seq_id": 1, "type": "forward"}`},
		{"forward_backward", `{"forward_backward_input": {"data": [` + oneDatum + `], "loss_fn": "cross_entropy"},
			"model_id": "MODEL", "seq_id": 2, "type": "forward_backward"}`},
		{"optim_step", `{"adam_params": {"learning_rate": 0.0001, "beta1": 0.9, "beta2": 0.95, "eps": 1e-12,
			"weight_decay": 0.0, "grad_clip_norm": 0.0}, "model_id": "MODEL", "seq_id": 3, "type": "optim_step"}`},
		{"save_weights", `{"model_id": "MODEL", "path": "a", "seq_id": 4, "overwrite": false, "type": "save_weights"}`},
		{"save_weights_for_sampler", `{"model_id": "MODEL", "sampling_session_seq_id": 1, "seq_id": 5,
			"type": "save_weights_for_sampler"}`},
		{"load_weights", `{"model_id": "MODEL", "path": "tinker://a/weights/b", "optimizer": false, "seq_id": 6,
			"type": "load_weights"}`},
		{"asample", `{"num_samples": 1, "prompt": {"chunks": [{"tokens": [1], "type": "encoded_text"}]}, "sampling_params":
			{"max_tokens": 2, "stop": [1], "temperature": 1.0, "top_k": -1, "top_p": 1.0, "further": null},
			"base_model": "base", "topk_prompt_logprobs": 0, "later": {}, "more": 0, "type": "sample"}`},
		{"telemetry", `{"events": [], "platform": "x", "sdk_version": "y", "session_id": "z"}`},
		{"unload_model", `{"model_id": "MODEL", "type": "unload_model"}`},
	} {
		status, answer := send(t, s, c[0], strings.NewReplacer("SESSION", session, "MODEL", model).Replace(c[1]))
		if status == http.StatusOK && answer["status"] == "pending" {
			_, answer = send(t, s, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, answer["request_id"]))
		}
		if status != http.StatusOK || answer["error"] != nil {
			t.Errorf("%s: %d %v", c[0], status, answer)
		}
	}
}

// TestTokens: a server with tokens answers those who have one, as either header, and healthz to all.
func TestTokens(t *testing.T) {
	tokens, err := access.ParseTokens(strings.NewReader("0123456789abcdef " + access.Submit))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, Config{Tokens: tokens})
	for _, c := range []struct {
		path, header, value string
		status              int
	}{{"healthz", "", "", 200}, {"get_server_capabilities", "", "", 401},
		{"get_server_capabilities", "X-API-Key", "0123456789abcdef", 200},
		{"get_server_capabilities", "Authorization", "Bearer 0123456789abcdef", 200},
		{"get_server_capabilities", "X-API-Key", "0123456789abcdee", 401},
		{"healthz", "Origin", "http://evil.example", 403}} {
		r := httptest.NewRequest(http.MethodGet, Prefix+c.path, nil)
		r.Host = "localhost"
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s with %s %s: %d %s, want %d", c.path, c.header, c.value, w.Code, w.Body, c.status)
		}
	}
	r := httptest.NewRequest(http.MethodPost, Prefix+"create_session", strings.NewReader(strings.Repeat(" ", maxBody+1)))
	r.Host = "localhost"
	r.Header.Set("X-API-Key", "0123456789abcdef")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body gives %d %s", w.Code, w.Body)
	}
}

// TestRepetition: a request that is sent again under its number is done once; another one under it is refused.
func TestRepetition(t *testing.T) {
	s, e := serve(t, Config{wait: time.Millisecond})
	_, model := begin(t, s)
	_, first := send(t, s, "forward_backward", passBody(model, "cross_entropy", "", 1))
	_, again := send(t, s, "forward_backward", passBody(model, "cross_entropy", "", 1))
	if first["request_id"] == nil || first["request_id"] != again["request_id"] {
		t.Errorf("%v, then %v", first, again)
	}
	if status, answer := send(t, s, "optim_step", fmt.Sprintf(`{"model_id": %q, "seq_id": 1, "adam_params": {}}`,
		model)); status != http.StatusConflict {
		t.Errorf("another request under the number: %d %v", status, answer)
	}
	body := fmt.Sprintf(`{"request_id": %q, "allow_metadata_only": true}`, first["request_id"])
	if _, answer := send(t, s, "retrieve_future", body); answer["type"] != "try_again" {
		t.Errorf("before the result: %v", answer)
	}
	close(e.gate)
	s.config.wait = time.Minute
	_, answer := send(t, s, "retrieve_future", body)
	if answer["loss_fn_outputs"] == nil || e.passes != 1 {
		t.Errorf("%d passes, %v", e.passes, answer)
	}
}

// FuzzRequests answers every body with JSON, and with a code if it is refused.
func FuzzRequests(f *testing.F) {
	for _, path := range []string{"forward", "create_model", "asample", "optim_step", "save_weights", "load_weights",
		"weights_info", "retrieve_future", "create_sampling_session", "session_heartbeat", "unload_model", "get_info"} {
		f.Add(path, passBody("m", "ppo", `, "loss_fn_config": {"clip_low_threshold": 0.8}`, 1))
		f.Add(path, `{"base_model": "base", "prompt": {"chunks": [{"tokens": [1]}]}, "sampling_params": {"stop": ["a"]}}`)
		f.Add(path, `{"model_id": "m", "adam_params": {"eps": 1e-12}, "path": "tinker://a/weights/b", "tinker_path": "x"}`)
	}
	s, e := serve(f, Config{wait: time.Millisecond})
	close(e.gate)
	f.Fuzz(func(t *testing.T, path, body string) {
		name := strings.TrimPrefix(path, "/")
		if !slices.ContainsFunc(s.all, func(o operation) bool { return o.name == name && o.method == "POST" }) || body == "" {
			t.Skip()
		}
		status, answer := send(t, s, name, body)
		if status != http.StatusOK && (answer["code"] == nil || answer["code"] == "INTERNAL") {
			t.Errorf("%s %q: %d %v", name, body, status, answer)
		}
	})
}

// FuzzPath: a path that is read is written the same, and stays below its folder.
func FuzzPath(f *testing.F) {
	f.Add("tinker://model-1/weights/a.b")
	f.Add("tinker://../sampler_weights/..")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := ParsePath(text); ok && (p.String() != text || strings.Contains(text[len(scheme):], "..") &&
			(p.Model[0] == '.' || p.Name[0] == '.')) {
			t.Errorf("%q is %+v", text, p)
		}
	})
}
