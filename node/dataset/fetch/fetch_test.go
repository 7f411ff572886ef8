package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/node/dataset"
)

// folder has a job.
func folder(t *testing.T, datasets string) string {
	t.Helper()
	dir := t.TempDir()
	text := "apiVersion: starling/v1\nkind: TrainingJob\nmodel: {architecture: gpt2}\ndatasets: " + datasets +
		"\nsequence_len: 8\ntraining: {max_steps: 12, global_batch_size: 2}\nstrategy: {workers: 2, sync_steps: 4}\n"
	if err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Ctrl-C ends a download, and is not said to be a fault of the job.
func TestDataEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	dir := folder(t, `[{path: "`+server.URL+`/birds.csv", format: csv}]`)
	j, err := job.Read(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-asked
		cancel()
	}()
	if _, err := Data(ctx, j, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// A file at an address is downloaded once. Every later reader of the job file gets the content of that download.
func TestData(t *testing.T) {
	content, asked := "text\nthe bird sings\n", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Path != "/d/birds.csv" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(content))
	}))
	defer server.Close()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where the cache is on other systems
	address := server.URL + "/d/birds.csv"
	path := filepath.Join(folder(t, `[{path: "`+address+`", format: csv}]`), "job.yaml")
	read := func(set ...string) (*job.Job, error) {
		t.Helper()
		j, err := job.Read(path, set...)
		if err != nil {
			return nil, err
		}
		return Data(t.Context(), j, nil)
	}
	_, err := job.Load(path)
	if code(t, err) != problem.NoData {
		t.Errorf("before it is downloaded: %v", err)
	}
	first, err := read()
	if err != nil {
		t.Fatal(err)
	}
	files, err := dataset.Of(first)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %+v", err, files)
	}
	if raw, err := os.ReadFile(files[0].Path); err != nil || string(raw) != content || files[0].Name != address {
		t.Fatalf("%v: %q, %s", err, raw, files[0].Name)
	}
	digest := hexDigest(content)
	if text, _ := os.ReadFile(path + sums); string(text) != digest+"  "+address+"\n" {
		t.Errorf("recorded: %q", text)
	}

	content = "text\nanother\n" // this content is never requested
	again, err := read()
	if err != nil || again.Datasets[0].SHA256 != digest || asked != 1 {
		t.Errorf("%v: asked %d times: %+v", err, asked, again.Datasets)
	}
	if j, err := job.Load(path, first.Overrides...); err != nil || j.Datasets[0].SHA256 != digest {
		t.Errorf("by its overrides: %v", err) // as the run folder keeps it
	}
	for set, want := range map[string]string{
		`datasets.0.sha256="` + strings.Repeat("0", 64) + `"`: problem.DataChanged,
		"datasets.0.path=" + server.URL + "/none":             problem.NoData,
		"datasets.0.sha256=abc":                               problem.BadValue,
		`datasets=[{path: a.txt, sha256: "` + digest + `"}]`:  problem.BadValue,
	} {
		if _, err := read(set); code(t, err) != want {
			t.Errorf("%s: %v", set, err)
		}
	}
	if err := first.Confine(""); code(t, err) != problem.Outside {
		t.Errorf("in the job of somebody else: %v", err)
	}
	if err := os.Remove(path + sums); err != nil {
		t.Fatal(err)
	}
	if j, err := read(); err != nil || j.Datasets[0].SHA256 == digest {
		t.Errorf("without a record: %v", err)
	}
}

func code(t *testing.T, err error) string {
	t.Helper()
	var list *problem.ErrorList
	if !errors.As(err, &list) {
		t.Errorf("%v is no list of errors", err)
		return ""
	}
	return list.Errors[0].Code
}

func hexDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
