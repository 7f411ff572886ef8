package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// catch pauses a worker or verifier at a moment, and returns when one or two further blocks have shown that none of
// its transactions is in flight: if it is killed then, it has died at that moment. moment inspects the state of
// blocks; sure, unless it is nil, inspects disks, between two blocks and again while the process is paused. If the
// moment has passed before the pause, catch waits for it in a later round.
func (j *job) catch(p *process, what string, moment, sure func(run.State) bool) run.State {
	j.t.Helper()
	if sure == nil {
		sure = func(run.State) bool { return true }
	}
	for tries := 1; ; tries++ {
		s := j.until(what, moment)
		if !j.soon(func() bool { return sure(s) }) {
			continue
		}
		p.pause()
		if then := j.after(2); then.Round == s.Round && moment(then) && sure(then) {
			j.note("%s: caught after %d tries: %s", p.name, tries, what)
			j.strikes(then)
			return then
		}
		p.resume()
	}
}

// soon reports whether a condition becomes true in about the time of a block. It polls every few milliseconds,
// because the disk of another process sends no event.
func (j *job) soon(so func() bool) bool {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < blockTime; <-tick.C {
		if so() {
			return true
		}
	}
	return false
}

// trains reports whether a worker has a unit of the round that it is not bound to.
func trains(s run.State, p *process) bool {
	return s.Phase == progress.Train && has(s, p, work.Assigned)
}

func has(s run.State, p *process, status work.Status) bool {
	return slices.ContainsFunc(s.Units, func(u *work.Unit) bool { return u.Worker == p.address && u.Status == status })
}

// holders returns the members that have the updates of a worker's units of the round on their disks, and none before
// the updates are bound.
func (j *job) holders(s run.State, p *process) []*process {
	has := func(m *process, u *work.Unit) bool {
		_, err := os.Stat(filepath.Join(j.dir, m.name, "blobs", u.Commit.UpdateCID))
		return err == nil
	}
	mine := slices.DeleteFunc(slices.Clone(s.Units),
		func(u *work.Unit) bool { return u.Worker != p.address || u.Commit.UpdateCID == "" })
	return slices.DeleteFunc(j.members(), func(m *process) bool {
		return len(mine) == 0 || slices.ContainsFunc(mine, func(u *work.Unit) bool { return !has(m, u) })
	})
}

// diary is what the latest journal of a process says of the actions of its role, as far as it was read.
type diary struct {
	path string
	read int
	open map[string]int // kind: the first word of an action's key
}

// doing returns how many actions of a kind a process has begun and not finished in the job. Actions that were
// interrupted by its death count forever.
func (j *job) doing(p *process, kind string) int {
	j.t.Helper()
	paths, err := filepath.Glob(filepath.Join(j.dir, p.name, "events", "*-"+j.id+".jsonl"))
	if err != nil || len(paths) == 0 {
		return 0
	}
	d := &p.diary
	if latest := slices.Max(paths); latest != d.path { // their names begin with the time
		*d = diary{path: latest, open: map[string]int{}}
	}
	text, err := os.ReadFile(d.path)
	if err != nil {
		j.t.Fatal(err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for line := range bytes.Lines(text[d.read:whole]) {
		err = errors.Join(err, d.note(line))
	}
	if d.read = whole; err != nil {
		j.t.Fatalf("%s: %v", d.path, err)
	}
	return d.open[kind]
}

// note takes in a line of the journal.
func (d *diary) note(line []byte) error {
	var l struct {
		Event, Action string
		Actions       []struct{ Key string }
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	answers := map[string]string{"Loaded": "load", "Trained": "train", "Checked": "check", "Advanced": "advance",
		"Reduced": "reduce"}
	if kind, ok := answers[l.Event]; ok {
		d.open[kind]--
	} else if l.Action != "" {
		d.open[strings.ToLower(l.Action)]--
	}
	for _, a := range l.Actions {
		kind, _, _ := strings.Cut(a.Key, " ")
		d.open[kind]++
	}
	return nil
}
