// Package hours keeps, for each hour of a worker or verifier, how long it was in which situation: hours.json in its
// folder. Each situation has a cause of the closed list of protocol/standing, so an hour without pay has a reason. It
// counts no coins: receipts do.
package hours

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/standing"
)

// File is the file in the folder of a worker or verifier.
const File = "hours.json"

// kept bounds the hours that are kept: 62 days.
const kept = 62 * 24

// Hour is one hour.
type Hour struct {
	Begins  time.Time                  `json:"hour"`          // in UTC
	From    time.Time                  `json:"from,omitzero"` // when the first process began; zero: before this hour
	Seconds map[standing.Cause]float64 `json:"seconds"`
	// the latest reason of each cause
	Why map[standing.Cause]Reason `json:"why"`
}

// Reason is a cause in words.
type Reason struct {
	Text string `json:"text"`
	Do   string `json:"do,omitempty"` // what changes it
}

// Main is the cause that took most of the hour.
func (h Hour) Main() standing.Cause {
	best, most := standing.CauseOff, -1.0
	for _, c := range standing.Causes { // the first of equals
		if s, noted := h.Seconds[c]; noted && s > most {
			best, most = c, s
		}
	}
	return best
}

// filled is the hour with the time that no process has noted, until now, as time without a process.
func (h Hour) filled(now time.Time) Hour {
	seconds, noted := map[standing.Cause]float64{}, 0.0
	for c, s := range h.Seconds {
		seconds[c] = s
		noted += s
	}
	whole := min(now.Sub(h.Begins), time.Hour)
	if !h.From.IsZero() {
		whole -= h.From.Sub(h.Begins)
	}
	if silent := whole.Seconds() - noted; silent > gap.Seconds() {
		seconds[standing.CauseOff] += silent
	}
	h.Seconds = seconds
	return h
}

// Because is the reason of a cause.
func (h Hour) Because(c standing.Cause) Reason {
	if r, ok := h.Why[c]; ok {
		return r
	}
	if c == standing.CauseOff {
		return Reason{"no process ran over the folder", "start it with starling worker up, as a service"}
	}
	return Reason{Text: strings.ReplaceAll(string(c), "_", " ")}
}

// Read returns the hours from the first that the folder knows, or from since if that is later, to that of now, the
// latest first. Time that is not noted is time without a process.
func Read(dir string, since, now time.Time) ([]Hour, error) {
	known, err := load(dir)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	by := map[time.Time]Hour{}
	for _, h := range known {
		by[h.Begins] = h
	}
	first := known[0].Begins
	if since = since.UTC().Truncate(time.Hour); since.After(first) {
		first = since
	}
	var list []Hour
	last := known[len(known)-1]
	for at := now.UTC().Truncate(time.Hour); !at.Before(first) && len(list) < kept; at = at.Add(-time.Hour) {
		h := by[at]
		h.Begins = at
		if why, ok := last.Why[standing.CauseOff]; ok && at.After(last.Begins) {
			h.Why = map[standing.Cause]Reason{standing.CauseOff: why}
		}
		list = append(list, h.filled(now))
	}
	return list, nil
}

type file struct {
	Hours []Hour `json:"hours"` // in order
}

func load(dir string) ([]Hour, error) {
	path := filepath.Join(dir, File)
	var f file
	if err := folder.ReadJSON(path, &f); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	for i, h := range f.Hours {
		if !h.Begins.Equal(h.Begins.UTC().Truncate(time.Hour)) || i > 0 && !h.Begins.After(f.Hours[i-1].Begins) {
			return nil, fmt.Errorf("%s: the hour %s is out of order", path, h.Begins)
		}
		f.Hours[i].Begins = h.Begins.UTC()
	}
	return f.Hours, nil
}

// record is the hours of a process.
type record struct {
	dir   string
	hours []Hour
	last  time.Time // to which everything is noted
	ended *Reason   // of the end of the process; nil: it runs, or its owner or the machine has stopped it
}

// gap is the longest time between two notes for which the later one speaks.
const gap = 3 * every

// note says that the process was in a situation since the last note.
func (l *record) note(now time.Time, c standing.Cause, why standing.Reason) {
	now = now.UTC()
	from := l.last
	l.last = now
	if from.IsZero() || now.Sub(from) > gap {
		from = now // the process begins, or the machine has slept
	}
	for more := true; more; more = from.Before(now) {
		begins := from.Truncate(time.Hour)
		to := begins.Add(time.Hour)
		if to.After(now) {
			to = now
		}
		h := l.at(begins)
		if h == nil {
			return // the clock was set back
		}
		if len(l.hours) == 1 && len(h.Seconds) == 0 {
			h.From = now
		}
		h.Seconds[c] += to.Sub(from).Seconds()
		h.Why[c] = Reason{why.Text, why.Do}
		if delete(h.Why, standing.CauseOff); l.ended != nil {
			h.Why[standing.CauseOff] = *l.ended
		}
		from = to
	}
}

func (l *record) at(begins time.Time) *Hour {
	n := len(l.hours)
	i, found := slices.BinarySearchFunc(l.hours, begins, func(h Hour, t time.Time) int { return h.Begins.Compare(t) })
	if !found && i < n {
		return nil
	}
	if !found {
		l.hours = append(l.hours, Hour{Begins: begins})
		if over := len(l.hours) - kept; over > 0 {
			l.hours = slices.Delete(l.hours, 0, over)
			i -= over
		}
	}
	h := &l.hours[i]
	if h.Seconds == nil {
		h.Seconds = map[standing.Cause]float64{}
	}
	if h.Why == nil {
		h.Why = map[standing.Cause]Reason{}
	}
	return h
}

func (l *record) write() error { return folder.WriteJSON(filepath.Join(l.dir, File), file{l.hours}) }
