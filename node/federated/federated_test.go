package federated_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/tensor"
	protocol "github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/prepare"
)

const file = `apiVersion: starling/v1
kind: FederatedJob
name: words
model: {architecture: gpt2, config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 16}}
datasets: [{path: "*.txt"}]
sequence_len: 16
val_set_size: 0.2
training: {max_steps: 12, global_batch_size: 4, learning_rate: 1.0e-2}
strategy: {method: fedavg, sync_steps: 4, round_timeout: 60s}
federated: {owners: 4, min_cohort: 3, clip: 10}
`

// coordinator serves the job of a file in a folder.
func coordinator(t testing.TB, dir string, set ...string) (*federated.Coordinator, *httptest.Server) {
	t.Helper()
	return coordinatorOf(t, federated.Options{Dir: dir}, set...)
}

func coordinatorOf(t testing.TB, opt federated.Options, set ...string) (*federated.Coordinator, *httptest.Server) {
	t.Helper()
	return coordinatorOfFile(t, file, func(data string) {
		text := strings.Repeat("a bird sings. ", 200)
		if err := os.WriteFile(filepath.Join(data, "a.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}, opt, set...)
}

// coordinatorOfFile is that of a job file, with a sample that a function writes into its folder.
func coordinatorOfFile(t testing.TB, text string, sample func(data string), opt federated.Options,
	set ...string) (*federated.Coordinator, *httptest.Server) {
	t.Helper()
	data := t.TempDir()
	path := filepath.Join(data, "job.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	sample(data)
	j, err := job.ReadFederated(path, set...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	opt.Phase, opt.Threads, opt.Say = 20*time.Second, 1, func(s string) { t.Log(s) }
	c, err := federated.New(b, opt)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(wire.Handler(c, c.Job(), wire.Wall{}))
	t.Cleanup(func() { s.Close(); _ = b.Close() })
	return c, s
}

// one is an owner with data of its own.
func one(t *testing.T, i int, url string) owner.Options {
	t.Helper()
	data := t.TempDir()
	text := strings.Repeat(fmt.Sprintf("the bird of owner %d sings. ", i), 100)
	if err := os.WriteFile(filepath.Join(data, "own.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := owner.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return owner.Options{URL: url, HTTP: http.DefaultClient, Home: h, Data: data, Threads: 1,
		Budget: owner.Budget{Unit: protocol.OfOwner, Delta: 1e-5},
		Retry:  10 * time.Second, Say: func(s string) { t.Log(i, s) }}
}

// Four owners train a model that none of them shows data for, and the files of the run say what it cost.
func TestOwnersTrain(t *testing.T) {
	dir := t.TempDir()
	c, s := coordinator(t, dir, "federated.noise={multiplier: 0.001}")
	var running sync.WaitGroup
	var all []owner.Options
	for i := range 4 {
		all = append(all, one(t, i, s.URL))
		running.Go(func() {
			r, err := owner.Join(context.Background(), all[i])
			if err != nil || r.Sent != 3 || r.Lost != 0 {
				t.Errorf("owner %d: %+v, %v", i, r, err)
			}
		})
	}
	r, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.Linger(context.Background(), 10*time.Second)
	running.Wait()
	if r.Rounds != 3 || r.Void != 0 || r.MinCohort != 4 || r.Owners != 4 || !(*r.FinalLoss < *r.FirstLoss) {
		t.Errorf("%+v", r)
	}
	if r.Epsilon == nil || *r.Epsilon < 1000 {
		t.Errorf("epsilon %v of nearly no noise", r.Epsilon)
	}
	for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json", federated.FileReport} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	// the same job again: each owner has answered all of its rounds
	again := all[0]
	again.Epsilon = 1
	if _, err := owner.Join(context.Background(), again); !errors.Is(err, owner.ErrBudget) {
		t.Errorf("a budget of 1: %v", err)
	}
}

// A coordinator that was cut off continues with the round after the one under way.
func TestCutOffCoordinatorContinues(t *testing.T) {
	dir := t.TempDir()
	c, _ := coordinator(t, dir)
	state := map[string]any{"job": c.Job().String(), "owners": []string{}, "begun": 0}
	b, _ := json.Marshal(state)
	if err := os.WriteFile(filepath.Join(dir, federated.FileState), b, 0o644); err != nil {
		t.Fatal(err)
	}
	c, s := coordinator(t, dir)
	var running sync.WaitGroup
	for i := range 3 {
		o := one(t, i, s.URL)
		running.Go(func() {
			if r, err := owner.Join(context.Background(), o); err != nil || r.Sent != 2 {
				t.Errorf("owner %d: %+v, %v", i, r, err)
			}
		})
	}
	r, err := c.Run(context.Background())
	if err != nil || r.Rounds != 2 || r.Void != 1 || r.Epsilon != nil {
		t.Errorf("%+v, %v", r, err)
	}
	c.Linger(context.Background(), 10*time.Second)
	running.Wait()
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Error(err)
	}
}

func TestOwnersThatAreRefused(t *testing.T) {
	c, s := coordinator(t, t.TempDir())
	ctx := context.Background()
	for i := range 4 {
		if err := c.Join(ed25519.PublicKey(strings.Repeat(string(rune('a'+i)), 32))); err != nil {
			t.Fatal(err)
		}
	}
	o := one(t, 0, s.URL)
	if _, err := owner.Join(ctx, o); !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("a fifth owner: %v", err)
	}
	o.Epsilon = 8
	if _, err := owner.Join(ctx, o); !errors.Is(err, owner.ErrBudget) {
		t.Errorf("a budget without noise: %v", err)
	}
	o.Data = t.TempDir()
	if _, err := owner.Join(ctx, o); err == nil {
		t.Error("no data")
	}
	own := o.Home.Key.Public().(ed25519.PublicKey)
	listed, _ := coordinatorOf(t, federated.Options{Dir: t.TempDir(), Allowed: []ed25519.PublicKey{own}})
	if err := listed.Join(ed25519.PublicKey(strings.Repeat("a", 32))); !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("an owner that is not listed: %v", err)
	}
	if err := listed.Join(own); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"join", "message?round=0&phase=keys", "message?round=x&phase=keys"} {
		answer, err := http.Post(s.URL+"/federated/v1/"+path, "", strings.NewReader("garbage"))
		if err != nil || answer.StatusCode < 400 || answer.StatusCode >= 500 {
			t.Errorf("%s without a signature: %v, %v", path, answer, err)
		}
	}
}

// FuzzRequests sends bytes and headers of a stranger, and of an owner, to every address of the server.
func FuzzRequests(f *testing.F) {
	_, s := coordinator(f, f.TempDir())
	handler := s.Config.Handler
	f.Add("POST", "message", "round=0&phase=keys", "00", "00", "00", []byte("garbage"))
	f.Add("GET", "round", "from=0", strings.Repeat("0", 64), strings.Repeat("0", 64), strings.Repeat("0", 128), []byte{})
	f.Fuzz(func(t *testing.T, method, path, query, name, digest, signature string, body []byte) {
		r, err := http.NewRequest(method, "http://localhost/federated/v1/x", bytes.NewReader(body))
		if err != nil {
			return
		}
		r.URL.Path, r.URL.RawQuery = "/federated/v1/"+path, query
		r.Header = http.Header{"Starling-Owner": {name}, "Starling-Body": {digest}, "Starling-Signature": {signature}}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("status %d", w.Code)
		}
	})
}

func FuzzDecodeWeights(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 128, 127})
	f.Fuzz(func(t *testing.T, b []byte) {
		params := []*tensor.Tensor{tensor.New(tensor.Make(tensor.Float32, 2))}
		if federated.DecodeWeights(b, params) == nil && !bytes.Equal(federated.EncodeWeights(params), b) {
			t.Errorf("%x changed", b)
		}
	})
}
