package openai

import (
	"bufio"
	"context"
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
)

// echo is a model that says the prompt again, a word at a time.
type echo struct {
	fail func(r Request) error
}

func (echo) Models() []Info {
	return []Info{{Name: "echo", Created: time.Unix(1000, 0), State: "fp_1"},
		{Name: "other/one", Created: time.Unix(2000, 0)}}
}

func (echo) Prompt(_ string, conversation []Message) (string, []string, error) {
	var b strings.Builder
	for _, m := range conversation {
		fmt.Fprintf(&b, "%s=%s ", m.Role, m.Content)
	}
	return b.String(), []string{"\nUser:"}, nil
}

func (e echo) Generate(ctx context.Context, r Request, emit func(Piece) error) (Result, error) {
	if e.fail != nil {
		if err := e.fail(r); err != nil {
			return Result{}, err
		}
	}
	words := strings.SplitAfter(fmt.Sprintf("%s|%v|t=%v p=%v seed=%d max=%d stops=%q", r.Prompt, r.Tokens, r.Temperature,
		r.TopP, r.Seed, r.Max, r.Stops), " ")
	for _, word := range words {
		p := Piece{Text: word}
		if r.Likely >= 0 {
			p.Tokens = []Token{{Text: word, Log: -0.5, Likely: []Token{{Text: "x", Log: -0.25}}[:min(r.Likely, 1)]}}
		}
		if err := emit(p); err != nil {
			return Result{}, err
		}
	}
	return Result{PromptTokens: len(r.Prompt), Tokens: len(words), Finish: "stop"}, ctx.Err()
}

func post(t *testing.T, h http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "http://127.0.0.1:1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	return w
}

