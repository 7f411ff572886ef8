// Package sdk tests the Python client against the real server, in processes of their own.
package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/web"
)

const token = "0123456789abcdef"

// launcher writes the files of a run for every job, a piece at a time, and trains nothing.
type launcher struct {
	root    string
	library *runs.Library

	mu   sync.Mutex
	ids  map[string]string // by key
	errs []error
}

func (l *launcher) Plan(_ context.Context, s api.Spec) (api.Plan, error) {
	return api.Plan{ID: "job-1", Name: "tiny", Steps: 8, CostUzen: 2_500_000}, check(s)
}

func check(s api.Spec) error {
	if !strings.Contains(s.Config, "name: tiny") {
		return &web.Failure{Status: 422, Code: "JOB_INVALID", Detail: "the job file has 1 error", Fix: "mend it"}
	}
	return nil
}

func (l *launcher) Submit(_ context.Context, key string, s api.Submission) (string, error) {
	if err := check(s.Spec); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if id := l.ids[key]; id != "" {
		return id, nil
	}
	id := fmt.Sprint("tiny-", len(l.ids))
	l.ids[key] = id
	dir := filepath.Join(l.root, id)
	l.errs = append(l.errs, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{"format":1,"id":"job-1"}`), 0o644))
	detach, err := l.library.Attach(dir, training{})
	if err != nil {
		return "", err
	}
	go func() {
		l.write(dir)
		detach()
	}()
	return id, nil
}

// training is a process that trains, as the server sees it.
type training struct{}

func (training) Progress() runs.Progress { return runs.Progress{Phase: "train", Workers: 3} }

func (training) Books(context.Context) ([]api.Receipt, []api.Dispute, error) { return nil, nil, nil }

func (l *launcher) Cancel(context.Context, string) error { return web.ErrNotFound }

// write leaves two rounds of four steps and the end of the run.
func (l *launcher) write(dir string) {
	add := func(name, text string) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		l.mu.Lock()
		l.errs = append(l.errs, err)
		l.mu.Unlock()
	}
	add("metrics.jsonl", `{"kind":"round","round":0,"step":0,"loss":0,"eval_loss":5.5,"tokens":0,"workers":3}`+"\n")
	for round := 1; round <= 2; round++ {
		for i := range 4 {
			add("metrics.jsonl", fmt.Sprintf(`{"kind":"step","round":%d,"step":%d,"loss":%g,"tokens":1,"workers":3}`+"\n", round, 4*(round-1)+i+1, 5-float64(i)/8))
		}
		add("metrics.jsonl", fmt.Sprintf(`{"kind":"round","round":%d,"step":%d,"loss":4,"eval_loss":%g,"tokens":1,"workers":3,"seconds":1}`+"\n", round, 4*round, 5-float64(round)/2))
	}
	add("summary.json", `{"job":"job-1","name":"tiny","rounds":2,"steps":8,"tokens":8,"final_eval_loss":4}`)
	run := filepath.Join(dir, "run.new")
	add("run.new", `{"format":1,"id":"job-1","finished":true}`)
	if err := os.Rename(run, filepath.Join(dir, "run.json")); err != nil {
		panic(err)
	}
}

// TestPython runs the tests of the client in every Python that is here.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	root := t.TempDir()
	library, err := runs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(token+" read,submit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	allowed, err := web.ReadTokens(tokens)
	if err != nil {
		t.Fatal(err)
	}
	l := &launcher{root: root, library: library, ids: map[string]string{}}
	s := web.New(web.Config{Runs: library, Launcher: l, Tokens: allowed, Poll: 5 * time.Millisecond})
	server := httptest.NewServer(s)
	defer server.Close()
	defer s.Stop()

	cmd := exec.CommandContext(t.Context(), python, "-W", "error::SyntaxWarning", "-m", "unittest", "tests.test_client", "tests.test_server")
	cmd.Env = append(os.Environ(), "STARLING_TEST_URL="+server.URL, "STARLING_TEST_TOKEN="+token, "PYTHONDONTWRITEBYTECODE=1", "STARLING_URL=", "STARLING_TOKEN=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.errs...); err != nil {
		t.Error(err)
	}
}
