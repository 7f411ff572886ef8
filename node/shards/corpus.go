// Package shards reads the corpus of a job as its units need it: the shards that the windows of the next steps lie in
// are fetched before and while these are computed, and no other shard is. The tokens of those steps are all that stays
// in memory.
//
// It decides nothing about what a disk keeps (node/member does), and computes no unit.
package shards

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/role/bundle"
)

// Fetch returns the bytes of a shard, which may come from anybody: Corpus verifies them.
type Fetch func(ctx context.Context, shard int) ([]byte, error)

// Error says that a shard cannot be had, or is not the one of the manifest: then it wraps data.ErrShard, and no party
// can compute the units that read it.
type Error struct {
	Shard, Of int
	Err       error
}

func (e *Error) Error() string {
	return fmt.Sprintf("shard %d of the %d of the job's data cannot be read: %v", e.Shard+1, e.Of, e.Err)
}

// Unwrap returns why.
func (e *Error) Unwrap() error { return e.Err }

// Corpus is the corpus of a job for one party. It implements data.Reader: a batch is waited for until its shards are
// there, and the shards of the batches that follow are fetched meanwhile. Its methods may be called concurrently.
type Corpus struct {
	ctx      context.Context // of the party
	manifest data.Manifest
	fetch    Fetch
	slots    chan struct{} // one for each shard that is fetched at a time

	mu       sync.Mutex
	readings []*reading   // the one used last is the last
	last     data.Address // of the batch read last
	waiting  int          // units that were begun and wait
	verified []shard      // shards in memory; the one used last is the last
}

// shard is a verified shard.
type shard struct {
	number int
	raw    []byte
}

// reading is the batches of some steps that follow each other, while their shards are fetched.
type reading struct {
	first  data.Address
	steps  uint32
	end    uint32 // step after the last of its unit
	seqLen int
	stop   context.CancelFunc

	mu      sync.Mutex
	batches *data.Batches
	changed chan struct{} // closed when a shard has come, or with the error
	err     error
}

// New returns a corpus of which nothing is here. A manifest of it has passed data.Manifest.Check. All that it
// fetches ends with the context.
func New(ctx context.Context, m data.Manifest, fetch Fetch) *Corpus {
	return &Corpus{ctx: ctx, manifest: m, fetch: fetch, slots: make(chan struct{}, bundle.ShardsAtOnce)}
}

