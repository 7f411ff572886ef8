package journey

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/rest"
	"github.com/starling-network/starling/internal/loopback"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/processes"
)

// Orders is what clients saw of a gateway that was killed while they queued their jobs.
type Orders struct {
	Clients  int     `json:"clients"`
	Jobs     int     `json:"jobs"`
	Kills    int     `json:"kills"`
	Lost     int     `json:"lost"`     // jobs that it did not know any more, or that had another name
	Twice    int     `json:"twice"`    // jobs of the network beyond those of clients
	Done     int     `json:"done"`     // jobs whose models were delivered when the measurement ended
	Statuses int     `json:"statuses"` // answers with the status of a job
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
}

const (
	clients = 10
	each    = 5 // jobs of a client
	atOnce  = 4 // jobs that the gateway orders at a time
	kills   = 2
)

// small is the job of client %d with the number %d.
const small = `apiVersion: starling/v1
kind: TrainingJob
name: job-%d-%d
model:
  architecture: gpt2
  config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 64}
  tokenizer: byte-level
datasets: [{path: text.txt, format: text}]
seed: %[1]d%[2]d
sequence_len: 32
training: {max_steps: 4, global_batch_size: 4, learning_rate: 1.0e-2, warmup_steps: 1}
strategy: {method: fedavg, sync_steps: 2, workers: 2}
budget: {max_cost: 1}
`

// desk is a gateway and what its clients know of it.
type desk struct {
	*scene
	url  string
	args []string
	runs int // of the gateway

	mu    sync.Mutex
	names map[string]string // the identifier of each job, by its key
	took  []time.Duration   // that each status took
}

// orders lets clients queue jobs while the gateway is killed, and then watches them. all waits for the last model.
func orders(ctx context.Context, s *scene, all bool) (o Orders, err error) {
	d := &desk{scene: s, names: map[string]string{}}
	port, release, err := loopback.Reserve(1) // the gateway takes it again after each kill
	if err != nil {
		return o, err
	}
	defer release()
	at := fmt.Sprint("127.0.0.1:", port)
	d.url = "http://" + at
	out := filepath.Join(s.Dir, "orders")
	if err := os.Mkdir(out, 0o700); err != nil {
		return o, err
	}
	d.args = []string{"gateway", out, "--network", s.URL, "--home", s.Home("consumer"), "--data", s.Dir, "--listen", at,
		"--jobs", fmt.Sprint(atOnce)}
	o = Orders{Clients: clients, Jobs: clients * each, Kills: kills}
	gateway, err := d.open(ctx)
	if err != nil {
		return o, err
	}
	queued := make(chan error, clients)
	for c := range clients {
		go func() { queued <- d.queue(ctx, c) }()
	}
	for k := range kills {
		want := (k + 1) * o.Jobs / (kills + 1)
		if err := processes.Until(ctx, 5*time.Minute, "the gateway takes no jobs", func(context.Context) (bool, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.names) >= want, nil
		}); err != nil {
			return o, err
		}
		_ = gateway.Process.Kill() // SIGKILL
		_ = gateway.Wait()
		if gateway, err = d.open(ctx); err != nil {
			return o, err
		}
	}
	for range clients {
		err = errors.Join(err, <-queued)
	}
	if err != nil {
		return o, err
	}
	err = d.watch(ctx, &o, all)
	return o, err
}

// open starts the gateway, and returns when it answers.
func (d *desk) open(ctx context.Context) (*exec.Cmd, error) {
	d.runs++
	name := fmt.Sprint("gateway-", d.runs)
	gateway, err := d.Start(ctx, name, d.args...)
	if err != nil {
		return nil, err
	}
	return gateway, d.Says(ctx, name, "gateway: ")
}

