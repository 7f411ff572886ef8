package rayjobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/starling-network/starling/web/access"
)

// The tests run this program as the worker of a job: it prints its arguments, and drains until it is asked to
// end, or ends by itself.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "worker" {
		os.Exit(m.Run())
	}
	fmt.Println("args", os.Args[3:])
	switch os.Args[3] {
	case "--fails":
		fmt.Fprintln(os.Stderr, "no such network: é")
		os.Exit(3)
	case "--ends":
		os.Exit(0)
	}
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Println("ready")
	<-stop
	fmt.Println("drains")
	if os.Args[3] == "--owes" {
		<-stop
	}
	os.Exit(1)
}

// host is a server of the API over a folder.
func host(t *testing.T, dir string, c Config) (*Host, *httptest.Server) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(self, dir, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(Handler(h, c))
	t.Cleanup(func() {
		s.Close()
		hurry := make(chan os.Signal, 1)
		hurry <- syscall.SIGTERM
		h.Close(hurry)
	})
	return h, s
}

// call sends a request and returns the status, and the answer in v or as text.
func call(t *testing.T, method, url, body string, v any) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode == http.StatusOK && v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
	return r.StatusCode, string(b)
}

// tail reads the log of a job until the server closes the stream.
func tail(t *testing.T, url, until string) string {
	t.Helper()
	conn, r, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(url, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = r.Body.Close()
	var all bytes.Buffer
	for {
		kind, b, err := conn.ReadMessage()
		if err != nil {
			if until != "" || !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Errorf("%v after %q", err, all.String())
			}
			return all.String()
		}
		if kind != websocket.TextMessage {
			t.Errorf("a message of type %d", kind)
		}
		if all.Write(b); until != "" && strings.Contains(all.String(), until) {
			return all.String()
		}
	}
}

type submitted struct {
	Job string `json:"job_id"`
	ID  string `json:"submission_id"`
}

// A client of Ray Jobs starts a worker, watches its log, stops it and deletes it, as the description of the API says.
func TestJob(t *testing.T) {
	dir := t.TempDir()
	_, s := host(t, dir, Config{Version: "v1"})
	var v map[string]string
	if code, text := call(t, "GET", s.URL+"/api/version", "", &v); code != 200 || v["version"] == "" ||
		v["ray_version"] == "" || v["ray_commit"] == "" {
		t.Errorf("version: %d %s", code, text)
	}
	var id submitted
	code, text := call(t, "POST", s.URL+"/api/jobs/", `{"entrypoint": "starling worker up --owes --home 'my gpu'",
		"runtime_env": {"_ray_commit": "x"}, "metadata": {"name": "gpu"}, "entrypoint_num_cpus": 1.5,
		"entrypoint_num_gpus": 1, "entrypoint_memory": 1048577}`, &id)
	if code != 200 || !strings.HasPrefix(id.ID, "raysubmit_") || id.Job != id.ID {
		t.Fatalf("submit: %d %s", code, text)
	}
	at := s.URL + "/api/jobs/" + id.ID
	if log := tail(t, at+"/logs/tail", "ready"); !strings.Contains(log,
		"args [--owes --home my gpu --threads 2 --memory 2 --device auto]") {
		t.Errorf("its arguments: %s", log)
	}
	var j Job
	if code, text := call(t, "GET", at, "", &j); code != 200 || j.Type != "SUBMISSION" || j.Status != Running ||
		j.Metadata["name"] != "gpu" || j.Start == 0 || j.End != 0 {
		t.Errorf("while it runs: %d %s", code, text)
	}
	if code, text := call(t, "DELETE", at, "", nil); code != 500 {
		t.Errorf("a job that runs is deleted: %d %s", code, text)
	}
	for range 2 { // the first lets it drain
		var stopped map[string]bool
		if code, text := call(t, "POST", at+"/stop", "", &stopped); code != 200 || !stopped["stopped"] {
			t.Errorf("stop: %d %s", code, text)
		}
		tail(t, at+"/logs/tail", "drains")
	}
	tail(t, at+"/logs/tail", "")
	var list []Job
	if call(t, "GET", s.URL+"/api/jobs", "", &list); len(list) != 1 || list[0].Status != Stopped || list[0].End == 0 {
		t.Errorf("after it was stopped: %+v", list)
	}
	var again map[string]bool
	if call(t, "POST", at+"/stop", "", &again); again["stopped"] {
		t.Error("a job that has ended is stopped")
	}
	var logs map[string]string
	if call(t, "GET", at+"/logs", "", &logs); !strings.HasSuffix(logs["logs"], "drains\n") {
		t.Errorf("its log: %q", logs["logs"])
	}
	if code, text := call(t, "DELETE", at, "", &again); code != 200 || !again["deleted"] {
		t.Errorf("delete: %d %s", code, text)
	}
	if left, err := os.ReadDir(filepath.Join(dir, jobsDir)); err != nil || len(left) > 0 {
		t.Errorf("a deleted job leaves %v, %v", left, err)
	}
	if code, _ := call(t, "GET", at, "", nil); code != 404 {
		t.Errorf("a deleted job: %d", code)
	}
}