// result is what the tests read of an answer.
type result struct {
	ID, Object, Model string
	Fingerprint       string `json:"system_fingerprint"`
	Choices           []struct {
		Index    int
		Text     string
		Message  struct{ Role, Content string }
		Delta    struct{ Role, Content string }
		LogProbs json.RawMessage
		Finish   string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

func parse(t *testing.T, text []byte) (r result) {
	t.Helper()
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

func TestCompletions(t *testing.T) {
	s := New(echo{}, Config{})
	r := parse(t, post(t, s, "/v1/completions",
		`{"model":"echo","prompt":["a","b"],"n":2,"seed":5,"temperature":0,"stop":"!","max_tokens":9}`).Body.Bytes())
	if r.Object != "text_completion" || r.Model != "echo" || r.Fingerprint != "fp_1" || len(r.Choices) != 4 ||
		r.Usage.Total != r.Usage.Prompt+r.Usage.Completion {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"a|[]|t=0 p=1 seed=5", "a|[]|t=0 p=1 seed=6", "b|[]|t=0 p=1 seed=7",
		"b|[]|t=0 p=1 seed=8"} {
		if c := r.Choices[i]; c.Index != i || c.Text != want+` max=9 stops=["!"]` || c.Finish != "stop" {
			t.Errorf("choice %d: %+v", i, c)
		}
	}
	r = parse(t, post(t, s, "/v1/completions", `{"model":"echo","prompt":[1,2],"logprobs":1,"seed":1}`).Body.Bytes())
	if c := r.Choices[0]; !strings.HasPrefix(c.Text, "|[1 2]|t=1") ||
		!strings.Contains(string(c.LogProbs), `"token_logprobs":[-0.5`) {
		t.Errorf("%+v", c)
	}
	one := parse(t, post(t, s, "/v1/completions", `{"model":"echo"}`).Body.Bytes()).Choices[0].Text
	if two := parse(t, post(t, s, "/v1/completions", `{"model":"echo"}`).Body.Bytes()).Choices[0].Text; one == two {
		t.Error("two requests without a seed have the same")
	}
}

func TestChat(t *testing.T) {
	s := New(echo{}, Config{})
	body := `{"model":"echo","messages":[{"role":"developer","content":"d"},` +
		`{"role":"user","content":[{"type":"text","text":"hi"}]}],"seed":1,` +
		`"logprobs":true,"top_logprobs":1,"max_completion_tokens":3,"stop":["a","b"]%s}`
	r := parse(t, post(t, s, "/v1/chat/completions", fmt.Sprintf(body, "")).Body.Bytes())
	c := r.Choices[0]
	if want := `system=d user=hi |[]|t=1 p=1 seed=1 max=3 stops=["a" "b" "\nUser:"]`; r.Object != "chat.completion" ||
		c.Message.Content != want || c.Message.Role != "assistant" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(string(c.LogProbs), `"top_logprobs":[{"token":"x"`) {
		t.Errorf("%s", c.LogProbs)
	}
	w := post(t, s, "/v1/chat/completions", fmt.Sprintf(body, `,"stream":true,"stream_options":{"include_usage":true}`))
	var text string
	var finish []string
	events := eventsOf(t, w.Body.String())
	for i, e := range events[:len(events)-1] {
		part := parse(t, []byte(e))
		switch {
		case part.Object != "chat.completion.chunk" || part.ID == "":
			t.Errorf("%+v", part)
		case i == len(events)-2:
			if len(part.Choices) != 0 || part.Usage == nil || part.Usage.Completion == 0 {
				t.Errorf("the last but one is %+v", part)
			}
		default:
			if (i == 0) != (part.Choices[0].Delta.Role == "assistant") {
				t.Errorf("piece %d: %+v", i, part)
			}
			text += part.Choices[0].Delta.Content
			finish = append(finish, part.Choices[0].Finish)
		}
	}
	if text != c.Message.Content || finish[len(finish)-1] != "stop" || events[len(events)-1] != "[DONE]" ||
		w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%q by %q, then %q", text, finish, events[len(events)-1])
	}
}

func eventsOf(t *testing.T, body string) (events []string) {
	t.Helper()
	for _, e := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(e, "data: ")
		if !ok {
			t.Fatalf("%q is no event", e)
		}
		events = append(events, data)
	}
	return events
}

func TestModels(t *testing.T) {
	s := New(echo{}, Config{})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := get("/v1/models"); code != 200 || !strings.Contains(body, `"object":"list"`) ||
		!strings.Contains(body, `{"id":"other/one","object":"model","created":2000,"owned_by":"starling"}`) {
		t.Error(code, body)
	}
	if code, body := get("/v1/models/other/one"); code != 200 || !strings.Contains(body, "other/one") {
		t.Error(code, body)
	}
	if code, body := get("/v1/models/none"); code != 404 || !strings.Contains(body, "model_not_found") {
		t.Error(code, body)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		path, body string
		fail       error
		status     int
		code       string
	}{
		{"/v1/completions", `{`, nil, 400, "invalid_json"},
		{"/v1/completions", `{"prompt":{}}`, nil, 400, "invalid_type"},
		{"/v1/completions", `{"temperature":"hot"}`, nil, 400, "invalid_type"},
		{"/v1/completions", `{"stop":1}`, nil, 400, "invalid_type"},
		{"/v1/completions", `{"prompt":"a"}`, nil, 400, "missing_required_parameter"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, nil, 400, "missing_required_parameter"},
		{"/v1/completions", `{"temperature":3}`, nil, 400, "invalid_value"},
		{"/v1/completions", `{"top_p":-1}`, nil, 400, "invalid_value"},
		{"/v1/completions", `{"n":9}`, nil, 400, "invalid_value"},
		{"/v1/completions", `{"n":0}`, nil, 400, "invalid_value"},
		{"/v1/completions", `{"max_tokens":0}`, nil, 400, "invalid_value"},
		{"/v1/completions", `{"stop":["a","b","c","d","e"]}`, nil, 400, "invalid_value"},
		{"/v1/completions", `{"echo":true}`, nil, 400, "unsupported_parameter"},
		{"/v1/completions", `{"presence_penalty":1}`, nil, 400, "unsupported_parameter"},
		{"/v1/completions", `{"logit_bias":{"1":2}}`, nil, 400, "unsupported_parameter"},
		{"/v1/completions", `{"model":"none"}`, nil, 404, "model_not_found"},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("a", maxBody) + `"}`, nil, 413, "request_too_large"},
		{"/v1/completions", `{"model":"echo"}`, ErrBusy, 429, "queue_full"},
		{"/v1/completions", `{"model":"echo","stream":true}`, ErrBusy, 429, "queue_full"},
		{"/v1/completions", `{"model":"echo"}`, ErrTooLong, 400, "context_length_exceeded"},
		{"/v1/completions", `{"model":"echo"}`, errors.New("secret of the machine"), 500, "internal_error"},
		{"/v1/chat/completions", `{}`, nil, 400, "invalid_value"},
		{"/v1/chat/completions", `{"messages":[{"role":"tool","content":""}]}`, nil, 400, "invalid_value"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, nil, 400,
			"unsupported_content"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":""}],"tools":[{}]}`, nil, 400,
			"unsupported_parameter"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":""}],"response_format":{"type":"json_object"}}`, nil,
			400, "unsupported_parameter"},
		{"/v1/embeddings", `{}`, nil, 404, "unknown_url"},
	} {
		w := post(t, New(echo{fail: func(Request) error { return c.fail }}, Config{}), c.path, c.body)
		r := parse(t, w.Body.Bytes())
		if w.Code != c.status || r.Error == nil || r.Error.Code != c.code || r.Error.Message == "" || r.Error.Type == "" {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "secret") || (w.Code == 429) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: %v", w.Body, w.Header())
		}
	}
}