// queue submits the jobs of a client, each again until the gateway has taken it.
func (d *desk) queue(ctx context.Context, client int) error {
	for n := range each {
		key := fmt.Sprintf("%d-%d", client, n)
		if err := d.persist(ctx, func(c *rest.Client) error {
			j, err := c.Submit(ctx, submission(client, n), key)
			if err == nil {
				d.mu.Lock()
				d.names[key] = j.ID
				d.mu.Unlock()
			}
			return err
		}); err != nil {
			return fmt.Errorf("benchmark: job %d of client %d: %w", n, client, err)
		}
	}
	return nil
}

func submission(client, n int) api.Submission {
	return api.Submission{Spec: api.Spec{Config: fmt.Sprintf(small, client, n)}}
}

// persist asks the gateway again while it is away, or busy.
func (d *desk) persist(ctx context.Context, ask func(*rest.Client) error) error {
	c, err := rest.New(d.url, "")
	if err != nil {
		return err
	}
	const patience = 2 * time.Minute
	return processes.Until(ctx, patience, "the gateway does not answer", func(context.Context) (bool, error) {
		err := ask(c)
		if e, ok := errors.AsType[*rest.Error](err); ok && e.Temporary {
			return false, nil
		}
		return err == nil, err
	})
}

// watch asks for the states of all jobs, as their clients do, and compares the jobs with those that were queued.
func (d *desk) watch(ctx context.Context, o *Orders, all bool) error {
	limit := 10 * time.Second
	if all {
		limit = time.Hour
	}
	begin, failed := time.Now(), make(chan error, clients)
	for c := range clients {
		go func() { failed <- d.follow(ctx, c, func() bool { return time.Since(begin) > limit }) }()
	}
	var err error
	for range clients {
		err = errors.Join(err, <-failed)
	}
	if err != nil {
		return err
	}
	if err := d.persist(ctx, func(c *rest.Client) error { return d.compare(ctx, c, o) }); err != nil {
		return err
	}
	runs, err := d.chain.Training.Runs(ctx, false)
	if err != nil {
		return err
	}
	waiting, err := d.chain.Market.Orders(ctx)
	if err != nil {
		return err
	}
	o.Twice = max(o.Twice, len(runs)+len(waiting)-o.Jobs)
	slices.Sort(d.took)
	at := func(share float64) float64 {
		return benchmark.Rounded(1000*d.took[int(share*float64(len(d.took)-1))].Seconds(), 1)
	}
	o.Statuses, o.P50, o.P99 = len(d.took), at(0.5), at(0.99)
	return nil
}

// follow asks for the jobs of a client, one after another, until they are done or a time is over.
func (d *desk) follow(ctx context.Context, client int, over func() bool) error {
	c, err := rest.New(d.url, "")
	if err != nil {
		return err
	}
	for ctx.Err() == nil && !over() {
		done := 0
		for n := range each {
			d.mu.Lock()
			id := d.names[fmt.Sprintf("%d-%d", client, n)]
			d.mu.Unlock()
			asked := time.Now()
			j, err := c.Job(ctx, id)
			if err != nil {
				return err
			}
			d.mu.Lock()
			d.took = append(d.took, time.Since(asked))
			d.mu.Unlock()
			if j.State == "done" {
				done++
			}
			time.Sleep(50 * time.Millisecond)
		}
		if done == each {
			break
		}
	}
	return ctx.Err()
}

// compare counts the jobs that the gateway has, and those that it gives another name when they are submitted again.
func (d *desk) compare(ctx context.Context, c *rest.Client, o *Orders) error {
	have, err := c.Jobs(ctx, "", "")
	if err != nil {
		return err
	}
	o.Lost, o.Done = 0, 0
	states := map[string]string{}
	for _, j := range have {
		if states[j.ID] = j.State; j.State == "done" {
			o.Done++
		}
	}
	for client := range clients {
		for n := range each {
			key := fmt.Sprintf("%d-%d", client, n)
			again, err := c.Submit(ctx, submission(client, n), key)
			if err != nil {
				return err
			}
			if s := states[again.ID]; again.ID != d.names[key] || s != "done" && s != "running" && s != "queued" {
				o.Lost++
			}
		}
	}
	o.Twice = max(0, len(have)-o.Jobs)
	return nil
}