// A job that ends tells how, and a server that is started again knows it; one whose server is gone has failed.
func TestEnds(t *testing.T) {
	dir := t.TempDir()
	h, s := host(t, dir, Config{})
	for how, want := range map[string]Status{"--fails": Failed, "--ends": Succeeded} {
		id := strings.TrimLeft(how, "-")
		body := fmt.Sprintf(`{"entrypoint": "starling worker up %s", "submission_id": %q}`, how, id)
		if code, text := call(t, "POST", s.URL+"/api/jobs", body, nil); code != 200 {
			t.Fatalf("%s: %d %s", how, code, text)
		}
		log := tail(t, s.URL+"/api/jobs/"+id+"/logs/tail", "")
		if how == "--fails" && !strings.Contains(log, "network: é") {
			t.Errorf("log: %q", log)
		}
		if j, err := h.Get(id); err != nil || j.Status != want {
			t.Errorf("%s: %+v, %v", how, j, err)
		}
		if code, _ := call(t, "POST", s.URL+"/api/jobs", body, nil); code != 400 {
			t.Errorf("a second job %s: %d", id, code)
		}
	}
	e := &entry{Job: Job{ID: "killed", Status: Running}}
	if err := os.Mkdir(filepath.Join(dir, jobsDir, "killed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.save(e); err != nil {
		t.Fatal(err)
	}
	after, _ := host(t, dir, Config{})
	if j, err := after.Get("killed"); err != nil || j.Status != Failed || len(after.List()) != 3 {
		t.Errorf("after a restart: %+v, %v, %d jobs", j, err, len(after.List()))
	}
}

// Requests that this host cannot serve are refused with the reason, and start nothing.
func TestRefusals(t *testing.T) {
	h, s := host(t, t.TempDir(), Config{})
	entrypoint := func(flags string) string { return `{"entrypoint": "starling worker up ` + flags + `"}` }
	for body, want := range map[string]string{
		`{`: "no job", `{"entrypoint": ""}`: "wanted starling worker up",
		`{"entrypoint": "python train.py"}`:                                               "wanted starling worker up",
		`{"entrypoint": "starling account send x"}`:                                       "wanted starling worker up",
		`{"entrypoint": "starling worker up 'x"}`:                                         "entrypoint",
		`{"entrypoint": "starling worker up --ends", "runtime_env": {"pip": ["x"]}}`:      "pip",
		`{"entrypoint": "starling worker up --ends", "entrypoint_resources": {"tpu": 1}}`: "entrypoint_resources",
		`{"entrypoint": "starling worker up --ends", "entrypoint_num_gpus": 2}`:           "one device",
		`{"entrypoint": "starling worker up --ends", "entrypoint_num_cpus": -1}`:          "cores",
		`{"entrypoint": "starling fleet up f.yaml", "entrypoint_num_cpus": 1}`:            "in its file",
		`{"entrypoint": "starling worker up --ends", "submission_id": "../x"}`:            "submission_id",
		entrypoint(strings.Repeat("x", 20<<10)):                                           "16 KiB",
		entrypoint(strings.Repeat("x", 80<<10)):                                           "too large",
	} {
		code, text := call(t, "POST", s.URL+"/api/jobs/", body, nil)
		if code != 400 || !strings.Contains(text, want) {
			t.Errorf("%.80s: %d %s, want %s", body, code, text, want)
		}
	}
	for _, path := range []string{"", "/logs", "/logs/tail"} {
		if code, _ := call(t, "GET", s.URL+"/api/jobs/none"+path, "", nil); code != 404 {
			t.Errorf("%s of an unknown job: %d", path, code)
		}
	}
	if list := h.List(); len(list) > 0 {
		t.Errorf("started %+v", list)
	}
}

// Words of an entrypoint are those of a shell, but nothing is expanded or run.
func TestEntrypointIsNoShell(t *testing.T) {
	r := Request{Entrypoint: `starling worker up --home "a b" --region $(touch x) --pool $HOME`}
	args, err := r.arguments()
	want := []string{"worker", "up", "--home", "a b", "--region", "$(touch x)", "--pool", "$HOME"}
	if err == nil && !slices.Equal(args, want) {
		t.Errorf("%q", args)
	}
	r = Request{Entrypoint: "starling worker up; rm -rf x"}
	if args, err := r.arguments(); err == nil && slices.Contains(args, "rm") {
		t.Errorf("%q", args)
	}
}

// With tokens a request needs one that has the scope, and pages of other origins can do nothing.
func TestAccess(t *testing.T) {
	tokens, err := access.ParseTokens(strings.NewReader("reader-0123456789 read\nowner-0123456789ab read,submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, s := host(t, t.TempDir(), Config{Tokens: tokens})
	for _, c := range []struct {
		method, token, origin string
		want                  int
	}{
		{"GET", "", "", 401}, {"GET", "reader-0123456789", "", 200}, {"POST", "reader-0123456789", "", 403},
		{"POST", "owner-0123456789ab", "", 400}, {"GET", "owner-0123456789ab", "http://evil.example", 403},
	} {
		q, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+"/api/jobs/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			q.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.origin != "" {
			q.Header.Set("Origin", c.origin)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if _ = r.Body.Close(); r.StatusCode != c.want {
			t.Errorf("%+v: %d", c, r.StatusCode)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("starling worker up --home 'a b'", 1.5, 1.0, int64(1<<20))
	f.Add(`starling fleet up "x`, -1.0, 0.0, int64(-1))
	f.Fuzz(func(t *testing.T, entrypoint string, cores, gpus float64, memory int64) {
		r := Request{Entrypoint: entrypoint, CPUs: cores, GPUs: gpus, Memory: memory}
		args, err := r.arguments()
		if err == nil && (len(args) < 2 || !slices.ContainsFunc(commands, func(c []string) bool {
			return slices.Equal(c, args[:2])
		})) {
			t.Errorf("%q", args)
		}
	})
}

// A log is cut within its limit, and texts are cut between characters.
func TestBounds(t *testing.T) {
	var b bytes.Buffer
	w := &boundedWriter{to: &b, left: 4}
	for range 3 {
		if n, err := w.Write([]byte("abc")); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if !strings.HasPrefix(b.String(), "abca\nthis log is full") || strings.Count(b.String(), "full") != 1 {
		t.Errorf("%q", b.String())
	}
	for text, want := range map[string]int{"": 0, "a": 1, "é": 2, "aé"[:2]: 1, "a€"[:3]: 1, "\xff": 1, "€": 3} {
		if got := len(whole([]byte(text))); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