// TestErrorInAStream comes as an event, without [DONE].
func TestErrorInAStream(t *testing.T) {
	s := New(breaks{}, Config{})
	events := eventsOf(t, post(t, s, "/v1/completions", `{"model":"echo","stream":true}`).Body.String())
	if len(events) != 2 || parse(t, []byte(events[1])).Error == nil {
		t.Errorf("%q", events)
	}
}

type breaks struct{ echo }

func (breaks) Generate(_ context.Context, _ Request, emit func(Piece) error) (Result, error) {
	return Result{}, errors.Join(emit(Piece{Text: "a"}), errors.New("broken"))
}

func TestRest(t *testing.T) {
	rest := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "rest ", r.URL.Path) })
	for _, c := range []struct {
		host, path string
		want       int
	}{{"localhost", "/a/b", 200}, {"localhost", "/v1/files", 404}, {"evil.example", "/a", 421}} {
		w := httptest.NewRecorder()
		New(echo{}, Config{Rest: rest}).ServeHTTP(w, httptest.NewRequest("GET", "http://"+c.host+c.path, nil))
		if w.Code != c.want || w.Code == 200 && w.Body.String() != "rest /a/b" {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

func TestGuard(t *testing.T) {
	ask := func(c Config, change func(r *http.Request)) int {
		r := httptest.NewRequest("GET", "http://127.0.0.1:9/v1/models", nil)
		change(r)
		w := httptest.NewRecorder()
		New(echo{}, c).ServeHTTP(w, r)
		return w.Code
	}
	token := Config{Token: "sesame"}
	for name, c := range map[string]struct {
		config Config
		change func(r *http.Request)
		want   int
	}{
		"address":     {Config{}, func(*http.Request) {}, 200},
		"six":         {Config{}, func(r *http.Request) { r.Host = "[::1]:80" }, 200},
		"localhost":   {Config{}, func(r *http.Request) { r.Host = "LocalHost:80" }, 200},
		"rebound":     {Config{}, func(r *http.Request) { r.Host = "evil.example" }, 421},
		"named":       {Config{Hosts: []string{"good.example"}}, func(r *http.Request) { r.Host = "good.example" }, 200},
		"same site":   {Config{}, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:9") }, 200},
		"cross site":  {Config{}, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"null":        {Config{}, func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"no token":    {token, func(*http.Request) {}, 401},
		"wrong token": {token, func(r *http.Request) { r.Header.Set("Authorization", "Bearer sesam") }, 401},
		"token": {token, func(r *http.Request) {
			r.Header.Set("Authorization",
				"Bearer sesame")
			r.Host = "any.example"
		}, 200},
	} {
		if got := ask(c.config, c.change); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// endless generates text until no client reads it.
type endless struct {
	echo
	over chan error
}

func (e endless) Generate(_ context.Context, _ Request, emit func(Piece) error) (Result, error) {
	for {
		if err := emit(Piece{Text: strings.Repeat("a", 1<<16)}); err != nil {
			e.over <- err
			return Result{}, err
		}
	}
}

// TestSlowClients asks for a stream and reads none of it, and vanishes from another.
func TestSlowClients(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := endless{over: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, New(e, Config{Timeout: 50 * time.Millisecond})) }()
	for name, read := range map[string]func(c net.Conn){
		"reads nothing": func(net.Conn) {},
		"vanishes": func(c net.Conn) {
			_, _ = bufio.NewReader(c).ReadString('\n')
			_ = c.Close()
		},
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		body := `{"model":"echo","stream":true}`
		fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		read(c)
		if err := <-e.over; err == nil {
			t.Errorf("%s: the text came to its end", name)
		}
		_ = c.Close()
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// FuzzRequests must answer every body with JSON or events, and with OpenAI's shape if it is refused.
func FuzzRequests(f *testing.F) {
	f.Add("/v1/completions", `{"model":"echo","prompt":["a"],"n":2,"stream":true}`)
	f.Add("/v1/completions", `{"model":"echo","prompt":[[1,2],[3]],"logprobs":2}`)
	f.Add("/v1/chat/completions",
		`{"model":"echo","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"stop":"b"}`)
	s := New(echo{}, Config{})
	f.Fuzz(func(t *testing.T, path, body string) {
		if path != "/v1/completions" {
			path = "/v1/chat/completions"
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body)))
		text, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if w.Header().Get("Content-Type") == "text/event-stream" {
			return
		}
		if r := parse(t, text); (w.Code == 200) != (r.Error == nil) || w.Code >= 500 {
			t.Errorf("%d %s", w.Code, text)
		}
	})
}
