package pause

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock is the time of a test.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// noon is a time without daylight saving.
func noon() *clock { return &clock{time.Date(2030, 1, 10, 12, 0, 0, 0, time.UTC)} }

// script is a machine that a test sets.
type script struct {
	Reading
	err error
}

func (s *script) Read(Conditions, time.Time) (Reading, error) { return s.Reading, s.err }

func open(t *testing.T, dir string, c Conditions, now *clock) *Pauser {
	t.Helper()
	p, err := Open(dir, c, now.now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pass lets seconds pass, in each of which the machine is looked at.
func pass(t *testing.T, p *Pauser, now *clock, m Machine, seconds int) {
	t.Helper()
	for range seconds {
		now.Time = now.Add(time.Second)
		if err := p.Look(m); err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, when string, p *Pauser, paused bool) {
	t.Helper()
	if s, _ := p.State(); s.Paused != paused || paused == (s.Why == "") || paused == s.Since.IsZero() {
		t.Errorf("%s: %+v", when, s)
	}
}

// Busy processors pause the worker after three seconds, and it continues after they were free for a minute: below three
// quarters of the bound. Work of others that changes all the time does not stop and start it.
func TestBusyProcessors(t *testing.T) {
	now, m := noon(), &script{Reading: Reading{Others: 0.6}}
	p := open(t, t.TempDir(), Conditions{BusyCPU: 50}, now)
	pass(t, p, now, m, 2)
	m.Others = 0.1
	pass(t, p, now, m, 1)
	m.Others = 0.5
	pass(t, p, now, m, 3)
	expect(t, "busy for a moment, twice", p, false)
	pass(t, p, now, m, 1)
	expect(t, "busy for three seconds", p, true)
	begun, changes := now.Time, 0
	for k := range 600 {
		m.Others = []float64{0.05, 0.9}[k/40%2] // a change every 40 s
		_, changed := p.State()
		pass(t, p, now, m, 1)
		select {
		case <-changed:
			changes++
		default:
		}
	}
	expect(t, "busy now and then", p, true)
	if s, _ := p.State(); changes > 0 || !s.Since.Equal(begun) || !s.Until.IsZero() {
		t.Errorf("%d changes, %+v", changes, s)
	}
	m.Others = 0.45 // between the bounds
	pass(t, p, now, m, 300)
	expect(t, "nearly free", p, true)
	m.Others = 0.3
	pass(t, p, now, m, 60)
	expect(t, "free for less than a minute", p, true)
	_, changed := p.State()
	pass(t, p, now, m, 1)
	expect(t, "free for a minute", p, false)
	<-changed
}

func TestBatteryAndApps(t *testing.T) {
	now, m := noon(), &script{Reading: Reading{Battery: true}}
	p := open(t, t.TempDir(), Conditions{Apps: []string{"blender", "gimp"}}, now)
	pass(t, p, now, m, 5)
	expect(t, "on the battery, which is no condition", p, false)
	m.Running = []string{"gimp"}
	pass(t, p, now, m, 1)
	expect(t, "a program runs", p, true)
	m.Running = nil
	pass(t, p, now, m, 60)
	if s, _ := p.State(); !s.Paused || !strings.Contains(s.Why, "gimp runs") || strings.Contains(s.Why, "battery") {
		t.Errorf("%+v", s)
	}
	pass(t, p, now, m, 1)
	expect(t, "it ended a minute ago", p, false)

	p = open(t, t.TempDir(), Conditions{Battery: true}, now)
	pass(t, p, now, m, 1)
	expect(t, "on the battery", p, true)
	m.err = errors.New("unreadable")
	now.Time = now.Add(time.Hour)
	if err := p.Look(m); err == nil {
		t.Error("an error is not told")
	}
	pass(t, p, now, m, 100) // and told once
	expect(t, "unreadable", p, true)
	m.err, m.Battery = nil, false
	pass(t, p, now, m, 61)
	expect(t, "plugged in", p, false)
}

// The hours are those of the local clock, and the state says when they end.
func TestHours(t *testing.T) {
	var c Conditions
	if err := c.Hours.Set("22:00-07:00, 12:30-13:00"); err != nil {
		t.Fatal(err)
	}
	now := noon()
	p := open(t, t.TempDir(), c, now)
	for at, until := range map[string]string{"00:00": "07:00", "06:59": "07:00", "07:00": "", "12:29": "",
		"12:45": "13:00", "13:00": "", "21:59": "", "22:00": "07:00", "23:59": "07:00"} {
		x, err := time.Parse("15:04", at)
		if err != nil {
			t.Fatal(err)
		}
		now.Time = time.Date(2030, 1, 10, x.Hour(), x.Minute(), 30, 0, time.UTC)
		if err := p.Look(nil); err != nil {
			t.Fatal(err)
		}
		if s, _ := p.State(); s.Paused != (until != "") || s.Paused && (s.Until.Format("15:04") != until ||
			!s.Until.After(now.Time) || s.Until.Sub(now.Time) > 10*time.Hour) {
			t.Errorf("at %s: %+v", at, s)
		}
	}
	c = Conditions{}
	if err := c.Work.Set("22:00-07:00"); err != nil {
		t.Fatal(err)
	}
	now = noon()
	p = open(t, t.TempDir(), c, now)
	if s, _ := p.State(); !s.Paused || !s.Until.Equal(noon().Add(10*time.Hour)) || !strings.Contains(s.Why, "work-hours") {
		t.Errorf("by day: %+v", s)
	}
	now.Time = now.Add(11 * time.Hour)
	if err := p.Look(nil); err != nil {
		t.Fatal(err)
	}
	expect(t, "by night", p, false)
	for _, text := range []string{"", "22:00", "22:00-", "7-9", "25:00-26:00", "08:00-08:00", "08:00-09:00,",
		strings.Repeat("08:00-09:00,", maxSpans) + "08:00-09:00"} {
		if c.Work.Set(text) == nil {
			t.Errorf("%q are hours", text)
		}
	}
}

// The pause of an owner has an end or none, lasts when the process is started again, and is not ended by a condition
// that ends; conditions that hold are not ended by the owner.
func TestOwner(t *testing.T) {
	dir, now, m := t.TempDir(), noon(), &script{}
	c := Conditions{Battery: true}
	p := open(t, dir, c, now)
	if s, err := p.Pause(2 * time.Hour); err != nil || !s.Paused || !s.Until.Equal(now.Add(2*time.Hour)) {
		t.Fatalf("%+v, %v", s, err)
	}
	if info, err := os.Stat(filepath.Join(dir, fileOwner)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	now.Time = now.Add(time.Hour)
	p = open(t, dir, c, now)
	if s, _ := p.State(); !s.Paused || !s.Since.Equal(noon().Time) || !s.Until.Equal(noon().Add(2*time.Hour)) {
		t.Errorf("started again: %+v", s)
	}
	now.Time = now.Add(time.Hour)
	m.Battery = true
	pass(t, p, now, m, 1)
	expect(t, "over, and on the battery", p, true)
	if _, err := os.Stat(filepath.Join(dir, fileOwner)); !os.IsNotExist(err) {
		t.Error("the pause that is over is kept")
	}
	if s, err := p.Pause(0); err != nil || !s.Until.IsZero() || !strings.Contains(s.Why, "owner") ||
		!strings.Contains(s.Why, "battery") {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := p.Resume(); err != nil || !s.Paused || strings.Contains(s.Why, "owner") {
		t.Errorf("resumed on the battery: %+v, %v", s, err)
	}
	m.Battery = false
	if _, err := p.Pause(0); err != nil {
		t.Fatal(err)
	}
	pass(t, p, now, m, 500)
	expect(t, "plugged in, and paused by its owner", p, true)
	for range 2 {
		if s, err := p.Resume(); err != nil || s.Paused {
			t.Errorf("%+v, %v", s, err)
		}
	}
	for _, d := range []time.Duration{-1, MaxFor + 1} {
		if _, err := p.Pause(d); err == nil {
			t.Errorf("paused for %v", d)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, fileOwner), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, c, now.now); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("damaged: %v", err)
	}
	if s, changed := (*Pauser)(nil).State(); s.Paused || changed != nil {
		t.Error("what has no pauser is paused")
	}
}
