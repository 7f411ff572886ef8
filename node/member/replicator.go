package member

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/replica"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/staged"
)

// DefaultKeep is the default number of checkpoints of a lineage that members keep.
const DefaultKeep = 3

// replicator keeps the blobs that a run needs of a party for as long as it needs them. The blobs of the job and those
// of the rounds that are not final are pinned. Every blob of the last checkpoints of the lineage, and of the job, has
// several holders among the members (package replica), so that it outlives any of them, the consumer included: the
// party pins the blobs assigned to it, and fetches missing ones in the background. Members may be configured with
// different numbers of holders: their lists of holders begin alike, so a blob has at least the smallest of the
// numbers.
type replicator struct {
	id     string
	jobID  string
	job    *bundle.Job
	engine *engine.Engine
	chain  ledger
	host   *peer.Host
	store  *quota.Store
	near   *blob.Disk // nil: there is none
	last   int        // checkpoints of the lineage
	factor int        // holders of a blob
	most   int64      // bytes of a blob that it reads
	room   int64      // bytes of shards of the data that it keeps for others
	log    *slog.Logger

	blocks  chan role.Block       // the latest block that the replicator has not processed
	shipped []blob.CID            // without the shards of the data
	data    corpus                // the shards
	shards  map[string][]blob.CID // blobs of checkpoints, by their CIDs
	parts   map[string][]blob.CID // of updates in a run with slices, by the CID of their index
	lineage []terms.Checkpoint    // the last of the lineage
	base    terms.Checkpoint      // for which that is known
	tried   int64                 // height at which duties were looked at

	mu    sync.Mutex
	duty  Replicas
	held  []blob.CID // what falls to the member and is here
	final []blob.CID // the last checkpoints, as far as they are here
}

// ledger is what a keeper asks of the chain.
type ledger interface {
	Lineage(ctx context.Context, round uint32) (progress.Entry, error)
	Holders(ctx context.Context) ([]string, error)
}

// Replicas are the blobs that fall to a member.
type Replicas struct {
	Held    int `json:"held"`
	Missing int `json:"missing"`
}

func newReplicator(p *Process, j *bundle.Job, e *engine.Engine, room int64) *replicator {
	return &replicator{
		id: p.ID, jobID: p.Chain.Job, job: j, engine: e, chain: p.Chain, host: p.Host, store: p.Store, near: p.Near,
		last: max(1, p.KeepLast), factor: cmp.Or(p.Replicas, replica.Factor), most: j.Largest(), log: p.Log,
		room:   room,
		blocks: make(chan role.Block, 1), shards: map[string][]blob.CID{}, parts: map[string][]blob.CID{},
	}
}

// tell hands the keeper a block. It never waits: a keeper that is busy finds the latest.
func (k *replicator) tell(b role.Block) {
	select {
	case <-k.blocks:
	default:
	}
	k.blocks <- b
}

