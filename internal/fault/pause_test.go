package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// stopsWithin is how long a paused worker may compute, and the time in which the test sees that.
const stopsWithin = 2 * time.Second

// TestPauses lets the owners of two workers pause them in the middle of a unit. One resumes in time and commits the
// unit. The other stays paused: its unit goes to another worker before it is late, and it joins again when it is
// resumed. Both keep their stakes, and the model is that of an undisturbed run.
func TestPauses(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	n.set = []string{"--set", "training.global_batch_size=256"} // some seconds a unit
	j := n.order("pauses", 20)
	n.resumesInTime(j, n.workers[1])
	j.until("the first rounds", func(s run.State) bool { return s.Round >= warm })
	n.staysPaused(j, n.workers[2])
	j.tellNotes()
	j.finish()
}

// owner lets the owner of a worker pause or resume it.
func (j *job) owner(p *process, args ...string) (s pause.State) {
	j.t.Helper()
	said, err := exec.Command(program,
		append([]string{"worker", args[0], "--home", filepath.Join(j.dir, p.name), "-o", "json"}, args[1:]...)...).Output()
	if err != nil || json.Unmarshal(said, &s) != nil {
		j.t.Fatalf("%v of %s: %v\n%s", args, p.name, err, said)
	}
	return s
}

// status is what a worker says of itself.
func (j *job) status(p *process) (s provider.WorkerStatus) {
	j.t.Helper()
	said, err := exec.Command(program, "worker", "status", "--home", filepath.Join(j.dir, p.name), "-o", "json").Output()
	if err != nil || json.Unmarshal(said, &struct {
		Process *provider.WorkerStatus `json:"process"`
	}{&s}) != nil {
		j.t.Fatalf("the status of %s: %v\n%s", p.name, err, said)
	}
	return s
}

// inUnit waits until a worker is in the middle of a unit, pauses it, and returns the unit and its round. The worker
// stops computing at once.
func (j *job) inUnit(p *process, args ...string) (unit work.Unit, round uint32) {
	j.t.Helper()
	busy := func() bool {
		return slices.ContainsFunc(j.status(p).Actions,
			func(a instrument.ActionStatus) bool { return strings.HasPrefix(a.Action, "train") })
	}
	for {
		s := j.until("a unit in training", func(s run.State) bool { return trains(s, p) && busy() })
		before := resident(j, p)
		begun := time.Now()
		if s := j.owner(p, append([]string{"pause"}, args...)...); !s.Paused {
			j.t.Fatalf("%+v", s)
		}
		for busy() {
			if time.Since(begun) > stopsWithin {
				j.t.Fatalf("%s computes %v after it was paused", p.name, time.Since(begun))
			}
		}
		j.note("%s: stopped %v after the command, with %d MiB resident, %d before", p.name,
			time.Since(begun).Round(time.Millisecond), resident(j, p)>>20, before>>20)
		unit, round = s.Work(p.address)[0], s.Round
		s = j.after(1)
		if u := s.Units[unit.Index]; s.Round == round && (u.Status == work.Assigned || u.Worker != p.address) {
			return unit, round
		}
		j.owner(p, "resume") // it had computed the unit
	}
}

func (n *network) resumesInTime(j *job, p *process) {
	n.t.Helper()
	u, round := j.inUnit(p)
	s := j.after(12)
	if m, _ := s.Member(p.address); !m.Active || len(s.Work(p.address)) != 1 || s.Round != round {
		n.t.Fatalf("in its pause: %+v, %d units", m, len(s.Work(p.address)))
	}
	if said := j.status(p); !said.Pause.Paused || said.Pause.Why == "" || said.Pause.Since.IsZero() {
		n.t.Errorf("%+v", said.Pause)
	}
	if s := j.owner(p, "resume"); s.Paused {
		n.t.Errorf("%+v", s)
	}
	j.hurt = round
	j.expect(p, reward.Verified)
	j.until("its commitment", func(s run.State) bool {
		if s.Round == round && s.Units[u.Index].Worker != p.address {
			n.t.Fatalf("unit %d went to another worker", u.Index)
		}
		return s.Round > round
	})
}

func (n *network) staysPaused(j *job, p *process) {
	n.t.Helper()
	u, round := j.inUnit(p, "--for", "1h")
	s := j.until("it to hand its unit back", func(s run.State) bool { m, _ := s.Member(p.address); return !m.Active })
	if m, _ := s.Member(p.address); m.Why != reason.Left || m.Missed > 0 {
		n.t.Errorf("it is out for %q, %d deadlines were missed", m.Why, m.Missed)
	}
	if now := s.Units[u.Index]; s.Round == round && (now.Worker == p.address || j.height > u.Deadline) {
		n.t.Errorf("at %d: unit %+v, due at %d", j.height, now, u.Deadline)
	}
	j.until("the round to end without it", func(s run.State) bool { return s.Round > round+1 })
	j.paid = append(j.paid, func(receipts []reward.Receipt) {
		for _, r := range receipts {
			if r.Who == p.address && (r.Reason == reward.MissedDeadline || r.Amount == 0 && r.Reason != reward.Left) {
				n.t.Errorf("%+v", r)
			}
		}
	})
	if now := j.status(p); !now.Pause.Paused || now.Pause.Until.IsZero() {
		n.t.Errorf("%+v", now.Pause)
	}
	j.owner(p, "resume")
	j.until("it to join again", func(s run.State) bool { m, _ := s.Member(p.address); return m.Active })
}

// resident is the memory of a process that the system counts as its own, without pages of files, in bytes.
func resident(j *job, p *process) (bytesUsed uint64) {
	j.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	for line := range bytes.Lines(text) {
		if n, scanned := fmt.Sscanf(string(line), "RssAnon: %d kB", &bytesUsed); n == 1 && scanned == nil {
			return bytesUsed << 10
		}
	}
	j.t.Fatalf("no memory of %s: %v", p.name, err)
	return 0
}
