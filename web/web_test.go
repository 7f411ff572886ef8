package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/openai"
)

// shelf is Runs in memory.
type shelf struct {
	mu   sync.Mutex
	runs map[string]*History
	err  error
}

func (s *shelf) List(context.Context) ([]api.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []api.Job
	for _, h := range s.runs {
		all = append(all, h.Job)
	}
	slices.SortFunc(all, func(a, b api.Job) int { return strings.Compare(a.ID, b.ID) })
	return all, s.err
}

func (s *shelf) History(_ context.Context, id string) (*History, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.runs[id]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
}

func (s *shelf) Log(_ context.Context, id string, from int64, limit int) (api.Log, error) {
	return api.Log{Lines: []string{"one", "two"}, From: 0, To: 8, Size: 8}, nil
}

func (s *shelf) Files(context.Context, string) ([]api.File, error) {
	return []api.File{{Name: "model.safetensors", Kind: "model", Bytes: 12}, {Name: "report.html", Kind: "record",
		Bytes: 3}}, nil
}

type content struct{ *strings.Reader }

func (content) Close() error { return nil }

func (s *shelf) Open(_ context.Context, id, name string) (io.ReadSeekCloser, api.File, error) {
	if (id != "first" || name != "adapter/config.json") && name != "job.yaml" {
		return nil, api.File{}, ErrNotFound
	}
	return content{strings.NewReader("0123456789")}, api.File{Name: name, Bytes: 10, Modified: time.Unix(1000, 5)}, nil
}

func (s *shelf) put(id string, change func(h *History)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := History{}
	if h := s.runs[id]; h != nil {
		next = *h
	}
	change(&next)
	next.Version++
	next.Job.ID = id
	s.runs[id] = &next
}

// drawer is Files with one file.
type drawer struct{}

var drawn = api.FileObject{ID: "file-1", Object: "file", Bytes: 10, CreatedAt: 1000, Filename: "a",
	Purpose: "fine-tune", Status: "processed"}

func (drawer) List() ([]api.FileObject, error) { return []api.FileObject{drawn}, nil }

func (drawer) Keep(string, io.Reader) (api.FileObject, error) { return drawn, nil }

func (drawer) Open(string) (io.ReadSeekCloser, api.FileObject, error) {
	return content{strings.NewReader("0123456789")}, drawn, nil
}

func (drawer) Remove(string) error { return nil }

// tailor is a Tuner that knows one run.
type tailor struct{}

