package journey

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/processes"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/provider"
)

// Pause is a pause in the middle of a unit, by the command of the owner.
type Pause struct {
	Stopped   float64 `json:"stopped_seconds"`  // from the start of the command to the end of the computation
	Returned  float64 `json:"returned_seconds"` // until two thirds of the memory since its work began were free
	Before    int64   `json:"before_bytes"`     // memory of the process when it was paused
	After     int64   `json:"after_bytes"`      // then
	Idle      int64   `json:"idle_bytes"`       // memory of the process before it had work
	Slashed   uint64  `json:"slashed_uzen"`     // of its stake, after the pause
	Missed    uint32  `json:"missed"`           // deadlines
	Convicted bool    `json:"convicted"`
}

// anonymous is the memory of a process that no file backs.
const anonymous = "RssAnon"

// gaveBack bounds how long the memory of a paused process is watched.
const gaveBack = 30 * time.Second

// pause pauses the machine that has joined, again and again.
func pause(ctx context.Context, s *scene, count int) (all []Pause, err error) {
	home := filepath.Join(s.Dir, newcomer)
	for range count {
		p, err := s.pause(ctx, home)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// pause pauses a worker in the middle of a unit, until its memory is free, and lets it continue.
func (s *scene) pause(ctx context.Context, home string) (p Pause, err error) {
	const patience = 3 * time.Minute
	var now provider.WorkerStatus
	if err := processes.Until(ctx, patience, "the machine has no unit", func(ctx context.Context) (bool, error) {
		now, err = status(ctx, home)
		return err == nil && trains(now), err
	}); err != nil {
		return p, err
	}
	if p.Before, err = s.memory(); err != nil {
		return p, err
	}
	p.Idle = s.idle
	begin := time.Now()
	paused := make(chan error, 1)
	go func() { paused <- s.Run(ctx, &struct{}{}, "worker", "pause", "--home", home) }()
	if err := processes.Until(ctx, patience, "the machine computes in its pause",
		func(ctx context.Context) (bool, error) {
			now, err = status(ctx, home)
			return err == nil && now.Pause.Paused && !trains(now), err
		}); err != nil {
		return p, err
	}
	p.Stopped = benchmark.Rounded(time.Since(begin).Seconds(), 2)
	if err := <-paused; err != nil {
		return p, err
	}
	for p.Returned = gaveBack.Seconds(); time.Since(begin) < gaveBack; {
		if p.After, err = s.memory(); err != nil {
			return p, err
		}
		if p.After-p.Idle <= (p.Before-p.Idle)/3 { // connections and the state of the run stay
			p.Returned = benchmark.Rounded(time.Since(begin).Seconds(), 2)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := s.Run(ctx, &struct{}{}, "worker", "resume", "--home", home); err != nil {
		return p, err
	}
	return p, s.kept(ctx, now.Address, &p)
}

// kept reads what a pause cost.
func (s *scene) kept(ctx context.Context, account string, p *Pause) error {
	who, err := s.chain.Registry.Participant(ctx, account)
	if err != nil {
		return err
	}
	p.Slashed, p.Convicted = who.Slashed, who.Convicted > 0
	jobs, err := s.chain.Training.Runs(ctx, false)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		run, err := s.chain.Training.Run(ctx, job)
		if err != nil {
			return err
		}
		if m, known := run.Member(account); known {
			p.Missed += m.Missed
		}
	}
	return nil
}

// memory is that of the machine.
func (s *scene) memory() (int64, error) { return processes.Memory(s.machine, anonymous) }

func status(ctx context.Context, home string) (s provider.WorkerStatus, err error) {
	err = control.Status(ctx, home, &s)
	return s, err
}

// trains reports whether a worker computes a unit.
func trains(s provider.WorkerStatus) bool {
	return slices.ContainsFunc(s.Actions, func(a instrument.ActionStatus) bool {
		return strings.HasPrefix(a.Action, "train") && time.Since(a.Since) > 200*time.Millisecond
	})
}