// run follows the blocks until the context ends.
func (k *replicator) run(ctx context.Context) {
	for {
		select {
		case b := <-k.blocks:
			if err := k.reconcile(ctx, b); err != nil && ctx.Err() == nil {
				k.log.Warn("cannot keep what falls to this member", "height", b.Height, "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// retryDuties is after how many blocks duties that could not be fulfilled are tried again, and all of them looked at.
const retryDuties = 20

// reconcile does what a block asks for.
func (k *replicator) reconcile(ctx context.Context, b role.Block) error {
	if k.shipped == nil {
		var err error
		if k.shipped, k.data.shards, err = k.job.Blobs(ctx, k.fetch); err != nil {
			return err
		}
	}
	changed := k.base != b.Run.Base || len(k.lineage) == 0
	if changed {
		lineage, err := k.latest(ctx, b.Run)
		if err != nil {
			return err
		}
		k.lineage, k.base = lineage, b.Run.Base
		k.forget(b.Run)
	}
	needed := append(slices.Clone(k.shipped), k.open(ctx, b.Run)...)
	duties, final := k.assignedBlobs(ctx, b.Run)
	k.store.Pin(k.jobID, append(needed, duties...))
	k.mu.Lock()
	k.final = final
	k.mu.Unlock()
	if !changed && b.Height < k.tried+retryDuties {
		return nil
	}
	k.tried = b.Height
	return k.fetchMissing(ctx, duties)
}

// latest are the last checkpoints of the lineage, and the first of all.
func (k *replicator) latest(ctx context.Context, s run.State) ([]terms.Checkpoint, error) {
	list := []terms.Checkpoint{s.Base}
	for round := s.Base.Round; round > 1 && len(list) < k.last; round-- {
		e, err := k.chain.Lineage(ctx, round-1)
		if err != nil {
			return nil, err
		}
		list = append(list, e.Attestation.Checkpoint)
	}
	if s.Base.Round > 0 {
		list = append(list, s.Terms.Genesis)
	}
	return list, nil
}

// forget drops what is known about checkpoints and updates that are needed no more.
func (k *replicator) forget(s run.State) {
	named := map[string]bool{}
	for _, c := range k.lineage {
		named[c.CID] = true
	}
	for _, l := range s.Stored() {
		named[l.Base.CID], named[l.Data()] = true, true
		for _, u := range l.Units {
			named[u.Commit.UpdateCID], named[u.Commit.HandedState.CID] = true, true
		}
	}
	other := func(cid string, _ []blob.CID) bool { return !named[cid] }
	maps.DeleteFunc(k.shards, other)
	maps.DeleteFunc(k.parts, other)
}

// open are the blobs of the rounds that may still be challenged, or are read: their base checkpoints and the
// commitments. The party need not have them.
func (k *replicator) open(ctx context.Context, s run.State) (needed []blob.CID) {
	add := func(cid string) {
		if c, err := blob.Parse(cid); err == nil {
			needed = append(needed, c)
		}
	}
	for _, l := range s.Stored() {
		needed = append(needed, k.blobs(ctx, l.Base, k.store.Get)...)
		if cid := l.Data(); cid != "" {
			needed = append(needed, k.blobs(ctx, terms.Checkpoint{CID: cid}, k.store.Get)...)
		}
		for _, u := range l.Units {
			add(u.Commit.UpdateCID)
			add(u.Commit.Log)
			needed = append(needed, k.pieces(ctx, u.Commit.UpdateCID)...)
			if cid := u.Commit.HandedState.CID; cid != "" {
				needed = append(needed, k.blobs(ctx, terms.Checkpoint{CID: cid}, k.store.Get)...)
			}
		}
	}
	for _, x := range s.Slices {
		add(x.CID)
	}
	return needed
}

// assignedBlobs are the blobs that fall to this member; none if it is none. final are those of the last checkpoints.
func (k *replicator) assignedBlobs(ctx context.Context, s run.State) (mine, final []blob.CID) {
	for _, c := range k.lineage {
		if c.Round+uint32(k.last) > s.Base.Round {
			final = append(final, k.blobs(ctx, c, k.store.Get)...)
		}
	}
	members := append(s.Active(crew.Worker), s.Active(crew.Verifier)...)
	if !slices.Contains(members, k.id) {
		return nil, final
	}
	durable := slices.Clone(k.shipped)
	for _, c := range k.lineage {
		durable = append(durable, k.blobs(ctx, c, k.fetch)...)
	}
	return append(replica.Duties(k.id, durable, members, k.factor), k.keptShards(members)...), final
}

// blobs are those of a checkpoint: the block of its directory alone while get does not give what it names.
func (k *replicator) blobs(ctx context.Context, c terms.Checkpoint,
	get func(context.Context, blob.CID) ([]byte, error)) []blob.CID {
	if list, ok := k.shards[c.CID]; ok {
		return list
	}
	id, err := blob.Parse(c.CID)
	if err != nil {
		return nil
	}
	list, err := checkpoint.Blobs(ctx, get, id)
	if err != nil { // the record of a stage is none
		list, err = staged.Blobs(ctx, get, id)
	}
	if err != nil {
		return []blob.CID{blob.Leaf(id)}
	}
	k.shards[c.CID] = list
	return list
}

// pieces are those of an update in a run with slices; none while its index is not here.
func (k *replicator) pieces(ctx context.Context, update string) []blob.CID {
	if !k.job.Sliced() {
		return nil
	}
	if list, ok := k.parts[update]; ok {
		return list
	}
	list, err := k.engine.Pieces(func() ([]byte, error) {
		c, err := blob.Parse(update)
		if err != nil {
			return nil, err
		}
		return k.store.Get(ctx, c)
	})
	if err == nil {
		k.parts[update] = list
	}
	return list
}

func (k *replicator) fetch(ctx context.Context, c blob.CID) ([]byte, error) {
	if has, err := k.store.Has(ctx, c); err == nil && has {
		if b, err := k.host.FetchWithin(ctx, c, nil, k.most); err == nil {
			return b, nil
		}
	}
	holders, err := k.chain.Holders(ctx)
	if err != nil {
		return nil, err
	}
	return k.host.FetchWithin(ctx, c, holders, k.most)
}

// fetchMissing fetches what this member lacks of its duties.
func (k *replicator) fetchMissing(ctx context.Context, duties []blob.CID) error {
	missing, err := k.count(ctx, duties)
	if err != nil {
		return err
	}
	if k.near != nil {
		missing = slices.DeleteFunc(missing, func(c blob.CID) bool { return k.store.Link(ctx, k.near, c) == nil })
		_, err = k.count(ctx, duties)
	}
	if err != nil || len(missing) == 0 {
		return err
	}
	holders, err := k.chain.Holders(ctx)
	if err != nil {
		return err
	}
	failed := replica.Keep(ctx, k.host, missing, holders)
	_, err = k.count(ctx, duties)
	return errors.Join(failed, err)
}

// count notes which duties are fulfilled, and returns the others.
func (k *replicator) count(ctx context.Context, duties []blob.CID) (missing []blob.CID, err error) {
	var held []blob.CID
	for _, c := range duties {
		has, err := k.store.Has(ctx, c)
		if err != nil {
			return nil, err
		}
		if has {
			held = append(held, c)
		} else {
			missing = append(missing, c)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held, k.duty = held, Replicas{Held: len(held), Missing: len(missing)}
	return missing, nil
}

// Replicas are the duties of the member; none before they are known.
func (k *replicator) Replicas() Replicas {
	if k == nil {
		return Replicas{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.duty
}

// Keeps are the blobs that fall to the member and are here; none before they are known.
func (k *replicator) Keeps() []blob.CID {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held
}

// Checkpoints are the blobs of the last checkpoints; none before they are known.
func (k *replicator) Checkpoints() []blob.CID {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.final
}
