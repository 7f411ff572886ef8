package shards

import (
	"context"
	"slices"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/role/bundle"
)

// shard returns a verified shard, from memory or from where Fetch has it.
func (c *Corpus) shard(ctx context.Context, i int) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, stopped(ctx)
	}
	if raw := c.known(i); raw != nil {
		return raw, nil
	}
	raw, err := c.fetch(ctx, i)
	if err == nil {
		err = c.manifest.VerifyShard(i, raw)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, stopped(ctx)
	case err != nil:
		return nil, c.failed(i, err)
	}
	c.keep(i, raw)
	return raw, nil
}

// failed is the error of a shard; nil for none.
func (c *Corpus) failed(i int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Shard: i, Of: len(c.manifest.Shards), Err: err}
}

// known is a shard that is in memory; nil: it is not.
func (c *Corpus) known(i int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := slices.IndexFunc(c.verified, func(s shard) bool { return s.number == i })
	if k < 0 {
		return nil
	}
	s := c.verified[k]
	c.verified = append(slices.Delete(c.verified, k, k+1), s)
	return s.raw
}

// keep holds a shard in memory, and lets go of those that were not used for the longest time.
func (c *Corpus) keep(i int, raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verified = append(c.verified, shard{i, raw})
	bytes := 0
	for k := len(c.verified) - 1; k >= 0; k-- {
		if bytes += len(c.verified[k].raw); bytes > bundle.ShardMemory {
			c.verified = slices.Delete(c.verified, 0, k+1)
			return
		}
	}
}

// HeldOut implements data.Reader.
func (c *Corpus) HeldOut(number uint64, batch, seqLen, limit int) ([]int32, error) {
	spans := c.manifest.HeldOut(number, batch, seqLen, limit)
	if len(spans) == 0 {
		return nil, nil
	}
	x, err := data.NewBatches(c.manifest, [][]data.TokenRange{spans})
	if err != nil {
		return nil, err
	}
	r := c.gather(x)
	if err := r.wait(c.ctx, 0); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(x.Batch(0)), nil
}

// Manifest implements data.Reader: shardTokens is that of the job's manifest.
func (c *Corpus) Manifest(int) data.Manifest { return c.manifest }

// LeafProofs implements data.Reader. It fetches the shards again that are not here any more.
func (c *Corpus) LeafProofs(m data.Manifest, spans []data.TokenRange) ([]data.LeafProof, error) {
	return m.LeafProofs(spans, func(i int) ([]byte, error) { return c.shard(c.ctx, i) })
}