func (*tailor) Job(r api.FineTuningRequest) (api.Spec, error) {
	if r.Model == "none" {
		return api.Spec{}, &Failure{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND", Detail: "none", Param: "model"}
	}
	return api.Spec{Config: "a: 1"}, nil
}

func (*tailor) Request(run string) (r api.FineTuningRequest, err error) {
	if run != "ftjob-1" {
		return r, ErrNotFound
	}
	return api.FineTuningRequest{Model: "base", TrainingFile: drawn.ID, Suffix: "mine", Seed: ptr(uint64(7)),
		Hyperparameters: api.Hyperparameters{Epochs: 3, Batch: 8, Rate: 1}}, nil
}

// parrot is a model that says the prompt again.
type parrot struct{}

func (parrot) Models() []openai.Info {
	return []openai.Info{{Name: "ft:base:mine:ftjob-1", Created: time.Unix(1000, 0)}}
}

func (parrot) Prompt(_ string, talk []openai.Message) (string, []string, error) {
	return talk[0].Content, nil, nil
}

func (parrot) Generate(_ context.Context, r openai.Request, emit func(openai.Piece) error) (openai.Result, error) {
	return openai.Result{Finish: "stop"}, emit(openai.Piece{Text: r.Prompt})
}

func ptr[T any](v T) *T { return &v }

// example is a run of some rounds of ten steps, with a receipt of every kind.
func example(rounds int) *History {
	h := &History{Version: 1, Job: api.Job{ID: "first", Name: "first", Kind: "run", State: "done", Step: 10 * rounds,
		Steps: 10 * rounds, Round: rounds, Rounds: rounds,
		EvalLoss: ptr(2.5), BudgetUzen: 100, PaidUzen: 60, FeeUzen: 3, RefundedUzen: 30, Started: time.Unix(1000, 0).UTC(),
		Spark: []float64{3, 2}, Facts: []api.Fact{{Name: "Model", Value: "gpt2"}}}}
	h.Metrics = append(h.Metrics, api.Metric{Kind: "round", EvalLoss: ptr(5.5), Workers: 4})
	for round := 1; round <= rounds; round++ {
		for i := range 10 {
			step := 10*(round-1) + i + 1
			h.Metrics = append(h.Metrics, api.Metric{Kind: "step", Round: uint32(round), Step: uint32(step),
				Loss: 2 + 3/math.Sqrt(float64(step)), LearningRate: 1e-3, Tokens: uint64(100 * step), Workers: 4,
				GradNorm: ptr(0.5)})
		}
		h.Metrics = append(h.Metrics, api.Metric{Kind: "round", Round: uint32(round), Step: uint32(10 * round),
			EvalLoss: ptr(2 + 1/float64(round)), Tokens: uint64(1000 * round),
			Seconds: 2, BytesUp: 7, BytesDown: 9, Workers: 4, PaidUzen: uint64(5 * round), TokensPerSecond: 500,
			GradNorm: ptr(0.5), Agreement: ptr(0.9)})
		h.Lineage = append(h.Lineage, api.Checkpoint{Round: round, StateRoot: fmt.Sprintf("%064x", round*7919),
			Checkpoint: "bafy", Updates: []string{"a"}, Signers: []api.Signer{{ID: "ann", PublicKey: []byte{1},
				Signature: []byte{2}}, {ID: "bob", PublicKey: []byte{3}, Signature: []byte{4}}}})
		h.Receipts = append(h.Receipts,
			api.Receipt{Seq: uint64(2 * round), Round: round, Who: "ann", Role: "worker", Kind: "work", Amount: 5,
				Reason: "verified", Why: "the work is verified", Arithmetic: []string{"5"}},
			api.Receipt{Seq: uint64(2*round + 1), Round: round, Who: "vic", Role: "verifier", Kind: "audit", Amount: 2,
				Reason: "verified", Why: "the work is verified", Arithmetic: []string{}})
	}
	h.Receipts = append(h.Receipts, api.Receipt{Seq: 999, Round: 1, Who: "bob", Role: "worker", Kind: "work",
		Reason: "wrong_work", Why: "a verdict found the work wrong", Fix: "check the memory", Arithmetic: []string{},
		Dispute: ptr(0)},
		api.Receipt{Seq: 1000, Round: 1, Who: "bob", Role: "worker", Kind: "slash", Amount: 50, Reason: "wrong_work",
			Arithmetic: []string{}}, api.Receipt{Seq: 1001, Who: "cas", Kind: "refund", Amount: 30, Arithmetic: []string{}})
	h.Disputes = []api.Dispute{{Worker: "bob", Challenger: "vic", Round: 1, Verdict: "worker_lied",
		Log: []api.Move{{Height: 3, By: "verifier", What: "challenges"}}}}
	h.Samples = []api.Sample{{Round: 1, Step: 10, Prompt: "func ", Text: "main"}}
	return h
}

func library() *shelf {
	return &shelf{runs: map[string]*History{"first": example(30), "second": {Job: api.Job{ID: "second", Kind: "run",
		State: "running", Facts: []api.Fact{}}}}}
}

func server(t *testing.T, c Config) *Server {
	t.Helper()
	if c.Runs == nil {
		c.Runs = library()
	}
	c.Poll, c.Heartbeat = time.Millisecond, 20*time.Millisecond
	s := New(c)
	t.Cleanup(s.Stop)
	return s
}

func get(t *testing.T, h http.Handler, path string, edit ...func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequest("GET", "http://127.0.0.1:7777"+path, nil)
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
}

// TestAnswersAreAsDescribed asks every operation of the API for an answer, and checks it against /openapi.json.
func TestAnswersAreAsDescribed(t *testing.T) {
	lib := library()
	lib.put("ftjob-1", func(h *History) { *h = *example(3) })
	s := server(t, Config{Runs: lib, Network: village{}, Launcher: &pad{}, Files: drawer{}, Tuner: &tailor{},
		Models: parrot{}})
	_, _, text := get(t, s, "/openapi.json")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	paths := map[string]string{"{id}": "first", "{address}": "starling1abc", "{hash}": strings.Repeat("ab", 32),
		"{file}": "file-1", "{model...}": "ft:base:mine:ftjob-1"}
	for _, r := range routes {
		if r.answer == nil || r.handle == nil {
			continue
		}
		path := r.path
		if strings.HasPrefix(path, "/v1/fine_tuning") {
			path = strings.ReplaceAll(path, "{id}", "ftjob-1")
		}
		for name, value := range paths {
			path = strings.ReplaceAll(path, name, value)
		}
		var body io.Reader
		kind := "application/json"
		switch {
		case r.upload:
			kind = "multipart/form-data; boundary=x"
			body = strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nfine-tune\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{}\r\n--x--\r\n")
		case r.method == "POST":
			text, err := json.Marshal(r.body)
			if err != nil {
				t.Fatal(err)
			}
			body = bytes.NewReader(text)
		}
		q := httptest.NewRequest(r.method, "http://localhost"+path, body)
		q.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		if w.Code >= 300 {
			t.Errorf("%s %s: %d %s", r.method, path, w.Code, w.Body)
			continue
		}
		name := fmt.Sprintf("%T", r.answer)
		name = name[strings.LastIndex(name, ".")+1:]
		schema, err := c.Compile("openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(w.Body)
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s %s: %v", r.method, path, err)
		}
		tried[name] = true
	}
	if len(tried) < 15 {
		t.Errorf("only %d kinds of answers were checked", len(tried))
	}
	var spec struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				Properties  map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	if d := spec.Components.Schemas["Receipt"]; !strings.Contains(d.Description, "why somebody was paid") ||
		!strings.Contains(d.Properties["amount"].Description, "uzen") {
		t.Errorf("the description of a receipt is %+v", d)
	}
}

func TestPagesFollowEachOther(t *testing.T) {
	s := server(t, Config{})
	seen, after := map[uint64]bool{}, ""
	for range 100 {
		code, _, text := get(t, s, "/v1/jobs/first/receipts?limit=7&after="+after)
		var l api.Receipts
		if err := json.Unmarshal([]byte(text), &l); err != nil || code != 200 || l.Total != 63 || len(l.Receipts) == 0 {
			t.Fatalf("%d %v %s", code, err, text)
		}
		for _, r := range l.Receipts {
			if seen[r.Seq] {
				t.Fatalf("receipt %d is on two pages", r.Seq)
			}
			seen[r.Seq] = true
		}
		if after = l.After; !l.HasMore {
			break
		}
	}
	if len(seen) != 63 {
		t.Errorf("%d receipts of 63", len(seen))
	}
	if _, _, text := get(t, s, "/v1/jobs/first/receipts?who=bo&zero=true"); !strings.Contains(text, `"total":1,`) ||
		!strings.Contains(text, "wrong_work") {
		t.Error(text)
	}
	if _, _, text := get(t, s, "/v1/jobs/first/lineage?order=desc&limit=1"); !strings.Contains(text, `"round":30`) {
		t.Error(text)
	}
	if _, _, text := get(t, s, "/v1/jobs?state=running"); strings.Contains(text, "first") || !strings.Contains(text,
		"second") {
		t.Error(text)
	}
}

func TestSeriesLookLikeTheRun(t *testing.T) {
	h := example(10_000) // 100,000 steps
	m := series(h, nil, 1000, 0, math.Inf(1))
	names := map[string]api.Series{}
	for _, x := range m.Series {
		if len(x.Step) != len(x.Value) || len(x.Step) > 1000 || !slices.IsSorted(x.Step) {
			t.Errorf("%s: %d steps, %d values", x.Name, len(x.Step), len(x.Value))
		}
		names[x.Name] = x
	}
	loss := names["loss"]
	if loss.Count != 100_000 || loss.Step[0] != 1 || loss.Step[len(loss.Step)-1] != 100_000 || loss.Value[0] != 5 {
		t.Errorf("%+v", loss)
	}
	if e := names["eval_loss"]; e.Count != 10_001 || e.Value[0] != 5.5 {
		t.Errorf("%d", e.Count)
	}
	if g, a := names["grad_norm"], names["agreement"]; g.Count != 100_000 || g.Of != "step" || a.Count != 10_000 ||
		a.Value[0] != 0.9 {
		t.Errorf("%d gradient norms of every %s, %d agreements", g.Count, g.Of, a.Count)
	}
	if r := names["rejected"]; r.Value[0] != 1 {
		t.Errorf("%v", r.Value[:3])
	}
	if n := len(m.Axis.Step); n < 900 || n > 1001 || m.Axis.Seconds[n-1] != 20_000 || m.Axis.Tokens[n-1] != 10_000_000 {
		t.Errorf("axis of %d, %v seconds", n, m.Axis.Seconds[n-1])
	}
	part := series(h, []string{"loss"}, 1000, 500, 520)
	if len(part.Series) != 1 || part.Series[0].Count != 21 {
		t.Errorf("%+v", part)
	}
}

// A spike is what a person looks for: thinning keeps it, and never leaves the range of the values.
func TestThinKeepsSpikes(t *testing.T) {
	for _, n := range []int{3, 10, 48, 1000} {
		var x, y []float64
		for i := range 54_321 {
			x, y = append(x, float64(i)), append(y, math.Sin(float64(i)/900))
		}
		y[40_000] = 50
		tx, ty := thin(x, y, n)
		if len(tx) != n || tx[0] != 0 || tx[n-1] != 54_320 || !slices.IsSorted(tx) {
			t.Fatalf("%d points of %d, from %v to %v", len(tx), n, tx[0], tx[len(tx)-1])
		}
		if n > 3 && !slices.Contains(ty, 50) {
			t.Errorf("%d points lose the spike", n)
		}
	}
	if tx, _ := thin([]float64{1, 2}, []float64{1, 2}, 1000); len(tx) != 2 {
		t.Error("two points were thinned")
	}
}

func TestFilesInParts(t *testing.T) {
	const path = "/v1/jobs/first/files/adapter/config.json"
	s := server(t, Config{})
	code, h, body := get(t, s, path)
	tag := h.Get("ETag")
	if code != 200 || body != "0123456789" || tag == "" || h.Get("Content-Type") != "application/json" ||
		h.Get("Content-Disposition") != `attachment; filename="config.json"` {
		t.Errorf("%d %s %v", code, body, h)
	}
	for name, c := range map[string]struct {
		edit []func(*http.Request)
		code int
		body string
	}{
		"a part":             {[]func(*http.Request){header("Range", "bytes=2-4")}, 206, "234"},
		"the end":            {[]func(*http.Request){header("Range", "bytes=-3")}, 206, "789"},
		"behind the end":     {[]func(*http.Request){header("Range", "bytes=10-")}, 416, ""},
		"a part of the same": {[]func(*http.Request){header("Range", "bytes=8-"), header("If-Range", tag)}, 206, "89"},
		"a part of another": {[]func(*http.Request){header("Range", "bytes=8-"), header("If-Range", `"other"`)}, 200,
			"0123456789"},
		"what one has": {[]func(*http.Request){header("If-None-Match", tag)}, 304, ""},
		"the head":     {[]func(*http.Request){func(r *http.Request) { r.Method = "HEAD" }}, 200, ""},
	} {
		if code, _, body := get(t, s, path, c.edit...); code != c.code || code < 400 && body != c.body {
			t.Errorf("%s: %d %q", name, code, body)
		}
	}
	if _, _, list := get(t, s, "/v1/jobs/first/files"); !strings.Contains(list, `"kind":"record"`) {
		t.Error(list)
	}
	if _, _, models := get(t, s, "/v1/trained-models"); !strings.Contains(models, `"id":"first"`) ||
		strings.Contains(models, "report.html") {
		t.Error(models)
	}
}

func TestETag(t *testing.T) {
	s := server(t, Config{})
	_, h, _ := get(t, s, "/v1/jobs/first")
	code, _, body := get(t, s, "/v1/jobs/first", header("If-None-Match", `"x", W/`+h.Get("ETag")))
	if code != http.StatusNotModified || body != "" {
		t.Errorf("%d %q", code, body)
	}
}

// TestStrangers sends what must be refused, and looks at how.
func TestStrangers(t *testing.T) {
	tokens, err := parseTokens(strings.NewReader("# ours\n0123456789abcdef read\nfedcba9876543210 read,submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	open, closed := server(t, Config{Launcher: &pad{}}), server(t, Config{Tokens: tokens, Launcher: &pad{},
		Hosts: []string{"train.example"}})
	bearer := func(token string) func(*http.Request) { return header("Authorization", "Bearer "+token) }
	post := func(body, kind string) func(*http.Request) {
		return func(r *http.Request) {
			r.Method, r.Body = "POST", io.NopCloser(strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
		}
	}
	const json = "application/json"
	for name, c := range map[string]struct {
		s    *Server
		path string
		edit []func(*http.Request)
		code int
		say  string
	}{
		"a name made to point here": {open, "/v1/jobs", []func(*http.Request){header("Host", "evil.example:7777")}, 421,
			"HOST_UNKNOWN"},
		"a name of ours": {closed, "/v1/version", []func(*http.Request){header("Host", "train.example")}, 200,
			"v1"},
		"localhost":               {open, "/v1/jobs", []func(*http.Request){header("Host", "localhost:1")}, 200, "first"},
		"an address":              {open, "/v1/jobs", []func(*http.Request){header("Host", "[::1]:1")}, 200, "first"},
		"another origin":          {open, "/v1/jobs", []func(*http.Request){header("Origin", "http://evil.example")}, 403, "CROSS_SITE"},
		"no origin that it tells": {open, "/v1/jobs", []func(*http.Request){header("Origin", "null")}, 403, "CROSS_SITE"},
		"our origin":              {open, "/v1/jobs", []func(*http.Request){header("Origin", "http://127.0.0.1:7777")}, 200, "first"},
		"another port of this host": {open, "/v1/jobs", []func(*http.Request){header("Sec-Fetch-Site", "same-site"),
			header("Sec-Fetch-Mode", "cors")}, 403, "CROSS_SITE"},
		"a link to us": {open, "/jobs/first", []func(*http.Request){header("Sec-Fetch-Site", "cross-site"),
			header("Sec-Fetch-Mode", "navigate")}, 200, "<!doctype"},
		"an address of OpenAI's": {open, "/v1/embeddings", []func(*http.Request){post(`{}`, json)}, 404,
			`"code":"unknown_url"`},
		"one that is only read": {open, "/v1/jobs/first", []func(*http.Request){post(`{}`, json)}, 405,
			"METHOD_NOT_ALLOWED"},
		"a form of another site": {open, "/v1/jobs", []func(*http.Request){post("config=1", "text/plain")}, 415,
			"BODY_NOT_JSON"},
		"no token": {closed, "/v1/jobs", nil, 401, "TOKEN_NEEDED"},
		"a wrong token": {closed, "/v1/jobs", []func(*http.Request){bearer("0123456789abcdeF")}, 401,
			"TOKEN_UNKNOWN"},
		"a token": {closed, "/v1/jobs", []func(*http.Request){bearer("0123456789abcdef")}, 200, "first"},
		"a token that only reads": {closed, "/v1/jobs", []func(*http.Request){post(`{}`, json), bearer("0123456789abcdef")},
			403, "SCOPE_MISSING"},
		"a token that submits": {closed, "/v1/jobs", []func(*http.Request){post(`{"config":""}`, json),
			bearer("fedcba9876543210")}, 202, "first"},
		"the page without a token": {closed, "/", nil, 200, "<!doctype"},
		"streams without a token":  {closed, "/v1/events", nil, 401, "TOKEN_NEEDED"},
		"unknown run":              {open, "/v1/jobs/third", nil, 404, "NOT_FOUND"},
		"traversal":                {open, "/v1/jobs/..%2F..%2Fetc", nil, 404, "NOT_FOUND"},
		"traversal in files":       {open, "/v1/jobs/first/files/..%2F..%2Fetc%2Fpasswd", nil, 404, "NOT_FOUND"},
		"files without a token":    {closed, "/v1/jobs/first/files/model.safetensors", nil, 401, "TOKEN_NEEDED"},
		"traversal in pages":       {open, "/static/..%2f..%2fgo.mod", nil, 404, "NOT_FOUND"},
		"no such page":             {open, "/app.exe", nil, 404, "NOT_FOUND"},
		"unknown operation":        {open, "/v1/rockets", nil, 404, "NOT_FOUND"},
		"wrong method":             {open, "/v1/jobs/first", []func(*http.Request){post(`{}`, json)}, 405, ""},
		"a page too long":          {open, "/v1/jobs?limit=100000", nil, 400, "PARAMETER_INVALID"},
		"no cursor":                {open, "/v1/jobs?after=%00", nil, 400, "PARAMETER_INVALID"},
		"a negative cursor":        {open, "/v1/jobs?after=LTE", nil, 400, "PARAMETER_INVALID"},
		"no number":                {open, "/v1/jobs/first/metrics?from=NaN", nil, 400, "PARAMETER_INVALID"},
		"too many points":          {open, "/v1/jobs/first/metrics?points=99999999", nil, 400, "PARAMETER_INVALID"},
		"broken JSON":              {open, "/v1/jobs", []func(*http.Request){post(`{"config"`, json)}, 400, "BODY_INVALID"},
		"two values":               {open, "/v1/jobs", []func(*http.Request){post(`{} {}`, json)}, 400, "BODY_INVALID"},
		"an unknown key":           {open, "/v1/plans", []func(*http.Request){post(`{"confg": ""}`, json)}, 400, "confg"},
		"a huge body": {open, "/v1/jobs", []func(*http.Request){post(`{"config":"`+strings.Repeat("a",
			maxBody)+`"}`, json)}, 413, "BODY_TOO_LARGE"},
		"a long key": {open, "/v1/jobs", []func(*http.Request){post(`{}`, json), header("Idempotency-Key",
			strings.Repeat("k", 300))}, 400, "KEY_TOO_LONG"},
		"a hash that is none": {server(t, Config{Network: village{}}), "/v1/txs/zz", nil, 400, "HASH_INVALID"},
		"no network":          {open, "/v1/network", nil, 404, "NO_NETWORK"},
		"an address that is none": {server(t, Config{Network: village{}}), "/v1/accounts/A%2F", nil, 400,
			"ADDRESS_INVALID"},
		"nothing starts jobs": {server(t, Config{}), "/v1/jobs", []func(*http.Request){post(`{}`, json)}, 501,
			"SUBMISSION_OFF"},
	} {
		code, h, body := get(t, c.s, c.path, c.edit...)
		if code != c.code || !strings.Contains(body, c.say) {
			t.Errorf("%s: %d, want %d; %s", name, code, c.code, body)
		}
		if code >= 400 && code != 405 && !strings.Contains(body, "unknown_url") && !strings.HasPrefix(h.Get("Content-Type"),
			"application/problem+json") {
			t.Errorf("%s: the error is %s", name, h.Get("Content-Type"))
		}
		if h.Get("X-Request-Id") == "" || h.Get("Access-Control-Allow-Origin") != "" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: headers %v", name, h)
		}
	}
}

// What goes wrong inside is told to the log, not to who asks.
func TestNothingLeaks(t *testing.T) {
	lib := library()
	lib.err = errors.New("open /home/secret/run.json: permission denied")
	s := server(t, Config{Runs: lib, Launcher: &pad{}})
	code, h, body := get(t, s, "/v1/jobs")
	if code != 500 || strings.Contains(body, "secret") || !strings.Contains(body, h.Get("X-Request-Id")) {
		t.Errorf("%d %s", code, body)
	}
	r := httptest.NewRequest("POST", "http://localhost/v1/plans", strings.NewReader(`{"config":"panic"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "pad broke") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestTokens(t *testing.T) {
	for name, text := range map[string]string{"empty": "# none\n", "short": "abc read", "scope": "0123456789abcdef write",
		"no scope": "0123456789abcdef", "huge": strings.Repeat("#\n", 40_000)} {
		if _, err := parseTokens(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSlowHeadersEnd(t *testing.T) {
	if headerPatience > 10*time.Second || writePatience > time.Minute || maxHeader > 64<<10 {
		t.Error("the limits are no limits")
	}
	address, _ := listener(t, server(t, Config{}))
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("a", 64<<10))
	text, err := io.ReadAll(c)
	if !strings.Contains(string(text), "431") {
		t.Errorf("%v %.60s", err, text)
	}
}

func TestHealth(t *testing.T) {
	if code, _, body := get(t, server(t, Config{Network: village{}}), "/v1/health"); code != 200 || !strings.Contains(body,
		`"degraded"`) || !strings.Contains(body, "older than a minute") {
		t.Errorf("%d %s", code, body)
	}
	_, _, body := get(t, server(t, Config{}), "/metrics")
	for _, want := range []string{`starling_web_jobs{state="done"} 1`, "starling_web_streams 0",
		`starling_web_requests_total{status="2xx"} 0`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}
