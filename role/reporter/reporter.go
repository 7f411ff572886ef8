// Package reporter reports to the network how a member of runs was served by the others: the bytes that it fetched
// from each, their speed, and the round-trip time. An epoch pays for bytes that are so acknowledged, and shows each
// participant whether its peers find it slow.
//
// It is a step function like the other roles. protocol/registry decides the effect of a report, and how many peers
// must find a participant slow; package network/tally measures.
package reporter

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role"
)

const (
	turns = 12 // of an epoch: it reports once in each
	most  = 8  // peers that it reports about at once: those that gave it the most
)

// Least is the least number of bytes from a peer that is worth a report.
const Least = 1 << 20

// Reading has the measurements of a peer since the process began.
type Reading struct {
	Peer   string // its ID among the hosts
	Bytes  uint64 // that it delivered
	Timed  uint64 // of them, those that came in waits long enough to measure the way
	Micros uint64 // microseconds that the timed ones took
	RTT    uint32 // milliseconds of a round trip; 0: not known
}

// View is the input of a report.
type View struct {
	Runs         []run.State // in which the process works
	Participants []registry.Participant
	Readings     []Reading
}

// Report is the acknowledgement of the bytes from another member of a run since the last report about it.
type Report struct {
	Job, Peer string // the peer's account
	Link      registry.Link
}

// Key implements role.Action.
func (a Report) Key() string { return fmt.Sprintf("acknowledge %s %s", a.Job, a.Peer) }

var _ role.Action = Report{}

// Reporter reports for one account. It does not repeat a report, even if it failed: the next report is about other
// bytes.
type Reporter struct {
	id      string
	least   uint64
	phase   uint64
	begun   bool
	turn    int64
	settled map[string]bool    // runs after whose last round it has reported
	told    map[string]Reading // by account: the reading of the last report
}

// New returns the reporter of an account, which reports about peers that gave it at least this number of bytes.
func New(id string, least uint64) *Reporter {
	digest := canon.Sum("starling/reporter/phase", []byte(id))
	return &Reporter{
		id: id, least: max(1, least), phase: binary.BigEndian.Uint64(digest[:]), settled: map[string]bool{},
		told: map[string]Reading{},
	}
}

// Due reports whether it is time to report after a block, for which it is called once: when a twelfth of an epoch has
// passed, at blocks that differ from account to account, and after the last round of a run, the members of which cannot
// report about each other when it is over.
func (r *Reporter) Due(height, epochBlocks int64, runs []run.State) bool {
	interval := max(1, epochBlocks/turns)
	turn := (height + int64(r.phase%uint64(interval))) / interval
	due := r.begun && turn != r.turn
	r.begun, r.turn = true, turn
	settles := map[string]bool{}
	for _, s := range runs {
		if s.Phase == progress.Settle {
			settles[s.Terms.Job] = true
			due = due || !r.settled[s.Terms.Job]
		}
	}
	r.settled = settles
	return due
}

// Report returns the reports that are due, the largest first.
func (r *Reporter) Report(v View) (reports []Report) {
	jobs, readings := r.members(v.Runs), map[string]Reading{}
	for _, reading := range v.Readings {
		readings[reading.Peer] = reading
	}
	fresh := map[string]Reading{} // by account
	for _, p := range v.Participants {
		now, measured := readings[p.PeerID]
		if _, member := jobs[p.ID]; !member || !measured {
			continue
		}
		if since := now.since(r.told[p.ID]); since.Bytes >= r.least {
			fresh[p.ID] = since
		}
	}
	accounts := slices.SortedFunc(maps.Keys(fresh), func(a, b string) int {
		return cmp.Or(cmp.Compare(fresh[b].Bytes, fresh[a].Bytes), cmp.Compare(a, b))
	})
	for _, id := range accounts[:min(len(accounts), most)] {
		reports = append(reports, Report{jobs[id], id, fresh[id].link(r.least)})
		r.told[id] = readings[fresh[id].Peer]
	}
	return reports
}

// members are the other members of its runs in progress, each with the first of its runs.
func (r *Reporter) members(runs []run.State) map[string]string {
	jobs := map[string]string{}
	for _, s := range runs {
		if _, member := s.Member(r.id); !member || s.Phase == progress.Done || s.Phase == progress.Halted {
			continue
		}
		for _, m := range s.Members {
			if job, known := jobs[m.ID]; m.ID != r.id && (!known || s.Terms.Job < job) {
				jobs[m.ID] = s.Terms.Job
			}
		}
	}
	return jobs
}

// since is the difference from an earlier reading. A reading of another host, or of larger counts, because the counts
// were reset, is no earlier one.
func (r Reading) since(before Reading) Reading {
	if before.Peer == r.Peer && before.Bytes <= r.Bytes && before.Timed <= r.Timed && before.Micros <= r.Micros {
		r.Bytes, r.Timed, r.Micros = r.Bytes-before.Bytes, r.Timed-before.Timed, r.Micros-before.Micros
	}
	return r
}

// link is a reading as the registry takes it. If enough of the bytes were timed, all of them count as fast as those.
func (r Reading) link(least uint64) registry.Link {
	l := registry.Link{Bytes: min(r.Bytes, registry.MaxReport), RTT: min(r.RTT, registry.MaxRTT)}
	if r.Timed < least || r.Micros == 0 {
		return l
	}
	const milli = 1000
	high, low := bits.Mul64(r.Micros, l.Bytes)
	if high >= r.Timed {
		high, low = 0, math.MaxUint64 // longer than may be said
	}
	micros, _ := bits.Div64(high, low, r.Timed)
	l.Millis = min(max(1, micros/milli), registry.MaxReport)
	return l
}
