package pull

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/node/download"
)

// serve answers like the Hub for one repository, bird/sings, at revision main, which is the commit c0ffee. Large files
// lie on another server, which must not see the token.
func serve(t *testing.T, files map[string]string) (endpoint string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("another server gets the token")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(files[r.URL.Path[1:]])))
	}))
	t.Cleanup(large.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hf_secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/api/models/bird/sings/revision/main" && r.URL.Query().Get("blobs") == "true" {
			r := repository{Commit: "c0ffee"}
			for name, content := range files {
				x := sibling{Name: name, Size: int64(len(content))}
				if strings.HasSuffix(name, ".safetensors") {
					sum := sha256.Sum256([]byte(content))
					x.LFS.SHA256 = hex.EncodeToString(sum[:])
				}
				r.Files = append(r.Files, x)
			}
			_ = json.NewEncoder(w).Encode(r)
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, "/bird/sings/resolve/c0ffee/")
		if !ok {
			http.NotFound(w, r)
			return
		}
		*asked = append(*asked, name)
		if strings.HasSuffix(name, ".safetensors") {
			// Another host, so that clients keep the token: 127.0.0.1 under its other name.
			http.Redirect(w, r, strings.Replace(large.URL, "127.0.0.1", "localhost", 1)+"/"+name, http.StatusFound)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(files[name])))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestPull(t *testing.T) {
	files := map[string]string{"config.json": "{}", "tokenizer.json": "{}", "model-00001-of-00002.safetensors": "first",
		"model-00002-of-00002.safetensors": "second", "model.safetensors.index.json": "{}", "README.md": "# Bird",
		"consolidated.safetensors": "again", "pytorch_model.bin": "pickle", "modeling_bird.py": "import os",
		"onnx/model.onnx": "x", "../config.json": "above"}
	endpoint, asked := serve(t, files)
	t.Setenv("HF_ENDPOINT", endpoint+"/")
	t.Setenv("HF_TOKEN", "hf_secret")
	o := Options{Repo: "bird/sings", To: filepath.Join(t.TempDir(), "model"), Retry: time.Millisecond}
	m, err := Pull(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadDir(o.To)
	if m.Commit != "c0ffee" || len(m.Files) != 6 || len(got) != 6 || m.Files[0].Name != "README.md" || m.Files[0].Had {
		t.Errorf("%+v, %v", m, got)
	}
	for _, f := range m.Files {
		if text, _ := os.ReadFile(filepath.Join(o.To, f.Name)); string(text) != files[f.Name] || len(f.SHA256) != 64 {
			t.Errorf("%+v: %q", f, text)
		}
	}
	n := len(*asked)
	if m, err := Pull(t.Context(), o); err != nil || !m.Files[3].Had || len(*asked) != n {
		t.Errorf("again: %v, asked for %v", err, (*asked)[n:])
	}
	if err := os.WriteFile(filepath.Join(o.To, "config.json"), []byte("{ }"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Pull(t.Context(), o); !errors.Is(err, ErrConflict) {
		t.Errorf("over another file: %v", err)
	}
}

func TestRefused(t *testing.T) {
	whole := map[string]string{"config.json": "{}", "model.safetensors": "weights"}
	for _, c := range []struct {
		name  string
		files map[string]string
		o     Options
		want  error
	}{
		{"no name", whole, Options{Repo: "sings"}, ErrName},
		{"a path", whole, Options{Repo: "../sings"}, ErrName},
		{"another", whole, Options{Repo: "bird/flies"}, ErrNoModel},
		{"another revision", whole, Options{Revision: "v2"}, ErrNoModel},
		{"no token", whole, Options{Token: "hf_wrong"}, ErrAccess},
		{"pickles", map[string]string{"config.json": "{}", "pytorch_model-00001-of-00002.bin": ""}, Options{}, ErrPickle},
		{"a data set", map[string]string{"train.csv": ""}, Options{}, ErrNothing},
		{"too large", whole, Options{MaxBytes: 5}, ErrTooLarge},
	} {
		endpoint, _ := serve(t, c.files)
		if c.o.Endpoint, c.o.To = endpoint, filepath.Join(t.TempDir(), "m"); c.o.Token == "" {
			c.o.Token = "hf_secret"
		}
		if c.o.Repo == "" {
			c.o.Repo = "bird/sings"
		}
		if _, err := Pull(t.Context(), c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if _, err := os.Stat(c.o.To); err == nil {
			t.Errorf("%s: left a folder", c.name)
		}
	}
	var down *download.StatusError
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }))
	defer s.Close()
	if _, err := Pull(t.Context(), Options{Repo: "bird/sings", Endpoint: s.URL}); !errors.As(err, &down) {
		t.Errorf("a server that is down: %v", err)
	}
}

// A server that does not say how long its files are cannot fill the disk.
func TestLimitWhereNoSizeIsListed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			_ = json.NewEncoder(w).Encode(repository{Commit: "c0ffee",
				Files: []sibling{{Name: "config.json"}, {Name: "model.safetensors"}}})
			return
		}
		_, _ = w.Write(make([]byte, 40))
	}))
	defer s.Close()
	o := Options{Repo: "bird/sings", Endpoint: s.URL, To: t.TempDir(), MaxBytes: 50}
	if _, err := Pull(t.Context(), o); !errors.Is(err, download.ErrTooLarge) {
		t.Errorf("two files of 40 bytes, where 50 may come: %v", err)
	}
}
