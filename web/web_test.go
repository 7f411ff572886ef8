package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/sourcetest"
)

func server(t *testing.T, c Config) *Server {
	t.Helper()
	if c.Runs == nil {
		c.Runs = sourcetest.New()
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
	lib := sourcetest.New()
	lib.Put("ftjob-1", func(h *source.History) { *h = *sourcetest.Run(3) })
	s := server(t, Config{Runs: lib, Network: sourcetest.Network{}, Launcher: &sourcetest.Launcher{},
		Files: sourcetest.Files{}, Tuner: &sourcetest.Tuner{},
		Models: sourcetest.Model{}})
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
	for _, r := range s.routes {
		if r.Answer == nil || r.Handle == nil {
			continue
		}
		path := r.Path
		if strings.HasPrefix(path, "/v1/fine_tuning") {
			path = strings.ReplaceAll(path, "{id}", "ftjob-1")
		}
		for name, value := range paths {
			path = strings.ReplaceAll(path, name, value)
		}
		var body io.Reader
		kind := "application/json"
		switch {
		case r.Upload > 0:
			kind = "multipart/form-data; boundary=x"
			body = strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nfine-tune\r\n" +
				"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{}\r\n--x--\r\n")
		case r.Method == "POST":
			text, err := json.Marshal(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = bytes.NewReader(text)
		}
		q := httptest.NewRequest(r.Method, "http://localhost"+path, body)
		q.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		if w.Code >= 300 {
			t.Errorf("%s %s: %d %s", r.Method, path, w.Code, w.Body)
			continue
		}
		name := fmt.Sprintf("%T", r.Answer)
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
			t.Errorf("%s %s: %v", r.Method, path, err)
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
	if d := spec.Components.Schemas["Receipt"]; !strings.Contains(d.Description, "why an account was paid") ||
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
	tokens, err := access.ParseTokens(strings.NewReader("# ours\n0123456789abcdef read\nfedcba9876543210 read,submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	open, closed := server(t, Config{Launcher: &sourcetest.Launcher{}}), server(t, Config{Tokens: tokens,
		Launcher: &sourcetest.Launcher{}, Hosts: []string{"train.example"}})
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
		"localhost":  {open, "/v1/jobs", []func(*http.Request){header("Host", "localhost:1")}, 200, "first"},
		"an address": {open, "/v1/jobs", []func(*http.Request){header("Host", "[::1]:1")}, 200, "first"},
		"another origin": {open, "/v1/jobs", []func(*http.Request){header("Origin", "http://evil.example")}, 403,
			"CROSS_SITE"},
		"no origin that it tells": {open, "/v1/jobs", []func(*http.Request){header("Origin", "null")}, 403, "CROSS_SITE"},
		"our origin": {open, "/v1/jobs", []func(*http.Request){header("Origin", "http://127.0.0.1:7777")}, 200,
			"first"},
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
			route.MaxBody)+`"}`, json)}, 413, "BODY_TOO_LARGE"},
		"a long key": {open, "/v1/jobs", []func(*http.Request){post(`{}`, json), header("Idempotency-Key",
			strings.Repeat("k", 300))}, 400, "KEY_TOO_LONG"},
		"a hash that is none": {server(t, Config{Network: sourcetest.Network{}}), "/v1/txs/zz", nil, 400, "HASH_INVALID"},
		"no network":          {open, "/v1/network", nil, 404, "NO_NETWORK"},
		"an address that is none": {server(t, Config{Network: sourcetest.Network{}}), "/v1/accounts/A%2F", nil, 400,
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

// Internal errors go to the log, and not to the client.
func TestNothingLeaks(t *testing.T) {
	lib := sourcetest.New()
	lib.Fail(errors.New("open /home/secret/run.json: permission denied"))
	s := server(t, Config{Runs: lib, Launcher: &sourcetest.Launcher{}})
	code, h, body := get(t, s, "/v1/jobs")
	if code != 500 || strings.Contains(body, "secret") || !strings.Contains(body, h.Get("X-Request-Id")) {
		t.Errorf("%d %s", code, body)
	}
	r := httptest.NewRequest("POST", "http://localhost/v1/plans", strings.NewReader(`{"config":"panic"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "launcher broke") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSlowHeadersEnd(t *testing.T) {
	t.Parallel()
	if headerTimeout > 10*time.Second || writeTimeout > time.Minute || maxHeader > 64<<10 {
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

// Blocks with transactions are asked for by themselves: a page of them may be empty, and not the last.
func TestBusyBlocks(t *testing.T) {
	s := server(t, Config{Network: sourcetest.Network{}})
	if code, _, text := get(t, s, "/v1/blocks?busy=true"); code != 200 ||
		text != `{"blocks":[],"has_more":true,"after":"NQ"}`+"\n" {
		t.Errorf("%d %s", code, text)
	}
}
