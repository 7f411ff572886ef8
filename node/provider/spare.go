package provider

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/uplink"
	"github.com/starling-network/starling/protocol/run/crew"
)

// spareWatch is how a verifier that has a part in no run watches one. It belongs to the goroutine that follows the
// blocks.
type spareWatch struct {
	*service
	job    string          // that it watches; "": none
	end    chan struct{}   // closed when it shall stop
	failed map[string]bool // runs that it cannot watch
}

// look watches a run when the account has a part in none, and stops when it has. Which run it is follows from the key,
// so that of several verifiers each looks at another.
func (s *spareWatch) look(ctx context.Context, jobs []string) {
	s.mu.Lock()
	if s.job != "" && s.runs[s.job] == nil {
		s.job = "" // it is over, or could not be watched
	}
	others := len(s.runs)
	if s.job != "" {
		others--
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(job string) bool { return s.failed[job] || s.refused[job] != "" })
	s.mu.Unlock()
	switch {
	case others > 0:
		s.stop()
	case s.job == "" && len(jobs) > 0:
		seed := s.key.Derive("watch")
		s.end = make(chan struct{})
		s.job = slices.MinFunc(jobs, func(a, b string) int {
			x, y := canon.Sum("starling/watch-run/1", seed[:], []byte(a)), canon.Sum("starling/watch-run/1", seed[:], []byte(b))
			return bytes.Compare(x[:], y[:])
		})
		s.begin(ctx, s.job, crew.Verifier, s.end)
	}
}

// stop ends the watching of a run, once nothing is open that it challenged there.
func (s *spareWatch) stop() {
	if s.job != "" {
		close(s.end)
		s.job = ""
	}
}

// watched says what came of watching a run.
func (s *spareWatch) watched(job string, err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	s.failed[job] = true
	s.mu.Unlock()
	s.Say(fmt.Sprintf("does not watch %s: %v", job, err))
}

// RunWatcher looks at the units of runs in which it has no part, and challenges what is wrong, until the context ends.
// It registers nothing and offers no work. A challenge takes a bond from its account, a tenth of a worker's default
// stake, half of which is lost if it was wrong.
func RunWatcher(ctx context.Context, o Options) error {
	o.Class = crew.Verifier
	s, err := openService(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, s.leave = context.WithCancel(ctx)
	defer s.leave()
	stop, err := control.Serve(s.Home, s, s.pause)
	if err != nil {
		s.Say("other commands cannot ask this process: " + err.Error())
	} else {
		s.closers = append(s.closers, stop)
	}
	return s.spare.follow(ctx)
}

// follow watches one run after the other.
func (s *spareWatch) follow(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer s.working.Wait()
	defer end()
	blocks, err := s.chain.Blocks(work)
	if err != nil {
		return err
	}
	if params, err := s.chain.Registry.Params(work); err == nil {
		s.Say(fmt.Sprintf("%s watches runs; a challenge takes a bond of %s ZEN from its account, and a fee",
			s.chain.Address(), quantity.Amount(params.MinStake(crew.Verifier))))
	}
	leaving := ctx.Done()
	pulse := uplink.NewPulse(s.RPC, s.Say)
	defer pulse.Stop()
	for {
		select {
		case <-pulse.Silence():
			pulse.Silent(nil)
		case <-pulse.Gone():
			return s.unsettled(pulse.Without(), false)
		case <-leaving:
			leaving = nil
			pulse.GiveUp(s.GiveUp)
			close(s.drain)
			s.stop()
			s.Say("stops when nothing is open that it challenged; the next Ctrl-C stops at once")
		case b, ok := <-blocks:
			if !ok {
				return member.ErrClosed
			}
			pulse.Block(b.Height)
			s.watch.Block(b.Height, b.Time)
			jobs, err := s.chain.Training.Runs(work, true)
			switch {
			case err != nil:
				s.log.Warn("cannot follow the chain", "err", err)
			case leaving != nil && !s.pause.Paused():
				s.look(work, jobs)
			}
		}
		if leaving == nil && s.idle() {
			return nil
		}
	}
}
