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
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/push"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/server/planned"
	"github.com/starling-network/starling/node/server/refusal"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
)

// jobQueue trains the jobs that are submitted to a server, each in a folder of its own: one after another on an
// embedded network, or several at a time on the network of an account: source.Launcher. Its state after a restart is
// read from these folders.
type jobQueue struct {
	words   refusal.Words // with the folder of the runs, and that of the data
	version string
	lib     *runs.RunStore
	log     *slog.Logger
	payer   *payer       // orders jobs on a network; nil: they are trained on an embedded network
	most    int          // jobs that are trained or ordered at a time
	copies  *push.Keeper // copies the models of finished runs; nil: they stay here

	ctx      context.Context // of the server
	planning chan struct{}   // held while a plan is made, or a job prepared that will be ordered
	wake     chan struct{}   // holds something when the queue may have more

	mu    sync.Mutex
	keys  map[string]string     // identifiers of runs by their Submitted.Key
	tasks map[string]*queuedJob // that wait or are trained, by the identifier of their run
	queue []*queuedJob          // that wait, in order
	spent spending.ByToken
}

// Limits of a launcher.
const (
	maxQueue      = 100
	maxName       = 60
	cancelTimeout = 10 * time.Second // for a run to stop
)

// newJobQueue returns the queue of a folder of runs. With an account it continues those that the account had ordered,
// or was to order, when the last server ended.
func newJobQueue(ctx context.Context, lib *runs.RunStore, dir string, o dashboard.WebOptions,
	a *account.Account) (*jobQueue, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return nil, err
	}
	l := &jobQueue{words: refusal.Words{Root: root, Data: data}, version: o.Version, lib: lib, log: o.Log, ctx: ctx,
		planning: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		keys: map[string]string{}, tasks: map[string]*queuedJob{}, spent: spending.ByToken{}, most: 1}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if a != nil {
		l.most = max(1, o.Jobs)
		l.payer = &payer{Wallet: spending.Wallet{Chain: a.Chain, Network: o.Network}, account: a, log: l.log,
			texts: l.words, life: ctx, planning: l.planning}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	had := map[string]runs.Submitted{}
	for _, e := range entries {
		var s runs.Submitted
		if folder.ReadJSON(filepath.Join(root, e.Name(), runs.FileSubmitted), &s) != nil {
			continue
		}
		had[e.Name()] = s
		l.spent.Count(e.Name(), s)
		if s.Key != "" {
			l.keys[s.Key] = e.Name()
		}
	}
	return l, l.restore(had)
}

