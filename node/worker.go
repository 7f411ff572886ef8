package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/verifier"
	"github.com/starling-network/starling/role/worker"
)

// WorkerOptions say how a worker or verifier takes part in a network.
type WorkerOptions struct {
	Home     string   // folder of its key and blobs; made if it is not there
	RPC      string   // HTTP interface of a validator
	Verifies bool     // it is a verifier, not a worker
	Price    uint64   // uzen per 10^15 floating-point operations
	Stake    uint64   // uzen, when it registers
	Threads  int      // of one unit
	Listen   []string // multiaddrs; none: any port of the loopback
	Log      *slog.Logger
	Say      func(string)
}

// DefaultPrice and DefaultStake are what a worker asks for and stakes if it is not told otherwise.
const (
	DefaultPrice = embeddedPrice
	DefaultStake = embeddedStake
)

// RunWorker takes part in a network: it registers, offers its work, and does its duties in every run that it is matched
// to. When the context ends it drains: it withdraws its offer, and returns when its runs are over.
func RunWorker(ctx context.Context, o WorkerOptions) error {
	s, err := openService(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	return s.serve(ctx)
}

// service is a worker or verifier with all its runs.
type service struct {
	WorkerOptions
	chain *client.Client
	host  *peer.Host
	store *blob.Disk
	hang  func() // ends the connection to the validator

	mu      sync.Mutex
	runs    map[string]bool // that it works in
	working sync.WaitGroup
}

func openService(ctx context.Context, o WorkerOptions) (*service, error) {
	h, err := openHome(o.Home)
	if err != nil {
		return nil, err
	}
	rpc, err := client.Dial(o.RPC)
	if err != nil {
		return nil, err
	}
	s := &service{WorkerOptions: o, chain: client.New(rpc, h.account()), runs: map[string]bool{}}
	s.hang = func() { s.chain.Close(); _ = rpc.Stop() }
	if s.store, err = blob.OpenDisk(filepath.Join(o.Home, dirBlobs)); err == nil {
		s.host, err = peer.New(peer.Config{Key: h.peer(), Store: s.store, Listen: o.Listen})
	}
	if err == nil {
		err = s.enlist(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *service) role() run.Role {
	if s.Verifies {
		return run.Verifier
	}
	return run.Worker
}

func (s *service) close() {
	if s.host != nil {
		_ = s.host.Close()
	}
	s.hang()
}

// enlist registers, or says where it is now, and offers its work.
func (s *service) enlist(ctx context.Context) error {
	id, addrs := s.host.ID().String(), s.host.Addrs()
	p, err := s.chain.Participant(ctx, s.chain.Address())
	switch {
	case errors.Is(err, client.ErrNotFound):
		err = s.chain.Register(ctx, []run.Role{s.role()}, id, addrs, device(), s.Stake)
	case err == nil && p.Jailed:
		return fmt.Errorf("node: %s was slashed and is not matched any more", p.ID)
	case err == nil:
		err = s.chain.UpdateAddresses(ctx, id, addrs)
	}
	if err != nil {
		return err
	}
	return s.chain.Offer(ctx, s.role(), s.Price, 1)
}

// serve joins runs as they come.
func (s *service) serve(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer s.working.Wait()
	defer end()
	blocks, err := s.chain.Blocks(work)
	if err != nil {
		return err
	}
	s.Say(fmt.Sprintf("%s offers its work at %d uzen per 10^15 operations", s.chain.Address(), s.Price))
	leaving, draining := ctx.Done(), false
	for {
		select {
		case <-leaving:
			leaving, draining = nil, true
			s.Say("draining: no new runs are taken; the next Ctrl-C stops at once")
			if err := s.chain.Offer(work, s.role(), s.Price, 0); err != nil {
				return err
			}
		case _, ok := <-blocks:
			if !ok {
				return errClosed
			}
			if err := s.join(work); err != nil {
				s.Log.Warn("cannot follow the chain", "err", err)
			}
		}
		if draining && s.idle() {
			s.Say("drained")
			return nil
		}
	}
}

func (s *service) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs) == 0
}

// join begins to work in the runs that the account is a new member of.
func (s *service) join(ctx context.Context) error {
	jobs, err := s.chain.Runs(ctx, true)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		s.mu.Lock()
		known := s.runs[job]
		s.mu.Unlock()
		if known {
			continue
		}
		state, err := s.chain.Run(ctx, job)
		if err != nil {
			return err
		}
		if m, ok := state.Member(s.chain.Address()); ok && m.Active {
			s.begin(ctx, job)
		}
	}
	return nil
}

// begin does the duties of a run until it is over or the account is out of it.
func (s *service) begin(ctx context.Context, job string) {
	s.mu.Lock()
	s.runs[job] = true
	s.mu.Unlock()
	p := &process{
		id: s.chain.Address(), threads: s.Threads, chain: client.Member{Client: s.chain, Job: job}, host: s.host, store: s.store,
		log: s.Log.With("job", job),
	}
	if p.step = worker.New(p.id).Step; s.Verifies {
		p.step = verifier.New(p.id).Step
	}
	s.Say("works on " + job)
	s.working.Go(func() {
		err := p.runToEnd(ctx)
		s.mu.Lock()
		delete(s.runs, job)
		s.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			s.Say(fmt.Sprintf("left %s: %v", job, err))
			return
		}
		s.Say("done with " + job)
	})
}

// runToEnd is run until the run is over or the account is no active member of it.
func (p *process) runToEnd(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	blocks, err := p.chain.Blocks(ctx)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	for {
		select {
		case err := <-ended:
			return err
		case _, ok := <-blocks:
			if !ok {
				end()
				return errors.Join(<-ended, errClosed)
			}
			s, err := p.chain.Run(ctx, p.chain.Job)
			if err != nil {
				continue // the next block asks again
			}
			if m, _ := s.Member(p.id); s.Phase == run.Done || s.Phase == run.Halted || !m.Active {
				end()
				return <-ended
			}
		}
	}
}
