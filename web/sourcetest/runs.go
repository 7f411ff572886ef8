package sourcetest

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/source"
)

// Store is a source.Runs in memory.
type Store struct {
	mu   sync.Mutex
	runs map[string]*source.History
	err  error
}

// Fail has List fail from now on.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// List implements source.Runs.
func (s *Store) List(context.Context) ([]api.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []api.Job
	for _, h := range s.runs {
		all = append(all, h.Job)
	}
	slices.SortFunc(all, func(a, b api.Job) int { return strings.Compare(a.ID, b.ID) })
	return all, s.err
}

// History implements source.Runs.
func (s *Store) History(_ context.Context, id string) (*source.History, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.runs[id]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("%w: %s", failure.ErrNotFound, id)
}

// Log implements source.Runs.
func (s *Store) Log(_ context.Context, id string, from int64, limit int) (api.Log, error) {
	return api.Log{Lines: []string{"one", "two"}, From: 0, To: 8, Size: 8}, nil
}

// Files implements source.Runs.
func (s *Store) Files(context.Context, string) ([]api.File, error) {
	return []api.File{{Name: "model.safetensors", Kind: "model", Bytes: 12}, {Name: "report.html", Kind: "record",
		Bytes: 3}}, nil
}

type content struct{ *strings.Reader }

func (content) Close() error { return nil }

// Open implements source.Runs.
func (s *Store) Open(_ context.Context, id, name string) (io.ReadSeekCloser, api.File, error) {
	if (id != "first" || name != "adapter/config.json") && name != "job.yaml" {
		return nil, api.File{}, failure.ErrNotFound
	}
	return content{strings.NewReader("0123456789")}, api.File{Name: name, Bytes: 10, Modified: time.Unix(1000, 5)}, nil
}

// Put changes a run, or makes it, and gives it the next version.
func (s *Store) Put(id string, change func(h *source.History)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := source.History{}
	if h := s.runs[id]; h != nil {
		next = *h
	}
	change(&next)
	next.Version++
	next.Job.ID = id
	s.runs[id] = &next
}

// New returns a Store with a run that is done and one that is running.
func New() *Store {
	return &Store{runs: map[string]*source.History{"first": Run(30),
		"second": {Job: api.Job{ID: "second", Kind: "run", State: "running", Facts: []api.Fact{}}}}}
}

// Run is a run of some rounds of ten steps, with a receipt of every kind.
func Run(rounds int) *source.History {
	h := &source.History{Version: 1, Job: api.Job{ID: "first", Name: "first", Kind: "run", State: "done",
		Step: 10 * rounds, Steps: 10 * rounds, Round: rounds, Rounds: rounds,
		EvalLoss: Ptr(2.5), BudgetUzen: 100, PaidUzen: 60, FeeUzen: 3, RefundedUzen: 30, Started: time.Unix(1000, 0).UTC(),
		Spark: []float64{3, 2}, Facts: []api.Fact{{Name: "Model", Value: "gpt2"}}}}
	h.Metrics = append(h.Metrics, api.Metric{Kind: "round", EvalLoss: Ptr(5.5), Workers: 4})
	for round := 1; round <= rounds; round++ {
		for i := range 10 {
			step := 10*(round-1) + i + 1
			h.Metrics = append(h.Metrics, api.Metric{Kind: "step", Round: uint32(round), Step: uint32(step),
				Loss: 2 + 3/math.Sqrt(float64(step)), LearningRate: 1e-3, Tokens: uint64(100 * step), Workers: 4,
				GradNorm: Ptr(0.5)})
		}
		h.Metrics = append(h.Metrics, api.Metric{Kind: "round", Round: uint32(round), Step: uint32(10 * round),
			EvalLoss: Ptr(2 + 1/float64(round)), Tokens: uint64(1000 * round),
			Seconds: 2, BytesUp: 7, BytesDown: 9, Workers: 4, PaidUzen: uint64(5 * round), TokensPerSecond: 500,
			GradNorm: Ptr(0.5), Agreement: Ptr(0.9)})
		h.Lineage = append(h.Lineage, api.Checkpoint{Round: round, StateRoot: fmt.Sprintf("%064x", round*7919),
			Checkpoint: "bafy", Updates: []string{"a"}, Signers: []api.Signer{{ID: "ann", PublicKey: []byte{1},
				Signature: []byte{2}}, {ID: "bob", PublicKey: []byte{3}, Signature: []byte{4}}}})
		h.Receipts = append(h.Receipts,
			api.Receipt{Seq: uint64(2 * round), Round: round, Who: "ann", Role: "worker", Kind: "work", Amount: 5,
				Reason: "verified", Why: "the work is verified", Arithmetic: []string{"5"}},
			api.Receipt{Seq: uint64(2*round + 1), Round: round, Who: "vic", Role: "verifier", Kind: "audit", Amount: 2,
				Reason: "verified", Why: "the work is verified", Arithmetic: []string{}})
	}
	h.Receipts = append(h.Receipts, api.Receipt{Seq: 999, Round: 1, Who: "bob", Role: "worker", Kind: "work",
		Reason: "wrong_work", Why: "a verdict found the work wrong", Fix: "check the memory", Arithmetic: []string{},
		Dispute: Ptr(0)},
		api.Receipt{Seq: 1000, Round: 1, Who: "bob", Role: "worker", Kind: "slash", Amount: 50, Reason: "wrong_work",
			Arithmetic: []string{}}, api.Receipt{Seq: 1001, Who: "cas", Kind: "refund", Amount: 30, Arithmetic: []string{}})
	h.Disputes = []api.Dispute{{Worker: "bob", Challenger: "vic", Round: 1, Verdict: "worker_lied",
		Log: []api.Move{{Height: 3, By: "verifier", What: "challenges"}}}}
	h.Samples = []api.Sample{{Round: 1, Step: 10, Prompt: "func ", Text: "main"}}
	return h
}

// Ptr returns a pointer to a value.
func Ptr[T any](v T) *T { return &v }
