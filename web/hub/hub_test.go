package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
)

const secret = "the key of the account"

var model = map[string]string{
	"config.json": `{"model_type":"gpt2"}`, "tokenizer.json": "{}",
	"model.safetensors": strings.Repeat("0123456789abcdef", 64),
	"README.md":         "# a model\n", "adapter/adapter_config.json": "{}",
}

// folder writes a run with more in it than is served.
func folder(t testing.TB) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "run")
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range model {
		write(name, text)
	}
	write("network/key", secret)
	write("starling.log", secret)
	write("../outside.json", secret)
	if err := os.Symlink("../outside.json", filepath.Join(dir, "generation_config.json")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func serve(t testing.TB) (*Server, string) {
	t.Helper()
	dir := folder(t)
	s, err := New(map[string]string{"starling/small": dir, "plain": dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

func ask(s *Server, method, url string, header ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "http://localhost/", strings.NewReader(`{"paths":["config.json","none"]}`))
	r.URL.Path = url
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(url, "?")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	s.ServeHTTP(w, r)
	return w
}

func TestFiles(t *testing.T) {
	s, dir := serve(t)
	for name, text := range model {
		for _, url := range []string{"/starling/small/resolve/main/", "/starling/small/raw/main/", "/plain/resolve/main/"} {
			w := ask(s, "GET", url+name)
			if w.Code != 200 || w.Body.String() != text || len(w.Header().Get("X-Repo-Commit")) != 40 {
				t.Errorf("%s: %d %q, %v", url+name, w.Code, w.Body, w.Header())
			}
		}
	}
	w := ask(s, "HEAD", "/starling/small/resolve/main/model.safetensors")
	sum := sha256.Sum256([]byte(model["model.safetensors"]))
	etag := `"` + hex.EncodeToString(sum[:]) + `"`
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "1024" ||
		w.Header().Get("Etag") != etag || w.Header().Get("X-Linked-Size") != "1024" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
	commit := w.Header().Get("X-Repo-Commit")
	w = ask(s, "GET", "/starling/small/resolve/"+commit+"/model.safetensors", "Range", "bytes=8-11")
	if w.Code != 206 || w.Body.String() != "89ab" || w.Header().Get("Content-Range") != "bytes 8-11/1024" {
		t.Errorf("a part: %d %q", w.Code, w.Body)
	}
	if w = ask(s, "GET", "/starling/small/resolve/main/model.safetensors", "If-None-Match", etag); w.Code != 304 {
		t.Errorf("known already: %d", w.Code)
	}
	if w = ask(s, "GET", "/starling/small/resolve/main/model.safetensors", "Range", "bytes=5000-"); w.Code != 416 {
		t.Errorf("beyond the end: %d", w.Code)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type":"llama"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	w = ask(s, "GET", "/starling/small/resolve/main/config.json")
	if w.Body.String() != `{"model_type":"llama"}` || w.Header().Get("X-Repo-Commit") == commit {
		t.Errorf("after a change: %q at %s", w.Body, w.Header().Get("X-Repo-Commit"))
	}
	if w = ask(s, "GET", "/starling/small/resolve/"+commit+"/config.json"); w.Code != 404 ||
		w.Header().Get("X-Error-Code") != "RevisionNotFound" {
		t.Errorf("the revision before: %d %v", w.Code, w.Header())
	}
}

func TestRefusals(t *testing.T) {
	s, _ := serve(t)
	for url, code := range map[string]string{
		"/starling/none/resolve/main/config.json":             "RepoNotFound",
		"/starling/small/resolve/other/config.json":           "RevisionNotFound",
		"/starling/small/resolve/main/none.json":              "EntryNotFound",
		"/starling/small/resolve/main/starling.log":           "EntryNotFound",
		"/starling/small/resolve/main/network/key":            "EntryNotFound",
		"/starling/small/resolve/main/generation_config.json": "EntryNotFound",
		"/starling/small/resolve/main/..%2foutside.json":      "EntryNotFound",
		"/starling/small/resolve/main/adapter":                "EntryNotFound",
		"/api/models/starling/none":                           "RepoNotFound",
		"/api/models/starling/small/revision/none":            "RevisionNotFound",
		"/api/models/starling/small/tree/main/network":        "EntryNotFound",
		"/api/models/starling/small/commits/main":             "EntryNotFound",
		"/anything": "RepoNotFound",
	} {
		if w := ask(s, "GET", url); w.Code != 404 || w.Header().Get("X-Error-Code") != code || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %q %s", url, w.Code, w.Header().Get("X-Error-Code"), w.Body)
		}
	}
	for _, name := range []string{"a/b/c", "../a", "", "a//b"} {
		if _, err := New(map[string]string{name: t.TempDir()}); err == nil {
			t.Errorf("%q is taken as a name", name)
		}
	}
	if _, err := New(map[string]string{"a": t.TempDir()}); err == nil {
		t.Error("an empty folder is a model")
	}
}

func TestAPI(t *testing.T) {
	s, _ := serve(t)
	var all []info
	if err := json.Unmarshal(ask(s, "GET", "/api/models").Body.Bytes(), &all); err != nil || len(all) != 2 ||
		all[1].Author != "starling" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, url := range []string{"/api/models/starling/small", "/api/models/starling/small/revision/main",
		"/api/models/plain"} {
		var i info
		if err := json.Unmarshal(ask(s, "GET", url).Body.Bytes(), &i); err != nil || len(i.Siblings) != len(model) ||
			len(i.SHA) != 40 {
			t.Errorf("%s: %+v, %v", url, i, err)
		}
	}
	tree := func(url string) (nodes []node) {
		if err := json.Unmarshal(ask(s, "GET", url).Body.Bytes(), &nodes); err != nil {
			t.Error(err)
		}
		return nodes
	}
	if n := tree("/api/models/starling/small/tree/main"); len(n) != 5 || n[1].Type != "directory" {
		t.Errorf("%+v", n)
	}
	if n := tree("/api/models/starling/small/tree/main?recursive=true"); len(n) != 6 {
		t.Errorf("%+v", n)
	}
	if n := tree("/api/models/starling/small/tree/main/adapter"); len(n) != 1 ||
		n[0].Path != "adapter/adapter_config.json" {
		t.Errorf("%+v", n)
	}
	var nodes []node
	if err := json.Unmarshal(ask(s, "POST", "/api/models/starling/small/paths-info/main").Body.Bytes(),
		&nodes); err != nil || len(nodes) != 1 || nodes[0].Path != "config.json" {
		t.Errorf("%+v, %v", nodes, err)
	}
}

// FuzzPaths must never give away what is not part of the model.
func FuzzPaths(f *testing.F) {
	s, _ := serve(f)
	for _, url := range []string{"/starling/small/resolve/main/../network/key", "/plain/raw/main//starling.log",
		"/api/models/starling/small/tree/main/..", "/starling/small/resolve/main/adapter/../../outside.json"} {
		f.Add("GET", url)
	}
	f.Fuzz(func(t *testing.T, method, url string) {
		if method != "HEAD" && method != "POST" {
			method = "GET"
		}
		w := ask(s, method, url)
		if bytes.Contains(w.Body.Bytes(), []byte(secret)) || w.Code >= 500 {
			t.Errorf("%s %q: %d %s", method, url, w.Code, w.Body)
		}
	})
}

// TestHuggingFaceClient pulls a model with Hugging Face's own client.
func TestHuggingFaceClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run Hugging Face's client with")
	}
	clients := filepath.Join("..", "clients")
	if _, err := os.Stat(filepath.Join(clients, "node_modules", "@huggingface", "hub")); err != nil {
		t.Skip("Hugging Face's client is not installed: run `npm ci --ignore-scripts` in web/clients")
	}
	s, _ := serve(t)
	server := httptest.NewServer(s)
	defer server.Close()
	var stderr strings.Builder
	inputs.Of(t, filepath.Join(clients, "hub.mjs"))
	cmd := exec.CommandContext(t.Context(), node, "hub.mjs", server.URL, "starling/small", t.TempDir())
	cmd.Dir, cmd.Stderr = clients, &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var got struct {
		Info              struct{ SHA string }
		Files             []struct{ Type, Path, LFS string }
		Digests, Snapshot map[string]string
		Large             struct {
			Size int
			Etag string
		}
		Part    string
		Missing bool
		None    any
		Unknown struct{ Status int }
	}
	if err := json.Unmarshal(raw[bytes.LastIndexByte(raw, 0x0a)+1:], &got); err != nil {
		t.Fatal(err)
	}
	for name, text := range model {
		sum := sha256.Sum256([]byte(text))
		if want := hex.EncodeToString(sum[:]); got.Digests[name] != want || got.Snapshot[name] != want {
			t.Errorf("%s came as %s, in the snapshot %s, want %s", name, got.Digests[name], got.Snapshot[name], want)
		}
	}
	if len(got.Files) != len(model)+1 || len(got.Info.SHA) != 40 || got.Large.Size != 1024 ||
		got.Part != hex.EncodeToString([]byte("89abcdef01234567")) {
		t.Errorf("%s", raw)
	}
	if got.Missing || got.None != nil || got.Unknown.Status != 404 {
		t.Errorf("what is not there: %v, %v, %+v", got.Missing, got.None, got.Unknown)
	}
}
