package member

import (
	"context"
	"slices"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/replica"
	"github.com/starling-network/starling/node/shards"
	"github.com/starling-network/starling/role/bundle"
)

// fetchShard returns how a shard of a job's data is read: from the store, or from those that may hold it. It may be
// dropped from the store at once; the member pins what falls to it alone (replicator).
func (p *Process) fetchShard(j *bundle.Job, blobs Served) shards.Fetch {
	return func(ctx context.Context, i int) ([]byte, error) {
		c, err := blob.Parse(j.Shards[i])
		if err != nil {
			return nil, err
		}
		if has, err := p.Store.Has(ctx, c); err == nil && has {
			if raw, err := blobs.Fetch(ctx, c, nil); err == nil {
				return raw, nil
			}
		}
		holders, err := p.Chain.Holders(ctx)
		if err != nil {
			return nil, err
		}
		raw, err := blobs.Await(ctx, c, holders)
		if p.Instruments != nil {
			p.Instruments.Shards.Add(int64(len(raw)))
		}
		return raw, err
	}
}

// roomForShards is how many bytes of the shards of a job's data this member keeps, for others and for its next units:
// all of a small corpus, which Footprint counts, and of a larger one as many as its disk has room for.
func (p *Process) roomForShards(j *bundle.Job) int64 {
	if all := j.Data.Bytes(); all <= bundle.Passing(j.Data) {
		return all
	}
	return p.Disk.Extend(p.Chain.Job, j.Data.Bytes(), j.Aside())
}

// corpus is the shards of a job's data, and which of them a member keeps.
type corpus struct {
	shards  []blob.CID
	members []string // for which kept is known
	kept    []blob.CID
}

// keptShards are the shards of the data that fall to this member, as many as it has room for: those first of
// which it is the first holder, so that members with little room keep different ones. Only the consumer is sure to have
// the rest.
func (k *replicator) keptShards(members []string) []blob.CID {
	if d := &k.data; !slices.Equal(d.members, members) {
		d.members, d.kept = slices.Clone(members), nil
		size := map[blob.CID]int64{}
		for i, c := range d.shards {
			size[c] = k.job.Data.ShardBytes(i)
		}
		left := k.room
		for _, c := range replica.Nearest(k.id, d.shards, members, k.factor) {
			if left -= size[c]; left < 0 {
				break
			}
			d.kept = append(d.kept, c)
		}
	}
	return k.data.kept
}