// Begin begins to fetch what the steps of a unit read, of which the first is at an address, and returns when the first
// step can be taken. The end of the context ends the reading, and then cpu.ErrStopped is the error of a batch that is
// waited for. The returned function says that the unit is done, or that nothing is computed of it.
func (c *Corpus) Begin(ctx context.Context, a data.Address, steps uint32, seqLen int) (done func(), err error) {
	c.mu.Lock()
	c.waiting++
	if c.waiting > unitsAhead {
		c.waiting--
		c.mu.Unlock()
		return func() {}, nil // the unit is read when its turn comes
	}
	r, err := c.open(a, steps, seqLen)
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { c.stop(a, steps) })
	done = sync.OnceFunc(func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting--
	})
	if err == nil {
		err = r.wait(ctx, 0)
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// unitsAhead is how many units are read at a time: the one that is computed, and those that wait for it.
const unitsAhead = 3

// stop ends the readings of a unit.
func (c *Corpus) stop(a data.Address, steps uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.readings {
		if from := r.first; from.Step >= a.Step && from.Step-a.Step < steps && follows(from, a) {
			r.stop()
		}
	}
}

// follows reports whether two addresses differ in their steps alone.
func follows(a, b data.Address) bool {
	a.Step = b.Step
	return a == b
}

// Batch implements data.Reader.
func (c *Corpus) Batch(dst []int32, a data.Address, seqLen int) error {
	c.mu.Lock()
	r, err := c.of(a, seqLen)
	c.last = a
	c.mu.Unlock()
	if err != nil {
		return err
	}
	at := int(a.Step - r.first.Step)
	if err := r.wait(c.ctx, at); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.batches.Batch(at); copy(dst, got) != len(got) || len(dst) != len(got) {
		return fmt.Errorf("%w: a buffer of %d for %d tokens", data.ErrAddress, len(dst), len(got))
	}
	return nil
}

// of returns the reading of the batch at an address, and begins the next one of its unit once this one is complete. A
// batch that follows the one before is one of a unit that is computed; any other is read alone.
func (c *Corpus) of(a data.Address, seqLen int) (*reading, error) {
	for i, r := range c.readings {
		if r.seqLen != seqLen || !follows(a, r.first) || a.Step < r.first.Step || a.Step-r.first.Step >= r.steps {
			continue
		}
		c.readings = append(slices.Delete(c.readings, i, i+1), r)
		next := a
		if next.Step = r.first.Step + r.steps; next.Step < r.end && r.complete() {
			_, _ = c.open(next, r.end-next.Step, seqLen) // its error is that of its batches
		}
		return r, nil
	}
	if before := c.last; before.Step+1 == a.Step && follows(before, a) {
		return c.open(a, a.StepsPerRound-a.Step, seqLen)
	}
	return c.read(a, 1, seqLen)
}

// open begins to read the batches of at most some steps from an address on, of as many as bundle.ReadingTokens allow,
// unless that has begun.
func (c *Corpus) open(a data.Address, steps uint32, seqLen int) (*reading, error) {
	end := a.Step + steps
	steps = max(1, min(steps, uint32(bundle.ReadingTokens/max(1, int(a.Batch)*(seqLen+1)))))
	for _, r := range c.readings {
		if r.first == a && r.steps >= steps && r.seqLen == seqLen {
			return r, nil
		}
	}
	r, err := c.read(a, steps, seqLen)
	if err != nil {
		return nil, err
	}
	r.end = end
	c.readings = append(c.readings, r)
	if len(c.readings) > bundle.MaxReadings {
		c.readings[0].stop()
		c.readings = slices.Delete(c.readings, 0, 1)
	}
	return r, nil
}

// read begins to read the batches of some steps from an address on.
func (c *Corpus) read(a data.Address, steps uint32, seqLen int) (*reading, error) {
	batches := make([][]data.TokenRange, steps)
	for i := range batches {
		at := a
		at.Step += uint32(i)
		var err error
		if batches[i], err = c.manifest.Spans(at, seqLen, 0, int(a.Batch)*(seqLen+1)); err != nil {
			return nil, err
		}
	}
	x, err := data.NewBatches(c.manifest, batches)
	if err != nil {
		return nil, err
	}
	r := c.gather(x)
	r.first, r.steps, r.end, r.seqLen = a, steps, a.Step+steps, seqLen
	return r, nil
}

// gather begins to fetch the shards of some batches.
func (c *Corpus) gather(x *data.Batches) *reading {
	ctx, stop := context.WithCancel(c.ctx)
	r := &reading{stop: stop, batches: x, changed: make(chan struct{})}
	wanted := slices.Clone(x.Shards())
	go func() {
		defer stop()
		working, ctx := errgroup.WithContext(ctx)
		working.SetLimit(cap(c.slots))
		for _, i := range wanted {
			if ctx.Err() != nil {
				break
			}
			working.Go(func() error {
				raw, err := c.shard(ctx, i)
				if err == nil {
					err = c.failed(i, r.fill(i, raw))
				}
				return err
			})
		}
		err := working.Wait()
		if err == nil && ctx.Err() != nil && !r.complete() {
			err = stopped(ctx)
		}
		if err != nil {
			c.drop(r)
			r.fail(err)
		}
	}()
	return r
}

// stopped is the error of a reading that the end of a context ended.
func stopped(ctx context.Context) error {
	return fmt.Errorf("shards: %w: %w", cpu.ErrStopped, context.Cause(ctx))
}

// drop forgets a reading: the next one of its batches begins again.
func (c *Corpus) drop(r *reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings = slices.DeleteFunc(c.readings, func(x *reading) bool { return x == r })
}

// fill takes a shard.
func (r *reading) fill(i int, raw []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.batches.Fill(i, raw)
	r.change()
	return err
}

// fail says why the shards that are missing will not come.
func (r *reading) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.change()
}

// change wakes those that wait.
func (r *reading) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// complete reports whether all batches are ready.
func (r *reading) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batches.Complete()
}

// wait returns when a batch is ready, or why it will not be.
func (r *reading) wait(ctx context.Context, batch int) error {
	for {
		r.mu.Lock()
		ready, err, changed := r.batches.Ready(batch), r.err, r.changed
		r.mu.Unlock()
		switch {
		case ready:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return stopped(ctx)
		}
	}
}
