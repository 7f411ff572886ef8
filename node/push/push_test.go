package push

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/internal/pushtest"
	"github.com/starling-network/starling/node/prepare/hubfile"
	"github.com/starling-network/starling/node/push/parcel"
	"github.com/starling-network/starling/node/push/record"
)

// model writes a folder with a model of that size, and with files that are never sent.
func model(t testing.TB, size int) (dir string, sent map[string][]byte) {
	t.Helper()
	weights := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = random.Read(weights) // never fails
	sent = map[string][]byte{"model.safetensors": weights, "config.json": []byte("{}"), "README.md": []byte("# it\n"),
		"adapter/adapter_config.json": []byte(`{"r":2}`), "metrics.jsonl": nil}
	dir = filepath.Join(t.TempDir(), "[a] run*")
	for name, text := range map[string]string{"run.json": "secret", "job.yaml": "secret", "key": "secret",
		"network/validator/key": "secret", "blobs/bafy": "secret", "starling.log": "secret", ".lock": "secret"} {
		put(t, filepath.Join(dir, name), []byte(text))
	}
	for name, text := range sent {
		put(t, filepath.Join(dir, name), text)
	}
	return dir, sent
}

func put(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// settled copies what waits until all of it is done, or has failed.
func settled(t testing.TB, o Options, from string, to ...string) []api.Push {
	t.Helper()
	o.Retry = time.Microsecond
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(from, to...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { s.Run(ctx) })
	s.Settle(ctx, time.Minute)
	cancel()
	over.Wait()
	return s.Copies()
}

// clean fails if a credential, or a file that is never sent, is where others read it.
func clean(t testing.TB, dir string, texts ...string) {
	t.Helper()
	state, err := os.ReadFile(filepath.Join(dir, record.File))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(texts, string(state)) {
		for _, secret := range []string{pushtest.Access, pushtest.Secret, pushtest.Session, pushtest.Token, "signature="} {
			if strings.Contains(text, secret) {
				t.Errorf("a credential is in %q", text)
			}
		}
	}
}

func TestModelArrivesInABucket(t *testing.T) {
	store := pushtest.NewStore(t, "models")
	dir, sent := model(t, 40<<20+7) // in three parts
	var news []string
	got := settled(t, Options{Dir: dir, Say: func(text string) { news = append(news, text) }}, "",
		"s3://models/tiny model/+1/")
	if len(got) != 1 || got[0].State != record.Done || got[0].Files != len(sent) || got[0].Sent != got[0].Bytes ||
		got[0].Address != store.URL+"/models/tiny%20model/%2B1" {
		t.Fatalf("%+v, %q", got, news)
	}
	objects := store.Objects()
	if len(objects) != len(sent) || store.Pending() != 0 {
		t.Errorf("%d objects of %d files, %d uploads are open", len(objects), len(sent), store.Pending())
	}
	for name, text := range sent {
		if !bytes.Equal(objects["tiny model/+1/"+name].Bytes, text) {
			t.Errorf("%s is another", name)
		}
	}
	if order := store.Order(); order[len(order)-1] != "tiny model/+1/config.json" {
		t.Errorf("the configuration comes before what it is about: %q", order)
	}
	clean(t, dir, news...)

	before := len(store.Requests())
	if got := settled(t, Options{Dir: dir}, "", "s3://models/tiny model/+1/"); got[0].State != record.Done {
		t.Errorf("%+v", got)
	}
	for _, q := range store.Requests()[before:] {
		if !strings.HasPrefix(q, "HEAD ") {
			t.Errorf("what is there is sent again: %s", q)
		}
	}
	put(t, filepath.Join(dir, "README.md"), []byte("# IT\n")) // as long as before
	settled(t, Options{Dir: dir}, "", "s3://models/tiny model/+1/")
	if text := store.Objects()["tiny model/+1/README.md"].Bytes; string(text) != "# IT\n" {
		t.Errorf("a changed file is not sent: %q", text)
	}
}

// A process that ends between two parts leaves what a later one continues.
func TestPartsAreContinued(t *testing.T) {
	store := pushtest.NewStore(t, "models")
	store.Page = 1
	dir, sent := model(t, 60<<20) // in four parts
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	store.Fault = func(r *http.Request, _ int) int {
		if r.URL.Query().Get("partNumber") == "3" {
			kill()
			return -1
		}
		return 0
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add("", "s3://models/x"); err != nil {
		t.Fatal(err)
	}
	s.Run(ctx)
	if got := s.Copies()[0]; got.State != record.Waiting || store.Pending() != 1 {
		t.Fatalf("%+v, %d uploads are open", got, store.Pending())
	}
	store.Fault = nil
	before := len(store.Requests())
	if got := settled(t, Options{Dir: dir}, "", "s3://models/x"); got[0].State != record.Done {
		t.Fatalf("%+v", got)
	}
	var parts []string
	for _, q := range store.Requests()[before:] {
		if strings.HasPrefix(q, "PUT ") && strings.Contains(q, "partNumber=") {
			parts = append(parts, q[strings.Index(q, "partNumber="):][:12])
		}
	}
	if strings.Join(parts, " ") != "partNumber=3 partNumber=4" {
		t.Errorf("sent again: %q", parts)
	}
	if !bytes.Equal(store.Objects()["x/model.safetensors"].Bytes, sent["model.safetensors"]) {
		t.Error("the weights are others")
	}
	clean(t, dir)
}

// A store that drops an upload, that breaks connections and that asks for patience gets the model in the end.
func TestFailingStore(t *testing.T) {
	store := pushtest.NewStore(t, "models")
	dir, sent := model(t, 40<<20)
	var mu sync.Mutex
	broken := map[string]bool{}
	store.Fault = func(r *http.Request, n int) int {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Query().Get("partNumber") == "2" && !broken["forget"] {
			broken["forget"] = true
			store.Forget()
		}
		if at := r.Method + r.RequestURI; r.Method != http.MethodHead && !broken[at] {
			broken[at] = true
			return map[bool]int{true: -1, false: http.StatusServiceUnavailable}[n%2 == 0]
		}
		return 0
	}
	var news []string
	got := settled(t, Options{Dir: dir, Say: func(text string) { news = append(news, text) }}, "", "s3://models/x")
	if got[0].State != record.Done ||
		!bytes.Equal(store.Objects()["x/model.safetensors"].Bytes, sent["model.safetensors"]) {
		t.Fatalf("%+v", got)
	}
	if len(news) != 2 || !strings.HasPrefix(news[0], "warning: the model is not at s3://models/x yet") ||
		!strings.HasPrefix(news[1], "the model is at ") {
		t.Errorf("said %q", news)
	}
	clean(t, dir, news...)
}

func TestModelArrivesAtAHub(t *testing.T) {
	hub := pushtest.NewHub(t)
	dir, sent := model(t, 5<<20/2) // in three parts
	var mu sync.Mutex
	once := map[string]bool{}
	hub.Fault = func(r *http.Request, n int) int {
		mu.Lock()
		defer mu.Unlock()
		if at := r.Method + r.RequestURI; !once[at] {
			once[at] = true
			return map[bool]int{true: -1, false: http.StatusTooManyRequests}[n%2 == 0]
		}
		return 0
	}
	var news []string
	got := settled(t, Options{Dir: dir, Title: "tiny", Say: func(text string) { news = append(news, text) }}, "",
		"hf:starling/tiny")
	repo := hub.Repo("starling/tiny")
	if got[0].State != record.Done || got[0].Address != hub.URL+"/starling/tiny" || repo == nil || !repo.Private ||
		len(repo.Commits) != 1 || repo.Commits[0] != "Upload tiny" || len(repo.Files) != len(sent) {
		t.Fatalf("%+v, %+v, %q", got, repo, news)
	}
	for name, text := range sent {
		if !bytes.Equal(repo.Files[name], text) {
			t.Errorf("%s is another", name)
		}
	}
	clean(t, dir, news...)
	puts := hub.Puts()
	hub.Fault = nil
	if got := settled(t, Options{Dir: dir}, "", "hf:starling/tiny"); got[0].State != record.Done || hub.Puts() != puts {
		t.Errorf("%+v: large files that are there are sent again", got)
	}
}

// Each failure that waiting does not help has a code and something to do, and ends the copy.
func TestFailuresHaveCodes(t *testing.T) {
	dir, _ := model(t, 100)
	for name, c := range map[string]struct {
		to, code string
		given    func(store *pushtest.Store, hub *pushtest.Hub)
	}{
		"no keys": {"s3://models/x", parcel.Credentials, func(*pushtest.Store, *pushtest.Hub) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "none"))
		}},
		"other keys": {"s3://models/x", parcel.Credentials, func(*pushtest.Store, *pushtest.Hub) {
			t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
		}},
		"no bucket": {"s3://nothing/x", parcel.NotFound, func(*pushtest.Store, *pushtest.Hub) {}},
		"no right":  {"s3://models/x", parcel.Denied, func(s *pushtest.Store, _ *pushtest.Hub) { s.ReadOnly = true }},
		"another region": {"s3://models/x", parcel.Region, func(*pushtest.Store, *pushtest.Hub) {
			t.Setenv("AWS_REGION", "mars-1")
		}},
		"no endpoint": {"s3://models/x", parcel.BadTarget, func(*pushtest.Store, *pushtest.Hub) {
			t.Setenv("AWS_ENDPOINT_URL_S3", "https://user:password@host")
		}},
		"no token": {"hf:starling/x", parcel.Credentials, func(*pushtest.Store, *pushtest.Hub) {
			t.Setenv("HF_TOKEN", "")
		}},
		"another token": {"hf:starling/x", parcel.Credentials, func(*pushtest.Store, *pushtest.Hub) {
			t.Setenv("HF_TOKEN", "hf_x")
		}},
		"no run":         {"ipfs", parcel.NoModel, func(*pushtest.Store, *pushtest.Hub) {}},
		"no right there": {"hf:starling/x", parcel.Denied, func(_ *pushtest.Store, h *pushtest.Hub) { h.ReadOnly = true }},
	} {
		store, hub := pushtest.NewStore(t, "models"), pushtest.NewHub(t)
		c.given(store, hub)
		var news []string
		ended := 0
		got := settled(t, Options{Dir: dir, Say: func(text string) { news = append(news, text) },
			Ended: func(api.Push) { ended++ }}, "", c.to)
		for _, p := range got {
			if p.To != c.to {
				continue
			}
			if p.State != record.Failed || p.Reason == nil || p.Reason.Code != c.code || p.Reason.Next == "" || ended != 1 {
				t.Errorf("%s: %+v, %+v", name, p, p.Reason)
			}
		}
		if len(news) != 1 || !strings.Contains(news[0], "starling model push "+dir) {
			t.Errorf("%s: said %q", name, news)
		}
		clean(t, dir, news...)
	}
	store := pushtest.NewStore(t, "models")
	if got := settled(t, Options{Dir: t.TempDir()}, "", "s3://models/x"); got[0].Reason.Code != parcel.NoModel {
		t.Errorf("%+v", got[0].Reason)
	}
	if os.Geteuid() != 0 {
		put(t, filepath.Join(dir, "LICENSE"), nil)
		if err := os.Chmod(filepath.Join(dir, "LICENSE"), 0); err != nil {
			t.Fatal(err)
		}
		if got := settled(t, Options{Dir: dir}, "", "s3://models/x"); got[0].Reason.Code != parcel.Disk {
			t.Errorf("%+v, %q", got[0].Reason, store.Requests())
		}
	}
}

