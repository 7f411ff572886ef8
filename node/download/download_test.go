package download

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// server serves a file, and cuts its first answers off in the middle.
type server struct {
	content []byte
	tag     string
	cuts    int
	ranges  []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	if s.cuts > 0 {
		s.cuts--
		w = &short{ResponseWriter: w, left: len(s.content) / 2}
	}
	http.ServeContent(w, r, "file", time.Time{}, bytes.NewReader(s.content))
}

type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(b []byte) (int, error) {
	n := min(len(b), s.left)
	s.left -= n
	if n, err := s.ResponseWriter.Write(b[:n]); err != nil || n < len(b) {
		return n, errors.Join(err, http.ErrHandlerTimeout)
	}
	return n, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestGet(t *testing.T) {
	content := bytes.Repeat([]byte("the bird sings. "), 10_000)
	for name, c := range map[string]struct {
		server server
		sum    string
		ranges []string
	}{
		"at once":       {server{tag: `"a"`}, "", []string{""}},
		"cut off":       {server{tag: `"a"`, cuts: 1}, "", []string{"", "bytes=80000-"}},
		"no tag":        {server{cuts: 1}, "", []string{"", ""}},
		"only a digest": {server{cuts: 1}, digest(content), []string{"", "bytes=80000-"}},
	} {
		c.server.content = content
		s := httptest.NewServer(&c.server)
		path := filepath.Join(t.TempDir(), "a", "file")
		told := int64(0)
		sum, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: c.sum, Retry: time.Millisecond, Max: 1 << 20,
			Say: func(done, _ int64) { told = done }})
		s.Close()
		got, _ := os.ReadFile(path)
		if err != nil || sum != digest(content) || !bytes.Equal(got, content) || told != int64(len(content)) {
			t.Errorf("%s: %v, %d bytes", name, err, len(got))
		}
		if len(c.server.ranges) != len(c.ranges) || c.server.ranges[len(c.ranges)-1] != c.ranges[len(c.ranges)-1] {
			t.Errorf("%s: asked for %q", name, c.server.ranges)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// A later call resumes an interrupted download, unless the file has changed since.
func TestGoesOn(t *testing.T) {
	for _, changed := range []bool{false, true} {
		x := &server{content: bytes.Repeat([]byte("sings"), 1000), tag: `"a"`, cuts: 1}
		s := httptest.NewServer(x)
		f := File{URL: s.URL, Path: filepath.Join(t.TempDir(), "file"), Retry: time.Millisecond}
		f.Client = &http.Client{Transport: once{t: http.DefaultTransport, left: new(int)}}
		if _, err := Get(t.Context(), f); err == nil {
			t.Fatal("it is whole at once")
		}
		if changed {
			x.content, x.tag = bytes.Repeat([]byte("waits"), 1000), `"b"`
		}
		f.Client = nil
		sum, err := Get(t.Context(), f)
		if err != nil || sum != digest(x.content) || x.ranges[len(x.ranges)-1] != "bytes=2500-" {
			t.Errorf("changed %v: %v, %q", changed, err, x.ranges)
		}
		s.Close()
	}
}

// once lets one request through.
type once struct {
	t    http.RoundTripper
	left *int
}

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	if *o.left++; *o.left > 1 {
		return nil, errors.New("the network is gone")
	}
	return o.t.RoundTrip(r)
}

func TestRefused(t *testing.T) {
	x := &server{content: make([]byte, 1000)}
	s := httptest.NewServer(x)
	defer s.Close()
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	no := (*StatusError)(nil)
	path := filepath.Join(t.TempDir(), "file")
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path, Max: 999}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: digest([]byte("x"))}); !errors.Is(err, ErrDigest) {
		t.Error(err)
	}
	if _, err := Get(t.Context(), File{URL: none.URL, Path: path}); !errors.As(err, &no) || no.Status != 404 {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file that is refused has its name")
	}
	if len(x.ranges) != 2 {
		t.Errorf("asked %d times", len(x.ranges))
	}
}
