package provider

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/hours"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/node/provider/peers"
	"github.com/starling-network/starling/protocol/run/crew"
)

// WorkerStatus is what a running worker or verifier says of itself.
type WorkerStatus struct {
	PID      int                       `json:"pid"`
	Version  string                    `json:"version"`
	Role     string                    `json:"role"`
	Address  string                    `json:"address"`
	PeerID   string                    `json:"peer_id"`
	Listen   []string                  `json:"listen"` // where others reach it
	Network  string                    `json:"network"`
	Since    time.Time                 `json:"since"`
	Height   int64                     `json:"height"` // of the latest block that it has seen; 0: none yet
	Time     time.Time                 `json:"block_time"`
	Draining bool                      `json:"draining"`
	Pause    pause.State               `json:"pause"`
	Runs     []string                  `json:"runs"`
	Actions  []instrument.ActionStatus `json:"actions"`
	Busy     []busy.Share              `json:"busy"`       // by class of work, since the process began
	Share    float64                   `json:"busy_share"` // of that time, in which at least one class computed
	Sent     uint64                    `json:"sent_bytes"` // over blob streams
	Received uint64                    `json:"received_bytes"`
	Peak     uint64                    `json:"peak_memory_bytes,omitempty"` // that it had resident; 0: not known
	Device   shared.Status             `json:"device"`                      // that computes its units
	Store    StoreStatus               `json:"store"`
	Replicas member.Replicas           `json:"replicas"` // blobs of runs that fall to it
	Peers    []peers.Status            `json:"peers"`
	Refused  map[string]string         `json:"refused,omitempty"` // runs that it left at once, and why
}

// StoreStatus is what the blobs of a party take, in bytes.
type StoreStatus struct {
	Held   int64 `json:"held_bytes"`
	Pinned int64 `json:"pinned_bytes"` // that runs need
	Quota  int64 `json:"quota_bytes"`
}

var _ control.Process = (*service)(nil)

// Status implements control.Process.
func (s *service) Status() any {
	w := WorkerStatus{
		PID: os.Getpid(), Version: s.Version, Role: classes(s), Address: s.chain.Address(),
		PeerID: s.host.ID().String(), Listen: s.host.Addrs(),
		Network: s.RPC, Since: s.since, Runs: []string{}, Peers: []peers.Status{}, Actions: s.watch.UnderWay(),
		Device: s.device.Status()}
	var all busy.Share
	w.Busy, all = s.watch.Busy.Shares()
	w.Share, w.Peak = all.Share, memory.Peak()
	w.Pause, _ = s.pause.State()
	w.Sent, w.Received = s.host.Traffic()
	w.Store, w.Replicas = StoreStatus(s.store.Usage()), s.replicas()
	for _, l := range s.host.Peers() {
		w.Peers = append(w.Peers, peers.StatusOf(l))
	}
	s.watch.Mu.Lock()
	w.Height, w.Time = s.watch.Height, s.watch.Time
	s.watch.Mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Draining, w.Refused = s.drains, maps.Clone(s.refused)
	for job := range s.runs {
		w.Runs = append(w.Runs, job)
	}
	slices.Sort(w.Runs)
	return w
}

// classes are the classes of work that a service offers, in words.
func classes(s *service) string {
	all := []string{s.Class.String()}
	if s.Verifies {
		all = append(all, crew.Verifier.String())
	}
	return s.Extra.Words(all)
}

// replicas are those of all runs.
func (s *service) replicas() (all member.Replicas) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.runs {
		r := p.Replicator.Load().Replicas()
		all.Held, all.Missing = all.Held+r.Held, all.Missing+r.Missing
	}
	return all
}

// Drain implements control.Process.
func (s *service) Drain() { s.leave() }

// expose serves metrics, and writes down what later commands need to know.
func (s *service) expose(ctx context.Context) error {
	m := s.watch.Metrics
	m.Traffic(s.host.Traffic)
	m.Gauge("starling_runs", "Runs that the process works in.", func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(len(s.runs))
	})
	for _, g := range []struct {
		name, help string
		of         func() float64
	}{
		{"starling_store_bytes", "Bytes of blobs that are stored or on their way in.",
			func() float64 { return float64(s.store.Usage().Held) }},
		{"starling_store_pinned_bytes", "Bytes of blobs that runs need.",
			func() float64 { return float64(s.store.Usage().Pinned) }},
		{"starling_store_quota_bytes", "Bytes of blobs that may be stored.",
			func() float64 { return float64(s.store.Usage().Quota) }},
		{"starling_replicas_held", "Blobs of runs that fall to this member and are here.",
			func() float64 { return float64(s.replicas().Held) }},
		{"starling_replicas_missing", "Blobs of runs that fall to this member and are not here yet.",
			func() float64 { return float64(s.replicas().Missing) }},
	} {
		m.Gauge(g.name, g.help, g.of)
	}
	m.Peers(s.host.Peers)
	s.hours = hours.New(s.Home, s.chain, func() hours.Process {
		s.mu.Lock()
		defer s.mu.Unlock()
		state, _ := s.pause.State()
		shares, _ := s.watch.Busy.Shares()
		return hours.Process{Pause: state, Refused: maps.Clone(s.refused), Cut: s.Head.Cut(), Busy: shares}
	}, m, s.log)
	stop, err := m.Serve(ctx, s.Metrics)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, stop)
	return folder.WriteJSON(filepath.Join(s.Home, keystore.FileParty),
		keystore.PartyFile{Network: s.RPC, Role: s.Class.String(), Verifies: s.Verifies})
}