// An unreachable store is asked again and again, ever less often, and does not keep a process from ending.
func TestStoreThatIsAway(t *testing.T) {
	pushtest.NewStore(t, "models")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	dir, _ := model(t, 100)
	waits := make(chan time.Duration)
	s, err := Open(Options{Dir: dir, Wait: func(d time.Duration) <-chan time.Time {
		waits <- d
		now := make(chan time.Time, 1)
		now <- time.Time{}
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add("", "s3://models/x"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { s.Run(ctx) })
	for want := time.Second; want < maxRetry; want *= 2 {
		if got := <-waits; got != want {
			t.Errorf("waited %s, want %s", got, want)
		}
	}
	if got := <-waits; got != maxRetry {
		t.Errorf("waited %s, want %s", got, maxRetry)
	}
	if s.Settle(ctx, time.Nanosecond) {
		t.Error("it is settled")
	}
	cancel()
	for len(waits) > 0 {
		<-waits
	}
	done := make(chan bool)
	go func() { over.Wait(); close(done) }()
	for open := true; open; {
		select {
		case <-waits:
		case <-done:
			open = false
		}
	}
	if p := s.Copies()[0]; p.State != record.Waiting || p.Reason == nil || p.Reason.Code != parcel.Unreachable {
		t.Errorf("%+v", p)
	}
}

func TestCheckpoints(t *testing.T) {
	store := pushtest.NewStore(t, "models")
	dir, _ := model(t, 100)
	files := func(text string) []hubfile.File {
		return []hubfile.File{hubfile.Text("model.safetensors", []byte(text)), hubfile.Text("config.json", []byte("{}"))}
	}
	var news []string
	s, err := Open(Options{Dir: dir, Retry: time.Microsecond, Say: func(text string) { news = append(news, text) }})
	if err != nil {
		t.Fatal(err)
	}
	to := []string{"s3://models/x"}
	for step := 10; step <= 40; step += 10 { // the store is away: the first two are given up
		s.Checkpoint(step, to, files("a"))
	}
	s.Rewind(30)
	s.Checkpoint(40, to, files("b"))
	if got := s.Copies(); len(got) != 2 || got[0].From != "checkpoints/checkpoint-30" ||
		got[1].From != "checkpoints/checkpoint-40" {
		t.Errorf("%+v", got)
	}
	if len(news) != 2 || !strings.HasPrefix(news[0], "warning: checkpoint-10 is not copied") {
		t.Errorf("said %q", news)
	}
	if got := settled(t, Options{Dir: dir}, "", to...); len(got) != 3 || got[2].From != "" {
		t.Errorf("%+v", got)
	}
	objects := store.Objects()
	for name, want := range map[string]string{"x/checkpoint-30/model.safetensors": "a",
		"x/checkpoint-40/model.safetensors": "b", "x/checkpoint-40/config.json": "{}"} {
		if string(objects[name].Bytes) != want {
			t.Errorf("%s is %q, want %q", name, objects[name].Bytes, want)
		}
	}
	if _, there := objects["x/checkpoint-20/model.safetensors"]; there || objects["x/config.json"].Bytes == nil {
		t.Error("a checkpoint that was given up is sent, or the model is not")
	}
	left, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left on the disk: %q, %v", left, err)
	}
}

// A server copies each run below its name, and continues what an earlier server has left.
func TestKeeper(t *testing.T) {
	store := pushtest.NewStore(t, "models")
	store.Fault = func(r *http.Request, _ int) int {
		if r.Method == http.MethodHead {
			return 0
		}
		return http.StatusServiceUnavailable
	}
	root := t.TempDir()
	for _, name := range []string{"first", "other"} {
		put(t, filepath.Join(root, name, "model.safetensors"), []byte(name))
	}
	said := make(chan string, 10)
	o := Options{Dir: root, Retry: time.Microsecond, Say: func(text string) { said <- text }}
	k, err := NewKeeper(t.Context(), o, "s3://models/runs")
	if err != nil {
		t.Fatal(err)
	}
	k.Take(filepath.Join(root, "first"))
	if text := <-said; !strings.HasPrefix(text, "warning: the model is not at s3://models/runs/first yet") {
		t.Errorf("said %q", text)
	}
	k.Close()
	store.Fault = nil
	if k, err = NewKeeper(t.Context(), o, "s3://models/runs"); err != nil {
		t.Fatal(err)
	}
	if text := <-said; !strings.HasPrefix(text, "the model is at ") {
		t.Errorf("said %q", text)
	}
	k.Close()
	if got := store.Objects(); len(got) != 1 || string(got["runs/first/model.safetensors"].Bytes) != "first" {
		t.Errorf("%+v", got)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(root, "none"))
	if _, err := NewKeeper(t.Context(), o, "s3://models/runs"); err == nil || Reason(err).Code != parcel.Credentials {
		t.Errorf("a server without credentials begins: %v", err)
	}
}

func TestReadsNothingElse(t *testing.T) {
	for _, text := range []string{`{"pushes":[{"to":"file:///etc"}]}`, `{"pushes":[null]}`, `{`,
		`{"pushes":[{"to":"s3://models/x","from":"../elsewhere"}]}`,
		`{"pushes":[{"to":"s3://models/x","from":"checkpoints/checkpoint-../1"}]}`} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, record.File), []byte(text))
		if _, err := Open(Options{Dir: dir}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	if all, err := record.Read(t.TempDir()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
