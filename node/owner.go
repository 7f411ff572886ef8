package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/starling-network/starling/node/control"
)

// WorkerStatus is what a running worker or verifier says of itself.
type WorkerStatus struct {
	PID      int            `json:"pid"`
	Version  string         `json:"version"`
	Role     string         `json:"role"`
	Address  string         `json:"address"`
	PeerID   string         `json:"peer_id"`
	Listen   []string       `json:"listen"` // where others reach it
	Network  string         `json:"network"`
	Since    time.Time      `json:"since"`
	Height   int64          `json:"height"` // of the latest block that it has seen; 0: none yet
	Time     time.Time      `json:"block_time"`
	Draining bool           `json:"draining"`
	Runs     []string       `json:"runs"`
	Actions  []ActionStatus `json:"actions"`
	Sent     uint64         `json:"sent_bytes"` // over blob streams
	Received uint64         `json:"received_bytes"`
}

var _ control.Process = (*service)(nil)

// Status implements control.Process.
func (s *service) Status() any {
	w := WorkerStatus{
		PID: os.Getpid(), Version: s.Version, Role: s.role().String(), Address: s.chain.Address(), PeerID: s.host.ID().String(), Listen: s.host.Addrs(),
		Network: s.RPC, Since: s.since, Runs: []string{}, Actions: s.watch.underWay(),
	}
	w.Sent, w.Received = s.host.Traffic()
	s.watch.mu.Lock()
	w.Height, w.Time = s.watch.height, s.watch.time
	s.watch.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Draining = s.drains
	for job := range s.runs {
		w.Runs = append(w.Runs, job)
	}
	slices.Sort(w.Runs)
	return w
}

// Drain implements control.Process.
func (s *service) Drain() { s.leave() }

// fileParty, in the folder of a worker or verifier, says how it last took part.
const fileParty = "party.json"

// PartyFile is party.json.
type PartyFile struct {
	Network string `json:"network"` // HTTP interface of a validator
	Role    string `json:"role"`    // worker or verifier
}

// ReadParty reads what the folder of a worker or verifier says about how it last took part; zero if it never did.
func ReadParty(dir string) (f PartyFile, err error) {
	path := filepath.Join(dir, fileParty)
	if _, err := os.Stat(path); err != nil {
		return f, nil
	}
	return f, readJSON(path, &f)
}

// expose serves metrics, and writes down what later commands need to know.
func (s *service) expose(ctx context.Context) error {
	m := s.watch.metrics
	m.Traffic(s.host.Traffic)
	m.Gauge("starling_runs", "Runs that the process works in.", func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(len(s.runs))
	})
	stop, err := m.Serve(ctx, s.Metrics)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, stop)
	return writeJSON(filepath.Join(s.Home, fileParty), PartyFile{Network: s.RPC, Role: s.role().String()})
}
