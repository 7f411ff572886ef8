package provider

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/protocol/run/crew"
)

// spareRun is the run that a verifier watches without a part in it.
type spareRun struct {
	job string
	end chan struct{} // closed when it shall stop
}

// look watches a run when the account has a part in none, and stops when it has. Which run it is follows from the key,
// so that of several verifiers each looks at another.
func (s *service) look(ctx context.Context, jobs []string) {
	s.mu.Lock()
	if s.spare != nil && s.runs[s.spare.job] == nil {
		s.spare = nil // it is over, or could not be watched
	}
	others := len(s.runs)
	if s.spare != nil {
		others--
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(job string) bool { return s.unwatched[job] || s.refused[job] != "" })
	s.mu.Unlock()
	switch {
	case others > 0:
		s.unwatch()
	case s.spare == nil && len(jobs) > 0:
		seed := s.key.Derive("watch")
		s.spare = &spareRun{end: make(chan struct{}), job: slices.MinFunc(jobs, func(a, b string) int {
			x, y := canon.Sum("starling/watch-run/1", seed[:], []byte(a)), canon.Sum("starling/watch-run/1", seed[:], []byte(b))
			return bytes.Compare(x[:], y[:])
		})}
		s.begin(ctx, s.spare.job, s.spare.end)
	}
}

// unwatch ends the watching of a run, once nothing is open that it challenged there.
func (s *service) unwatch() {
	if s.spare != nil {
		close(s.spare.end)
		s.spare = nil
	}
}

// watched says what came of watching a run.
func (s *service) watched(job string, err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	s.unwatched[job] = true
	s.mu.Unlock()
	s.Say(fmt.Sprintf("does not watch %s: %v", job, err))
}

// RunWatcher looks at the units of runs in which it has no part, and challenges what is wrong, until the context ends.
// It registers nothing and offers no work. A challenge takes a bond from its account, a tenth of a worker's default
// stake, half of which is lost if it was wrong.
func RunWatcher(ctx context.Context, o Options) error {
	o.Verifies = true
	s, err := openService(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, s.leave = context.WithCancel(ctx)
	defer s.leave()
	stop, err := control.Serve(s.Home, s)
	if err != nil {
		s.Say("other commands cannot ask this process: " + err.Error())
	} else {
		s.closers = append(s.closers, stop)
	}
	return s.watchRuns(ctx)
}

// watchRuns watches one run after the other.
func (s *service) watchRuns(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer s.working.Wait()
	defer end()
	blocks, err := s.chain.Blocks(work)
	if err != nil {
		return err
	}
	if params, err := s.chain.Registry.Params(work); err == nil {
		s.Say(fmt.Sprintf("%s watches runs; a challenge takes a bond of %s ZEN from its account, and a fee",
			s.chain.Address(), job.Amount(params.MinStake(crew.Verifier))))
	}
	leaving := ctx.Done()
	for {
		select {
		case <-leaving:
			leaving = nil
			close(s.drain)
			s.unwatch()
			s.Say("stops when nothing is open that it challenged; the next Ctrl-C stops at once")
		case b, ok := <-blocks:
			if !ok {
				return member.ErrClosed
			}
			s.watch.Block(b.Height, b.Time)
			jobs, err := s.chain.Training.Runs(work, true)
			switch {
			case err != nil:
				s.log.Warn("cannot follow the chain", "err", err)
			case leaving != nil:
				s.look(work, jobs)
			}
		}
		if leaving == nil && s.idle() {
			return nil
		}
	}
}
