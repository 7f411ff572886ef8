// Package experts trains the experts of a job file, each by a run of its own that exchanges nothing with the others,
// and lists them as a mixture (docs/adr/0174-experts-are-jobs-of-their-own.md). A run itself is in node; the mixture is
// read by node/pretrained.
package experts

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/rundir"
)

// Trained is the run of an expert.
type Trained struct {
	Name    string          `json:"name"`
	Path    string          `json:"path"` // of its folder
	Summary *rundir.Summary `json:"summary"`
}

// Train trains the jobs of the experts of one file, whose output folders lie in one, and makes that a mixture. On a
// network all runs take place at the same time, paid by one account; without one, each has an embedded network, one
// after the other. An expert whose run is finished is not trained again. The error is that of the first run that fails;
// the others are cancelled.
func Train(ctx context.Context, runs []consumer.Options) (all []Trained, err error) {
	if all, err = trainEach(ctx, runs); err != nil {
		return nil, err
	}
	experts := runs[0].Job.Experts
	var sum float64
	for _, e := range experts {
		sum += e.Prior
	}
	var list []pretrained.Listed
	for i, t := range all {
		list = append(list, pretrained.Listed{Name: t.Name, Path: filepath.Base(t.Path), Prior: experts[i].Prior / sum})
	}
	return all, pretrained.WriteMixture(filepath.Dir(runs[0].Dir), list)
}

func trainEach(ctx context.Context, runs []consumer.Options) (all []Trained, err error) {
	all = make([]Trained, len(runs))
	first := runs[0]
	if first.Network == "" {
		for i, opt := range runs {
			if all[i], err = one(ctx, opt); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	h, _, err := home.Open(first.Home)
	if err != nil {
		return nil, err
	}
	payer, err := account.Open(h, first.Network, first.Listen)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, payer.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	preparing := make(chan struct{}, 1) // one at a time, which takes memory
	var running sync.WaitGroup
	for i, opt := range runs {
		running.Go(func() {
			opt.Account, opt.Mark, opt.Preparing = payer, opt.Job.Expert, preparing
			var err error
			if all[i], err = one(ctx, opt); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return all, context.Cause(ctx)
}

// one trains an expert, unless it is trained.
func one(ctx context.Context, opt consumer.Options) (Trained, error) {
	t := Trained{Name: opt.Job.Expert, Path: opt.Dir}
	if errors.Is(rundir.Probe(opt.Dir), rundir.ErrFinished) {
		return t, folder.ReadJSON(filepath.Join(opt.Dir, rundir.FileSummary), &t.Summary)
	}
	var err error
	if t.Summary, err = node.Train(ctx, opt); err != nil {
		return t, fmt.Errorf("expert %s: %w", t.Name, err)
	}
	return t, nil
}
