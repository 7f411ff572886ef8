package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/rest"
)

// both tries the two ways to reach a handler.
func both(t *testing.T, h http.Handler, try func(t *testing.T, c *rest.Client)) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	remote, err := rest.New(s.URL, "secret")
	if err != nil {
		t.Fatal(err)
	}
	here := rest.Of(h)
	remote.Every, here.Every = 1, 1
	t.Run("over a socket", func(t *testing.T) { try(t, remote) })
	t.Run("in this process", func(t *testing.T) { try(t, here) })
}

func TestPagesAndFind(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "" {
			_, _ = w.Write([]byte(`{"jobs":[{"id":"first","job":"job-1a"},{"id":"second","job":"job-1b","name":"twin"}],` +
				`"has_more":true,"after":"2"}`))
			return
		}
		_, _ = w.Write([]byte(`{"jobs":[{"id":"third","job":"job-2","name":"twin"}]}`))
	})
	mux.HandleFunc("GET /v1/jobs/{id}", func(w http.ResponseWriter, r *http.Request) {
		switch id := r.PathValue("id"); id {
		case "first", "second", "third", "a/b":
			_, _ = w.Write([]byte(`{"id":"` + id + `"}`))
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"code":"NOT_FOUND","detail":"gone","request_id":"r1"}`))
		}
	})
	both(t, mux, func(t *testing.T, c *rest.Client) {
		all, err := c.Jobs(context.Background(), "", "")
		if err != nil || len(all) != 3 {
			t.Errorf("%d jobs, %v", len(all), err)
		}
		for text, want := range map[string]string{"second": "second", "sec": "second", "job-2": "third", "a/b": "a/b",
			"job-1": "JOB_AMBIGUOUS", "twin": "JOB_AMBIGUOUS", "nobody": "JOB_NOT_FOUND", "": "JOB_NOT_FOUND"} {
			j, err := c.Find(context.Background(), text)
			e, _ := errors.AsType[*rest.Error](err)
			if err == nil && j.ID != want || err != nil && (e == nil || e.Code != want) {
				t.Errorf("%q: %q, %v", text, j.ID, err)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	answers := map[string]struct {
		status int
		body   string
		code   string
		say    string
	}{
		"/v1/health": {503, `{"code":"NETWORK_STARTING","detail":"not ` +
			`yet","fix":"wait","retryable":true,"request_id":"r7"}`, "NETWORK_STARTING", "not yet"},
		"/v1/workers":        {502, `<html>`, "NOT_STARLING", "no server of starling"},
		"/v1/trained-models": {200, `{"models":`, "ANSWER_UNREADABLE", "unexpected EOF"},
		"/v1/files": {400, `{"error":{"message":"line 3 is none","type":"invalid_request_error","code":"invalid_file"}}`,
			"INVALID_FILE", "line 3 is none"},
		"/v1/plans": {422,
			`{"code":"JOB_INVALID","detail":"two","problems":[{"code":"A","place":"job.yaml:1:2","what":"one"},` +
				`{"code":"B","what":"two"}]}`, "A", "job.yaml:1:2"},
	}
	both(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.URL.Path]
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	}), func(t *testing.T, c *rest.Client) {
		ctx := context.Background()
		for path, ask := range map[string]func() error{
			"/v1/trained-models": func() error { _, err := c.Models(ctx); return err },
			"/v1/files":          func() error { _, err := c.Examples().List(ctx); return err },
			"/v1/plans":          func() error { _, err := c.Plan(ctx, api.Spec{Config: "a: 1"}); return err },
		} {
			err := ask()
			e, ok := errors.AsType[*rest.Error](err)
			if !ok {
				t.Errorf("%s: %v", path, err)
				continue
			}
			code, place, what, why, _ := e.Explain()
			if code != answers[path].code || !strings.Contains(place+what+why, answers[path].say) ||
				e.Temporary != (e.Status == 503 || e.Status == 200) {
				t.Errorf("%s: %s %q %q %q", path, code, place, what, why)
			}
		}
	})
	c, err := rest.New("http://127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Models(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "no answer from http://127.0.0.1:1") {
		t.Errorf("nobody there: %v", err)
	}
	for _, address := range []string{"", "127.0.0.1:7300", "ftp://x", "http://", "http://x?y"} {
		if _, err := rest.New(address, ""); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
}

// A stream that breaks continues at its last event, and a reader can end it.
func TestFollowResumes(t *testing.T) {
	var asked atomic.Int32
	both(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-Id")
		asked.Add(1)
		switch last {
		case "":
			_, _ = w.Write([]byte("retry: 1000\n\n: alive\n\nid: 1\nevent: update\ndata: " +
				"{\"job\":{\"state\":\"running\",\"round\":1}}\n\n"))
		case "1":
			_, _ = w.Write([]byte("id: 2\nevent: reset\ndata: {\"job\":\ndata: {\"state\":\"done\",\"round\":2}}\n\nid: " +
				"3\ndata: {}\n\n"))
		default:
			t.Errorf("Last-Event-ID is %q", last)
			w.WriteHeader(http.StatusTeapot)
		}
	}), func(t *testing.T, c *rest.Client) {
		asked.Store(0)
		var rounds []int
		err := c.Follow(context.Background(), "x", "", func(n rest.RunEvent) error {
			rounds = append(rounds, n.Job.Round)
			if n.Reset != (n.ID == "2") {
				t.Errorf("%+v", n)
			}
			if rest.Over(n.Job) {
				return rest.ErrEnough
			}
			return nil
		})
		if err != nil || len(rounds) != 2 || rounds[1] != 2 || asked.Load() != 2 {
			t.Errorf("%v, rounds %v, asked %d times", err, rounds, asked.Load())
		}
		mine := errors.New("mine")
		if err := c.Follow(context.Background(), "x", "", func(rest.RunEvent) error { return mine }); !errors.Is(err, mine) {
			t.Errorf("the reader's error: %v", err)
		}
	})
}

// A file name of a hostile server cannot leave the folder, and a truncated file is not kept.
func TestSaveFile(t *testing.T) {
	both(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("12345")) }),
		func(t *testing.T, c *rest.Client) {
			dir := t.TempDir()
			path := filepath.Join(dir, "adapter", "config.json")
			save := func(name string, size int64) error {
				return c.SaveFile(context.Background(), "x", api.File{Name: name, Kind: "model", Bytes: size}, path)
			}
			if err := save("../x", 5); err == nil || !strings.Contains(err.Error(), "leads out") {
				t.Errorf("a name that leads out: %v", err)
			}
			if err := save("adapter/config.json", 6); err == nil || !strings.Contains(err.Error(), "5 bytes of 6") {
				t.Errorf("cut off: %v", err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			for range 2 {
				if err := save("adapter/config.json", 5); err != nil {
					t.Error(err)
				}
			}
			if err := save("adapter/config.json", 4); !errors.Is(err, os.ErrExist) {
				t.Errorf("another file there: %v", err)
			}
		})
}
