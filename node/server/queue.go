package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/web/failure"
)

// jobQueue trains the jobs that are submitted to a server, one after another, each on an embedded network and in a
// folder of its own: source.Launcher. Its state after a restart is read from these folders.
type jobQueue struct {
	root, data string // absolute: of the runs, and of the data
	version    string
	lib        *runs.RunStore
	log        *slog.Logger

	ctx      context.Context // of the server
	planning chan struct{}   // held while a plan is made
	wake     chan struct{}   // holds something when the queue may have more

	mu    sync.Mutex
	keys  map[string]string     // identifiers of runs by their Submitted.Key
	tasks map[string]*queuedJob // that wait or are trained, by the identifier of their run
	queue []*queuedJob          // that wait, in order
}

// Limits of a launcher.
const (
	maxQueue      = 100
	maxName       = 60
	cancelTimeout = 10 * time.Second // for a run to stop
)

func newJobQueue(ctx context.Context, lib *runs.RunStore, dir string, o dashboard.WebOptions) (*jobQueue, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return nil, err
	}
	l := &jobQueue{root: root, data: data, version: o.Version, lib: lib, log: o.Log, ctx: ctx,
		planning: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		keys: map[string]string{}, tasks: map[string]*queuedJob{}}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		var had runs.Submitted
		if keystore.ReadJSON(filepath.Join(root, e.Name(), runs.FileSubmitted), &had) == nil && had.Key != "" {
			l.keys[had.Key] = e.Name()
		}
	}
	return l, err
}

// read checks the file of a job as far as that takes no time, and counts the steps of one whose length is in epochs.
func (l *jobQueue) read(s api.Spec) (*job.Job, error) {
	// The folder of all runs counts as the output folder: no pattern finds data in what other jobs left.
	set := append(slices.Clone(s.Overrides), "output.dir="+strconv.Quote(l.root))
	j, err := job.Parse([]byte(s.Config), filepath.Join(l.data, rundir.FileJob), set...)
	if err == nil {
		err = j.Confine(l.root)
	}
	if err == nil {
		err = j.CheckFiles()
	}
	if err == nil {
		j, err = dataset.InSteps(j, nil)
	}
	if err != nil {
		return nil, l.refusal(err)
	}
	return j, nil
}

// Plan implements source.Launcher. It makes the program, tokenizes the data and measures an inner step, one plan at a
// time, and starts nothing.
func (l *jobQueue) Plan(ctx context.Context, s api.Spec) (api.Plan, error) {
	j, err := l.read(s)
	if err != nil {
		return api.Plan{}, err
	}
	select {
	case l.planning <- struct{}{}:
		defer func() { <-l.planning }()
	case <-ctx.Done():
		return api.Plan{}, ctx.Err()
	}
	b, err := prepare.Outline(j)
	if err != nil {
		return api.Plan{}, l.refusal(err)
	}
	defer b.Close()
	p, err := plan.Of(b)
	if err != nil {
		return api.Plan{}, l.refusal(err)
	}
	if err := p.MeasureStep(b); err != nil {
		return api.Plan{}, l.refusal(err)
	}
	if err := p.PlaceHere(b); err != nil {
		return api.Plan{}, l.refusal(err)
	}
	made := api.Plan{ID: p.ID, Name: p.Name, Steps: p.Steps, Rounds: p.Rounds, Workers: p.Workers, Tokens: p.Tokens,
		Flops: p.Flops, Parameters: p.Parameters,
		DiskBytes: p.Disk, RoundBytes: p.Received, CostUzen: p.Most, BudgetUzen: p.Budget, Facts: runs.Facts(j),
		Notes:       p.Notes,
		StepSeconds: p.StepTime, Seconds: p.Seconds, MemoryBytes: p.Memory, Placement: *p.Placement,
		Rejections: []api.Rejection{}}
	if at := p.Placement; at.Fits == "no" {
		made.Rejections = append(made.Rejections, api.Rejection{ID: "server", Why: string(market.MemoryTooSmall),
			Text: fmt.Sprintf("its memory is too small: %d bytes are free, and %d workers and %d verifiers at work take %d",
				at.FreeBytes, at.Workers, at.Verifiers, at.MemoryBytes)})
	}
	return made, nil
}

