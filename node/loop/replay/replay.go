// Package replay executes a run again that a client led, from the data that the client named for its rounds, and holds
// every state root that was attested against what it finds. It trusts the chain for the terms and the lineage alone.
package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/web/failure"
)

// run is a run that is executed again.
type run struct {
	job    *bundle.Job
	task   *train.Task
	lines  []rundir.Line
	named  record.Named
	store  *blob.Disk
	get    func(ctx context.Context, id blob.CID) ([]byte, error)
	opt    verify.Options
	result *verify.Result
}

// Run executes the run again whose folder is given, as node/loop has it. Blobs that are not there are fetched from
// the parties of the network that an HTTP interface of a validator leads to. Rounds before one that is asked for alone
// are executed, too.
func Run(ctx context.Context, dir, network string, opt verify.Options) (*verify.Result, error) {
	named, err := record.ReadNamed(dir)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if filepath.Base(path) != named.Order {
		return nil, failure.New(http.StatusConflict, "RECORD_OTHER", fmt.Sprintf("%s has the record of the run %.80q",
			dir, named.Order), "give a folder that has the name of its run")
	}
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := &run{named: named, opt: opt, result: &verify.Result{Job: named.Order, Numerics: "exact-f32"}}
	if r.store, err = blob.OpenDisk(filepath.Join(dir, rundir.DirBlobs)); err != nil {
		return nil, err
	}
	key, err := peer.GenerateKey()
	if err != nil {
		return nil, err
	}
	host, err := peer.New(peer.Config{Key: key, Store: r.store})
	if err != nil {
		return nil, err
	}
	defer host.Close()
	holders, err := c.Registry.Addrs(ctx)
	if err != nil {
		return nil, err
	}
	from := host.Into(r.store)
	r.get = func(ctx context.Context, id blob.CID) ([]byte, error) {
		if b, err := r.store.Get(ctx, id); err == nil {
			return b, nil
		}
		b, err := from.Fetch(ctx, id, holders)
		if err != nil {
			return nil, &verify.IncompleteError{What: fmt.Sprintf(
				"blob %s is neither in %s nor with a party of the network: %v", id, dir, err)}
		}
		return b, nil
	}
	if err := r.read(ctx, c); err != nil {
		return nil, err
	}
	return r.result, r.execute(ctx)
}

// read reads the run from the chain, and its job from its blobs.
func (r *run) read(ctx context.Context, c *client.Client) error {
	state, err := c.Training.Run(ctx, r.named.Order)
	if err != nil {
		return err
	}
	for round := uint32(1); ; round++ {
		e, err := c.Training.Lineage(ctx, r.named.Order, round)
		if errors.Is(err, client.ErrNotFound) {
			break
		}
		if err != nil {
			return err
		}
		l := rundir.NewLine(e)
		if err := l.Check(r.named.Order, round); err != nil {
			return &verify.MismatchError{Round: round, What: err.Error()}
		}
		r.lines = append(r.lines, l)
	}
	if last := max(1, r.opt.Round); len(r.lines) < last {
		return &verify.IncompleteError{What: fmt.Sprintf("%d rounds of the run are attested", len(r.lines))}
	}
	get := func(ctx context.Context, cid string, _ int64) ([]byte, error) {
		id, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return r.get(ctx, id)
	}
	if r.job, err = bundle.ReadJob(ctx, state.Terms, get); err != nil {
		return err
	}
	if !r.job.Spec.Led {
		return &verify.MismatchError{What: "the data of the run follow from its specification: no client leads it"}
	}
	corpus, err := r.job.Corpus(ctx, get)
	if err != nil {
		return err
	}
	r.task, err = r.job.Task(ctx, kernel.Cores, corpus, get, nil, nil)
	r.named.Genesis = state.Terms.Genesis
	return err
}

// execute executes the rounds.
func (r *run) execute(ctx context.Context) error {
	base, err := bundle.LoadCheckpoint(ctx, r.named.Genesis, r.get)
	if err != nil {
		return err
	}
	lines := r.lines
	if r.opt.Round > 0 {
		lines = lines[:r.opt.Round]
	}
	for _, l := range lines {
		if base, err = r.round(ctx, base, l); err != nil {
			return err
		}
		r.result.Units++
		if r.opt.Round == 0 || int(l.Round) == r.opt.Round {
			r.result.Rounds = append(r.result.Rounds, l.Round)
		}
		if r.opt.Progress != nil {
			r.opt.Progress(int(l.Round), len(lines))
		}
	}
	for _, s := range lines[len(lines)-1].Signers {
		r.result.Signers = append(r.result.Signers, s.ID)
	}
	r.result.StateRoot, r.result.Complete = base.Root(), len(r.lines) == int(r.job.Spec.Rounds)
	return nil
}

// round executes the round after a checkpoint, and compares its update and the checkpoint after it with a line.
func (r *run) round(ctx context.Context, base *train.Checkpoint, l rundir.Line) (*train.Checkpoint, error) {
	data, err := r.data(ctx, base.Round)
	if err != nil {
		return nil, err
	}
	made, err := r.task.Resume(base, 0, data, false, nil, func(train.Progress) error { return ctx.Err() })
	if err != nil {
		return nil, err
	}
	differs := func(format string, args ...any) error {
		return &verify.MismatchError{Round: l.Round, What: fmt.Sprintf(format, args...)}
	}
	if made.Diverged != nil {
		return nil, differs("its step diverges: %v", made.Diverged)
	}
	s := r.job.Spec
	u, _, err := outer.Commit(s, base.Names, base.Round, 0, made, nil)
	if err != nil {
		return nil, err
	}
	served, _, err := engine.Pack(s, r.job.Step, 0, u)
	if err != nil {
		return nil, err
	}
	if cid := blob.Of(served).String(); len(l.Updates) != 1 || l.Updates[0] != cid {
		return nil, differs("the update is %s, attested were %v: the data are not those of the round, or a worker lied",
			cid, l.Updates)
	}
	delta, err := outer.Unpack(s, base, base.Round, 0, u.Root(), served)
	if err != nil {
		return nil, err
	}
	next, err := outer.Consume(s, base, [][]*tensor.Tensor{delta}, nil)
	if err != nil {
		return nil, err
	}
	if root := next.Root(); root != l.StateRoot {
		return nil, differs("the state root is %s, attested was %s", root.Short(), l.StateRoot.Short())
	}
	return next, nil
}

// data are the tensors that the client named for a round.
func (r *run) data(ctx context.Context, round uint32) (list []*tensor.Tensor, err error) {
	if int(round) >= len(r.named.Data) {
		return nil, &verify.IncompleteError{What: fmt.Sprintf("the record names no data for round %d", round+1)}
	}
	id, err := blob.Parse(r.named.Data[round])
	if err != nil {
		return nil, err
	}
	_, all, err := checkpoint.Load(ctx, r.get, checkpoint.InTurn, id)
	if err != nil {
		return nil, err
	}
	names, shapes := bundle.Begun(r.job.Spec, r.job.Spec.Exchange, r.job.Step)
	for i, n := range names {
		x := all[n]
		if x == nil || !x.Shape.Equal(shapes[i]) {
			return nil, &verify.MismatchError{Round: round + 1,
				What: fmt.Sprintf("its data have no %s of shape %v", n, shapes[i])}
		}
		list = append(list, x)
	}
	return list, nil
}