// read checks the file of a job as far as that takes no time, and counts the steps of one whose length is in epochs.
func (l *jobQueue) read(s api.Spec) (*job.Job, error) {
	// The folder of all runs counts as the output folder: no pattern finds data in what other jobs left.
	set := append(slices.Clone(s.Overrides), "output.dir="+strconv.Quote(l.words.Root))
	j, err := job.Parse([]byte(s.Config), filepath.Join(l.words.Data, rundir.FileJob), set...)
	if err == nil {
		err = j.Confine(l.words.Root)
	}
	if err == nil {
		err = j.CheckFiles()
	}
	if err == nil {
		j, err = dataset.InSteps(j, nil)
	}
	if err != nil {
		return nil, l.words.Refusal(err)
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
	if l.payer != nil {
		if j.Numerics, err = session.Numerics(ctx, l.payer.Network); err != nil {
			return api.Plan{}, l.payer.unanswered(err)
		}
	}
	b, err := prepare.Outline(j)
	if err != nil {
		return api.Plan{}, l.words.Refusal(err)
	}
	defer b.Close()
	p, err := plan.Of(b)
	if err != nil {
		return api.Plan{}, l.words.Refusal(err)
	}
	if err := p.MeasureStep(b); err != nil {
		return api.Plan{}, l.words.Refusal(err)
	}
	if l.payer != nil {
		if p.Quote, err = plan.QuoteOf(b, ctx, l.payer.Network); err != nil {
			return api.Plan{}, l.payer.unanswered(err)
		}
		p.In(p.Quote)
		return planned.OnNetwork(p, j), nil
	}
	if err := p.PlaceHere(b); err != nil {
		return api.Plan{}, l.words.Refusal(err)
	}
	made := planned.Here(p, j)
	made.StepSeconds, made.Seconds, made.MemoryBytes, made.Placement = p.StepTime, p.Seconds, p.Memory, *p.Placement
	if at := p.Placement; at.Fits == "no" {
		made.Rejections = append(made.Rejections, api.Rejection{ID: "server", Why: string(market.MemoryTooSmall),
			Text: fmt.Sprintf("its memory is too small: %d bytes are free, and %d workers and %d verifiers at work take %d",
				at.FreeBytes, at.Workers, at.Verifiers, at.MemoryBytes)})
	}
	return made, nil
}

// Submit implements source.Launcher. The folder of the job exists before Submit returns, so that a server that ends
// then has lost no job.
func (l *jobQueue) Submit(ctx context.Context, key string, s api.Submission) (string, error) {
	j, err := l.read(s.Spec)
	if err != nil {
		return "", err
	}
	spec, err := json.Marshal(s.Spec)
	if err != nil {
		return "", err
	}
	caller := access.CallerOf(ctx)
	want := runs.Submitted{Spec: digestOf(string(spec)), Set: j.Overrides, Plan: s.Plan, At: time.Now().UTC(),
		Token: caller.Token, Budget: uint64(j.Budget.MaxCost)}
	if key != "" {
		want.Key = digestOf(key)
	}
	if l.payer != nil {
		want.Account, want.Mark = l.payer.address(), newMark()
		if want.Coin, err = l.funded(ctx, want, j.Budget); err != nil {
			return "", err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	id, had, err := l.known(want)
	if err != nil {
		return "", err
	}
	if id != "" {
		if l.over(id, had) {
			return id, nil
		}
		if had.Account != want.Account {
			return "", refusal.Elsewhere(had.Account)
		}
		want.Mark, want.Ordered, want.Token, want.At, want.Coin = had.Mark, had.Ordered, had.Token, had.At, had.Coin
	}
	if err := l.spent.Allows(caller, id, want); err != nil {
		return "", err
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
	return id, l.enqueue(newTask(l.words.Root, id, want, j, had.State == stateStopped))
}

// over reports whether a run is under way or over, so that it is not begun again. The caller holds the lock.
func (l *jobQueue) over(id string, had runs.Submitted) bool {
	return l.tasks[id] != nil || had.Ordered && had.Spent != nil ||
		errors.Is(rundir.Probe(filepath.Join(l.words.Root, id)), rundir.ErrFinished)
}

func newTask(root, id string, asked runs.Submitted, j *job.Job, resumes bool) *queuedJob {
	t := &queuedJob{id: id, dir: filepath.Join(root, id), asked: asked, job: j, resumes: resumes,
		done: make(chan struct{})}
	if o := (rundir.OutDir{Path: t.dir}); asked.Ordered && o.ReadRun() == nil {
		t.stage, t.order = ordered, o.Run.ID
	}
	return t
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// known is the run that a key stands for, or "", and what was asked for with it. The caller holds the lock.
func (l *jobQueue) known(want runs.Submitted) (id string, had runs.Submitted, err error) {
	id = l.keys[want.Key]
	if id == "" || want.Key == "" || folder.ReadJSON(filepath.Join(l.words.Root, id, runs.FileSubmitted), &had) != nil {
		return "", runs.Submitted{}, nil // or its folder was removed
	}
	if had.Spec != want.Spec {
		return "", had, &failure.Error{Status: http.StatusUnprocessableEntity, Code: "KEY_REUSED",
			Detail: "the Idempotency-Key stands for another job", Fix: "send another key"}
	}
	return id, had, nil
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
		if err := os.Mkdir(filepath.Join(l.words.Root, id), 0o755); !errors.Is(err, os.ErrExist) {
			return id, err
		}
	}
	return "", &failure.Error{Status: http.StatusConflict, Code: "NAME_TAKEN",
		Detail: "there are a thousand jobs of that name", Fix: "give another name"}
}

// enqueue writes down what was asked for and puts it at the end of the queue. The caller holds the lock.
func (l *jobQueue) enqueue(t *queuedJob) error {
	if err := errors.Join(folder.WriteFile(filepath.Join(t.dir, rundir.FileJob), t.job.Source),
		folder.WriteJSON(filepath.Join(t.dir, runs.FileSubmitted), t.asked)); err != nil {
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
	l.spent.Count(t.id, t.asked)
	l.look()
	return nil
}

// look has the queue looked at.
func (l *jobQueue) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// fundsEvery is how often the coins of an account are looked at while jobs wait for them.
const fundsEvery = time.Second

// run trains what is submitted until the server ends, and returns when nothing is trained any more.
func (l *jobQueue) run() {
	var under sync.WaitGroup
	defer under.Wait()
	var again <-chan time.Time
	if l.payer != nil {
		ticker := time.NewTicker(fundsEvery)
		defer ticker.Stop()
		again = ticker.C
	}
	for {
		for t := l.next(); t != nil && l.ctx.Err() == nil; t = l.next() {
			under.Go(func() {
				l.train(t)
				l.look()
			})
		}
		select {
		case <-l.ctx.Done():
			return
		case <-l.wake:
		case <-again:
		}
	}
}

// next takes the job out of the queue that may begin, or nil.
func (l *jobQueue) next() *queuedJob {
	var free spending.Amounts
	if l.payer != nil {
		var ok bool
		if free, ok = l.lookAtFunds(); !ok {
			return nil
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 || len(l.tasks)-len(l.queue) >= l.most {
		sayFull(l.queue, l.most)
		return nil
	}
	at := 0
	if l.payer != nil {
		at = l.covered(free)
	}
	if at < 0 {
		return nil
	}
	t := l.queue[at]
	l.queue = slices.Delete(l.queue, at, at+1)
	t.begin(true)
	return t
}

func (l *jobQueue) train(t *queuedJob) {
	o := consumer.Options{Job: t.job, Dir: t.dir, Plan: t.asked.Plan, Resume: true, Version: l.version, Shown: t.show}
	var err error
	if l.payer == nil {
		_, err = node.Train(t.ctx, o)
	} else if err = l.payer.collect(t, o, l.look); errors.Is(err, errUnfunded) {
		l.putBack(t)
		return
	}
	switch {
	case l.ctx.Err() != nil:
	case err == nil:
		l.copies.Take(t.dir)
	case t.ctx.Err() != nil || t.cancelled():
		t.stopped()
	default:
		why := l.words.Reason(err)
		t.conclude("failed", &why)
		l.log.Error("a job failed", "run", t.id, "err", err)
	}
	l.end(t)
}

// stopped records that a user paused or cancelled the job.
func (t *queuedJob) stopped() {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := t.asked.Again(t.id, t.job)
	if t.pausing {
		t.asked.State, t.asked.Reason = stateStopped, &api.Reason{Code: "paused", Text: "it was paused; what was attested " +
			"stays", Next: again}
		return
	}
	setCancelled(&t.asked, again)
}

func setCancelled(s *runs.Submitted, again string) {
	if s.Account != "" {
		s.Cancel, again = true, "submit it with another Idempotency-Key: it begins from the start"
	}
	s.State, s.Reason = stateStopped, &api.Reason{Code: refusal.CodeCancelled,
		Text: "it was cancelled; what was attested stays",
		Next: again}
}

const stateStopped = "stopped"

// end writes down how a task ended before anybody can see that it did. One that the end of the server stopped has no
// state.
func (l *jobQueue) end(t *queuedJob) {
	if l.ctx.Err() == nil {
		spent := l.payer.costOf(t)
		if err := t.note(func(asked *runs.Submitted) { asked.Spent = spent }); err != nil {
			l.log.Error("how a job ended is not kept", "run", t.id, "err", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent.Count(t.id, t.kept())
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
	l.mu.Unlock()
	if t == nil {
		return l.idle(ctx, id, pause)
	}
	if l.payer != nil {
		if err, over := l.payer.haltOrder(ctx, t, pause); over {
			return err
		}
	}
	t.pause(pause)
	if l.unqueue(t) {
		t.stopped()
		l.end(t)
		return nil
	}
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

// unqueue takes a job out of the queue, if it is in it.
func (l *jobQueue) unqueue(t *queuedJob) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.queue, t)
	if at >= 0 {
		l.queue = slices.Delete(l.queue, at, at+1)
	}
	return at >= 0
}

// idle says why a run that is not a task cannot be stopped; nil: it has stopped already. One that was paused, or
// stopped with a server, is cancelled for good where that is asked for.
func (l *jobQueue) idle(ctx context.Context, id string, pause bool) error {
	h, err := l.lib.History(ctx, id)
	if err != nil {
		return err
	}
	if h.Job.State == stateStopped {
		over := h.Job.Reason != nil && h.Job.Reason.Code == refusal.CodeCancelled
		switch path := filepath.Join(l.words.Root, id, runs.FileSubmitted); {
		case pause && over:
			return &failure.Error{Status: http.StatusConflict, Code: "JOB_OVER", Detail: "the job is cancelled",
				Fix: "resume it to continue"}
		case pause || over:
			return nil
		default:
			var asked runs.Submitted
			if folder.ReadJSON(path, &asked) != nil {
				return nil // it was not submitted to this server
			}
			if asked.Ordered {
				return l.takeBackPaused(id, asked)
			}
			j, _ := job.Load(filepath.Join(l.words.Root, id, rundir.FileJob)) // nil: it is not a tuning
			setCancelled(&asked, asked.Again(id, j))
			err := folder.WriteJSON(path, asked)
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
