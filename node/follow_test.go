package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/internal/pushtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/localnet"
	"github.com/starling-network/starling/node/notify"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
)

// hook starts a server that receives events.
func hook(t *testing.T) (url string, events chan notify.Event) {
	t.Helper()
	events = make(chan notify.Event, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e notify.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		if signed := r.Header.Get("webhook-signature") != ""; signed != (os.Getenv(notify.SecretVariable) != "") {
			t.Errorf("signed: %t", signed)
		}
		events <- e
	}))
	t.Cleanup(s.Close)
	return s.URL, events
}

// with is a job with other settings.
func with(t *testing.T, j *job.Job, set ...string) *job.Job {
	t.Helper()
	j, err := job.Load(j.Path, set...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A run is recorded by the MLflow server, and the webhook receives its end. An unreachable server costs a warning.
func TestFollowed(t *testing.T) {
	t.Parallel()
	to, events := hook(t)
	var batches, ended atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/"); path {
		case "experiments/get-by-name":
			_, _ = w.Write([]byte(`{"experiment": {"experiment_id": "0"}}`))
			return
		case "runs/create":
			_, _ = w.Write([]byte(`{"run": {"info": {"run_id": "r"}}}`))
			return
		case "runs/log-batch":
			batches.Add(1)
		case "runs/update":
			ended.Add(1)
		default:
			t.Errorf("%s is asked for", path)
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	j := with(t, jobtest.Small(t), "notify.webhook="+to, "tracking.mlflow.uri="+server.URL)
	s := mustTrain(t, consumer.Options{Job: j, Dir: filepath.Join(t.TempDir(), "out"),
		Say: func(text string) {
			if strings.HasPrefix(text, "warning: ") {
				t.Error(text)
			}
		}})
	if batches.Load() < 2 || ended.Load() != 1 {
		t.Errorf("%d batches of metrics, ended %d times", batches.Load(), ended.Load())
	}
	close(events)
	var last notify.Event
	for e := range events {
		last = e
	}
	if last.Event != notify.Finished || last.Job != s.Job || last.Step != 12 || last.Rounds != 3 || last.Loss == nil ||
		last.PaidUzen != s.PaidUzen+s.FeeUzen {
		t.Errorf("%+v, of %+v", last, s)
	}
}

// The webhook receives the failure of a run that cannot begin, even while the tracking server is unreachable.
func TestFailureIsTold(t *testing.T) {
	t.Parallel()
	to, events := hook(t)
	j := with(t, jobtest.Small(t), "notify.webhook="+to, "notify.on=[failed]", "tracking.mlflow.uri=http://127.0.0.1:1")
	warned := make(chan string, 10)
	_, err := Train(t.Context(), consumer.Options{Job: j, Dir: filepath.Join(t.TempDir(), "out"),
		Network: "http://127.0.0.1:1", Home: filepath.Join(t.TempDir(), "home"), Say: func(text string) { warned <- text }})
	if err == nil {
		t.Fatal("there is no network, and no error")
	}
	close(events)
	e, ok := <-events
	if !ok || e.Event != notify.Failed || !strings.Contains(e.Text, "small failed in round 0 of 3") {
		t.Fatalf("%+v", e)
	}
	if text := <-warned; !strings.HasPrefix(text, "warning: mlflow: ") {
		t.Error(text)
	}
}

func TestPauseIsTold(t *testing.T) {
	t.Parallel()
	to, events := hook(t)
	j := with(t, jobtest.Small(t), "notify.webhook="+to)
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rundir.OpenOutDir(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	began := make(chan bool, 1)
	opt := consumer.Options{Job: j, Progress: func(p consumer.Progress) {
		if p.Phase == "training" {
			select {
			case began <- true:
			default:
			}
		}
	}}
	opt.Notify = notify.Open(notify.Config{URL: to, On: j.Notify.On, Failed: func(err error) { t.Error(err) }})
	defer opt.Notify.Close()
	if err := consumer.Prepare(out, b, opt); err != nil {
		t.Fatal(err)
	}
	n, err := localnet.Start(t.Context(), out, b, opt, instrument.New("", "consumer"))
	if err != nil {
		t.Fatal(err)
	}
	order, err := b.LocalOrder()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, err := n.RunJob(ctx, order)
		over <- err
	}()
	<-began
	if err := n.Client().Market.PauseJob(ctx, b.JobID()); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Event != notify.Paused || e.Job != b.JobID() || e.Round == 3 {
		t.Errorf("%+v", e)
	}
	if err := n.Client().Market.ResumeJob(ctx, b.JobID()); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
}

// The model of a run, and its saved checkpoints, arrive at a bucket, a hub and a pinning service; a store that
// refuses costs a warning. The copies equal the folder, and no file that is written has a credential.
func TestCopied(t *testing.T) {
	to, events := hook(t)
	store, hub, pins := pushtest.NewStore(t, "models"), pushtest.NewHub(t), pushtest.NewPinService(t)
	j := with(t, jobtest.Small(t), "notify.webhook="+to, "notify.on=[pushed, push_failed]", "checkpoint.every_steps=4",
		"output.push=[{to: s3://models/small, checkpoints: true}, hf:starling/small, ipfs, s3://nothing/there]")
	dir := filepath.Join(t.TempDir(), "out")
	var warnings []string
	s := mustTrain(t, consumer.Options{Job: j, Dir: dir, Say: func(text string) {
		if strings.HasPrefix(text, "warning: ") {
			warnings = append(warnings, text)
		}
	}})
	if len(warnings) != 2 || !strings.Contains(warnings[0], "there is no bucket nothing") ||
		!strings.Contains(warnings[1], "starling model push "+dir) {
		t.Errorf("warned %q", warnings)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	objects, repo := store.Objects(), hub.Repo("starling/small")
	for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json", "README.md", "summary.json"} {
		if text := read(name); string(objects["small/"+name].Bytes) != text || repo == nil ||
			string(repo.Files[name]) != text {
			t.Errorf("%s is another", name)
		}
	}
	for _, step := range []int{4, 8} {
		at := fmt.Sprintf("small/checkpoint-%d/model.safetensors", step)
		if b := objects[at].Bytes; len(b) != len(read("model.safetensors")) || string(b) == read("model.safetensors") {
			t.Errorf("%s has %d bytes", at, len(b))
		}
	}
	if _, last := objects["small/checkpoint-12/model.safetensors"]; last {
		t.Error("the last checkpoint is copied twice")
	}
	lines, err := rundir.ParseLineage(filepath.Join(dir, rundir.FileLineage), s.Job)
	if err != nil || len(lines) != 3 {
		t.Fatal(lines, err)
	}
	if name, ok := pins.Pinned(lines[2].Checkpoint); !ok || name != "small" {
		t.Errorf("the last checkpoint is not pinned: %q", name)
	}
	close(events)
	seen := map[string]int{}
	for e := range events {
		seen[e.Event+" "+e.Target]++
		if e.Job != s.Job || e.Text == "" || e.Steps != 12 {
			t.Errorf("%+v", e)
		}
	}
	if want := map[string]int{"pushed s3://models/small": 3, "pushed hf:starling/small": 1,
		"pushed ipfs": 1, "push_failed s3://nothing/there": 1}; !maps.Equal(seen, want) {
		t.Errorf("told %v, want %v", seen, want)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{pushtest.Access, pushtest.Secret, pushtest.Session, pushtest.Token,
			pushtest.PinToken} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s has a credential", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The webhook receives that a worker whose lie is convicted is out of the run, signed with the secret of the
// environment.
func TestLostMemberIsTold(t *testing.T) {
	t.Setenv(notify.SecretVariable, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	to, events := hook(t)
	s := mustTrain(t, consumer.Options{Job: with(t, jobtest.Small(t), "notify.webhook="+to, "notify.on=[member_lost]"),
		Dir: filepath.Join(t.TempDir(), "out"), Dishonest: 1})
	close(events)
	var lost []notify.Event
	for e := range events {
		lost = append(lost, e)
	}
	if len(lost) != 1 || lost[0].Event != notify.MemberLost || s.SlashedUzen == 0 ||
		!strings.Contains(lost[0].Text, "lost the worker "+lost[0].Member) {
		t.Errorf("%+v, of %+v", lost, s)
	}
}