// Submit implements source.Launcher. The folder of the job exists before Submit returns, so that a server that ends
// then has lost no job.
func (l *jobQueue) Submit(_ context.Context, key string, s api.Submission) (string, error) {
	j, err := l.read(s.Spec)
	if err != nil {
		return "", err
	}
	spec, err := json.Marshal(s.Spec)
	if err != nil {
		return "", err
	}
	want := runs.Submitted{Spec: digestOf(string(spec)), Set: j.Overrides}
	if key != "" {
		want.Key = digestOf(key)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	id, err := l.known(want)
	if err != nil || id != "" && (l.tasks[id] != nil ||
		errors.Is(rundir.Probe(filepath.Join(l.root, id)), rundir.ErrFinished)) {
		return id, err
	}
	if len(l.queue) >= maxQueue {
		return "", &failure.Error{Status: http.StatusTooManyRequests, Code: "QUEUE_FULL",
			Detail: fmt.Sprintf("%d jobs wait, as many as may", len(l.queue)),
			Fix:    "wait for one to end, or cancel one", Retry: 30 * time.Second}
	}
	if id == "" {
		if id, err = l.place(s.Name, j.Name); err != nil {
			return "", err
		}
	}
	return id, l.enqueue(&queuedJob{id: id, dir: filepath.Join(l.root, id), asked: want, job: j, plan: s.Plan,
		done: make(chan struct{})})
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// known is the run that a key stands for, or "". The caller holds the lock.
func (l *jobQueue) known(want runs.Submitted) (id string, err error) {
	id = l.keys[want.Key]
	var had runs.Submitted
	if id == "" || want.Key == "" || keystore.ReadJSON(filepath.Join(l.root, id, runs.FileSubmitted), &had) != nil {
		return "", nil // or its folder was removed
	}
	if had.Spec != want.Spec {
		return "", &failure.Error{Status: http.StatusUnprocessableEntity, Code: "KEY_REUSED",
			Detail: "the Idempotency-Key stands for another job", Fix: "send another key"}
	}
	return id, nil
}

var unnamed = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// place makes the folder of a new run, and returns its identifier.
func (l *jobQueue) place(asked, name string) (string, error) {
	if asked != "" {
		name = asked
	}
	name = strings.Trim(unnamed.ReplaceAllString(name, "-"), "-.")
	if name = strings.TrimRight(name[:min(len(name), maxName)], "-."); name == "" {
		name = "job"
	}
	for n := 1; n <= 1000; n++ {
		id := name
		if n > 1 {
			id = fmt.Sprintf("%s-%d", name, n)
		}
		if err := os.Mkdir(filepath.Join(l.root, id), 0o755); !errors.Is(err, os.ErrExist) {
			return id, err
		}
	}
	return "", &failure.Error{Status: http.StatusConflict, Code: "NAME_TAKEN",
		Detail: "there are a thousand jobs of that name", Fix: "give another name"}
}

// enqueue writes down what was asked for and puts it at the end of the queue. The caller holds the lock.
func (l *jobQueue) enqueue(t *queuedJob) error {
	if err := errors.Join(keystore.WriteFile(filepath.Join(t.dir, rundir.FileJob), t.job.Source),
		keystore.WriteJSON(filepath.Join(t.dir, runs.FileSubmitted), t.asked)); err != nil {
		return err
	}
	var err error
	if t.detach, err = l.lib.Attach(t.dir, t); err != nil {
		return err
	}
	t.ctx, t.cancel = context.WithCancel(l.ctx)
	l.tasks[t.id] = t
	l.queue = append(l.queue, t)
	if t.asked.Key != "" {
		l.keys[t.asked.Key] = t.id
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// run trains what is submitted until the server ends, and returns when nothing is trained any more.
func (l *jobQueue) run() {
	for {
		for t := l.next(); t != nil && l.ctx.Err() == nil; t = l.next() {
			l.train(t)
		}
		select {
		case <-l.ctx.Done():
			return
		case <-l.wake:
		}
	}
}

func (l *jobQueue) next() *queuedJob {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	t := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	return t
}

func (l *jobQueue) train(t *queuedJob) {
	t.begin()
	_, err := node.Train(t.ctx, consumer.Options{Job: t.job, Dir: t.dir, Plan: t.plan, Resume: true, Version: l.version,
		Shown: t.show})
	switch {
	case err == nil || l.ctx.Err() != nil:
	case t.ctx.Err() != nil:
		t.stopped()
	default:
		why := l.reason(err)
		t.asked.State, t.asked.Reason = "failed", &why
		l.log.Error("a job failed", "run", t.id, "err", err)
	}
	l.end(t)
}

// stopped records that a user paused or cancelled the job.
func (t *queuedJob) stopped() {
	t.mu.Lock()
	pausing := t.pausing
	t.mu.Unlock()
	again := t.asked.Again(t.id, t.job)
	if pausing {
		t.asked.State, t.asked.Reason = "stopped", &api.Reason{Code: "paused", Text: "it was paused; what was attested " +
			"stays", Next: again}
		return
	}
	setCancelled(&t.asked, again)
}

func setCancelled(s *runs.Submitted, again string) {
	s.State, s.Reason = "stopped", &api.Reason{Code: codeCancelled, Text: "it was cancelled; what was attested stays",
		Next: again}
}

const codeCancelled = "cancelled"

// end writes down how a task ended before anybody can see that it did.
func (l *jobQueue) end(t *queuedJob) {
	if t.asked.State != "" {
		if err := keystore.WriteJSON(filepath.Join(t.dir, runs.FileSubmitted), t.asked); err != nil {
			l.log.Error("how a job ended is not kept", "run", t.id, "err", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.cancel()
	t.detach()
	delete(l.tasks, t.id)
	close(t.done)
}

// Cancel implements source.Launcher. It waits for a moment until the run has stopped.
func (l *jobQueue) Cancel(ctx context.Context, id string) error { return l.halt(ctx, id, false) }

// Pause implements source.Launcher. It waits as Cancel does.
func (l *jobQueue) Pause(ctx context.Context, id string) error { return l.halt(ctx, id, true) }

func (l *jobQueue) halt(ctx context.Context, id string, pause bool) error {
	l.mu.Lock()
	t := l.tasks[id]
	at := slices.Index(l.queue, t)
	if at >= 0 {
		l.queue = slices.Delete(l.queue, at, at+1)
	}
	l.mu.Unlock()
	switch {
	case t == nil:
		return l.idle(ctx, id, pause)
	case at >= 0:
		t.pause(pause)
		t.stopped()
		l.end(t)
		return nil
	}
	t.pause(pause)
	t.cancel()
	patience := time.NewTimer(cancelTimeout)
	defer patience.Stop()
	select {
	case <-t.done:
		return l.idle(ctx, id, pause) // it may have ended by itself
	case <-ctx.Done():
	case <-patience.C: // it stops, and is shown when it has
	}
	return nil
}

// idle says why a run that is not a task cannot be stopped; nil: it has stopped already. One that was paused, or
// stopped with a server, is cancelled for good where that is asked for.
func (l *jobQueue) idle(ctx context.Context, id string, pause bool) error {
	h, err := l.lib.History(ctx, id)
	if err != nil {
		return err
	}
	if h.Job.State == "stopped" {
		over := h.Job.Reason != nil && h.Job.Reason.Code == codeCancelled
		switch path := filepath.Join(l.root, id, runs.FileSubmitted); {
		case pause && over:
			return &failure.Error{Status: http.StatusConflict, Code: "JOB_OVER", Detail: "the job is cancelled",
				Fix: "resume it to continue"}
		case pause || over:
			return nil
		default:
			var asked runs.Submitted
			if keystore.ReadJSON(path, &asked) != nil {
				return nil // it was not submitted to this server
			}
			j, _ := job.Load(filepath.Join(l.root, id, rundir.FileJob)) // nil: it is not a tuning
			setCancelled(&asked, asked.Again(id, j))
			err := keystore.WriteJSON(path, asked)
			l.lib.Again(id)
			return err
		}
	}
	if h.Job.State == "running" {
		return &failure.Error{Status: http.StatusConflict, Code: "JOB_ELSEWHERE", Detail: "another process trains the job",
			Fix: "stop that process with Ctrl-C"}
	}
	return &failure.Error{Status: http.StatusConflict, Code: "JOB_OVER", Detail: "the job is " + h.Job.State,
		Fix: "there is nothing to cancel"}
}

// refusal turns an error about a job into an answer.
func (l *jobQueue) refusal(err error) error {
	var wrong *problem.ErrorList
	if !errors.As(err, &wrong) {
		why := l.reason(err)
		return &failure.Error{Status: http.StatusUnprocessableEntity, Code: why.Code, Detail: why.Text, Fix: why.Next}
	}
	f := &failure.Error{Status: http.StatusUnprocessableEntity, Code: "JOB_INVALID", Detail: "the job file has errors",
		Fix: "see problems, which has their places"}
	if len(wrong.Errors) == 1 {
		f.Detail = "the job file has an error"
	}
	for _, e := range wrong.Errors {
		code, place, what, why, fix := e.Explain()
		f.Problems = append(f.Problems, api.ProblemPlace{Code: code, Place: l.redactPaths(place), What: l.redactPaths(what),
			Why: l.redactPaths(why), Fix: l.redactPaths(fix)})
	}
	return f
}

// reason says why a job could not be trained.
func (l *jobQueue) reason(err error) api.Reason {
	var wrong *problem.ErrorList
	var halted *consumer.HaltedError
	var room *member.ShortageError
	var budget *prepare.BudgetError
	var diverged *train.DivergedError
	r := api.Reason{Code: "TRAINING_FAILED", Text: l.redactPaths(err.Error()), Next: "see the log of the job"}
	switch {
	case errors.As(err, &wrong):
		r.Code, r.Next = wrong.Errors[0].Code, l.redactPaths(wrong.Errors[0].Fix)
	case errors.As(err, &halted):
		r.Code, r.Next = "RUN_HALTED", halted.Fix()
	case errors.As(err, &diverged):
		r.Code, r.Next = "RUN_DIVERGED", "lower training.learning_rate or strategy.outer_optimizer.lr, or warm up longer"
	case errors.As(err, &room):
		r.Code, r.Next = "STORE_TOO_SMALL", "make room on the disk of the server"
	case errors.As(err, &budget):
		r.Code, r.Next = "BUDGET_TOO_SMALL", budget.Fix()
	case errors.Is(err, prepare.ErrMemory):
		r.Code, r.Next = "MEMORY_TOO_SMALL", "train a smaller model, or with fewer workers"
	case errors.Is(err, plan.ErrPlanStale):
		r.Code, r.Next = "PLAN_STALE", "plan it again"
	case errors.Is(err, rundir.ErrOtherJob):
		r.Code, r.Next = "DATA_CHANGED", "bring the data back that the run began with, or submit the job with another "+
			"Idempotency-Key"
	case errors.Is(err, rundir.ErrInUse):
		r.Code, r.Next = "JOB_ELSEWHERE", "wait for the process that trains it"
	}
	return r
}

// redactPaths takes the folders of this machine out of a text that goes to others.
func (l *jobQueue) redactPaths(text string) string {
	text = strings.ReplaceAll(text, l.data+string(filepath.Separator), "")
	return strings.ReplaceAll(strings.ReplaceAll(text, l.data, "the server's folder of data"),
		l.root+string(filepath.Separator), "")
}

// queuedJob is a job that waits or is trained: runs.Live.
type queuedJob struct {
	id, dir string
	asked   runs.Submitted
	job     *job.Job
	plan    string
	ctx     context.Context
	cancel  context.CancelFunc
	detach  func()
	done    chan struct{} // closed when it is over

	mu      sync.Mutex
	begun   bool
	pausing bool      // it continues when it is submitted again
	live    runs.Live // nil: it prepares
}

// pause says whether it is stopped for now only.
func (t *queuedJob) pause(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pausing = yes
}

func (t *queuedJob) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = true
}

func (t *queuedJob) show(live runs.Live) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = live
}

// Progress implements runs.Live.
func (t *queuedJob) Progress() runs.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.begun:
		return runs.Progress{Queued: true, Why: &api.Reason{Code: "queued", Text: "jobs are trained one after another, " +
			"and its turn has not come"}}
	case t.live == nil:
		return runs.Progress{Phase: "preparing", Why: &api.Reason{Code: "preparing", Text: "the data is read and tokenized"}}
	}
	return t.live.Progress()
}

// Books implements runs.Live.
func (t *queuedJob) Books(ctx context.Context) (runs.Payments, error) {
	t.mu.Lock()
	live := t.live
	t.mu.Unlock()
	if live == nil {
		return runs.Payments{}, dashboard.ErrNoChain
	}
	return live.Books(ctx)
}
