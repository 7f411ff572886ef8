package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/consumer"
)

// ErrFormat is returned for a file that is no journal.
var ErrFormat = errors.New("journal: not a journal of this program")

// vocabulary is what there is in events and actions.
var vocabulary = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, v := range []any{
		role.Block{}, role.Loaded{}, role.Advanced{}, role.Trained{}, role.Misled{}, role.Checked{}, role.Reduced{},
		role.Measured{}, role.Drain{}, role.Pause{}, role.Resume{}, role.Finished{}, role.Failed{}, role.Encrypted{},
		role.Load{}, role.Train{}, role.Commit{}, role.Reveal{}, role.Check{}, role.Pass{}, role.Unseal{}, role.Unmask{},
		role.Confess{}, role.Suspect{},
		role.Challenge{}, role.Refute{}, role.Move{}, role.Advance{}, role.Attest{}, role.Missing{}, role.LacksData{},
		role.Reduce{}, role.SealSlice{}, role.ShowSlice{}, role.Probe{}, role.Measure{}, role.Report{}, role.ShowReport{},
		role.Prove{}, role.Leave{}, role.Return{}, role.Stop{}, role.Depart{},
		consumer.Collect{}, consumer.Rewind{}, consumer.Conclude{},
	} {
		all[name(v)] = reflect.TypeOf(v)
	}
	return all
}()

func name(v any) string { return reflect.TypeOf(v).Name() }

// decode reads a value of a type of the vocabulary.
func decode[T any](kind string, text []byte) (v T, err error) {
	t, ok := vocabulary[kind]
	if !ok {
		return v, fmt.Errorf("there is no %q", kind)
	}
	p := reflect.New(t)
	if err := json.Unmarshal(text, p.Interface()); err != nil {
		return v, err
	}
	v, ok = p.Elem().Interface().(T)
	if !ok {
		return v, fmt.Errorf("%s is out of place", kind)
	}
	return v, nil
}

// Report is what came of a replay.
type Report struct {
	Header      Header       `json:"header"`
	From        int64        `json:"from"` // heights
	To          int64        `json:"to"`
	Events      int          `json:"events"`
	Actions     int          `json:"actions"` // that the journal has
	Unjudged    int          `json:"unjudged,omitempty"`
	Torn        bool         `json:"torn,omitempty"` // the last line was cut off
	Different   int          `json:"different"`
	Differences []Difference `json:"differences,omitempty"` // the first few
}

// Difference is an event after which the role asks for something else than the journal has.
type Difference struct {
	Line   int      `json:"line"`
	Height int64    `json:"height"`
	Event  string   `json:"event"`
	Logged []string `json:"logged"` // keys of the actions; of those that differ in content only, with the digest
	Asked  []string `json:"asked"`
}

const (
	maxLine        = 16 << 20 // bytes
	maxDifferences = 10       // shown
)

// Replay feeds a journal to a role and compares the actions of the role with the recorded ones. begin makes the role
// as it was when the journal began. A role whose journal begins in the middle of a run, because the file before it is
// elsewhere, repeats earlier actions: it is compared from the height at which the round at the beginning and the one
// after it are final.
func Replay(r io.Reader, begin func(Header) (func(role.Event) []role.Action, error)) (*Report, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	report := &Report{}
	if !s.Scan() {
		return nil, errors.Join(fmt.Errorf("%w: it is empty", ErrFormat), s.Err())
	}
	if err := json.Unmarshal(s.Bytes(), &report.Header); err != nil || report.Header.Format != Format {
		return nil, fmt.Errorf("%w: line 1: format %d, wanted %d (%v)", ErrFormat, report.Header.Format, Format, err)
	}
	step, err := begin(report.Header)
	if err != nil {
		return nil, err
	}
	p := player{report: report, step: step, judged: !report.Header.Continues}
	for line := 2; s.Scan(); line++ {
		if report.Torn {
			return nil, fmt.Errorf("%w: line %d cannot be read", ErrFormat, line-1)
		}
		var r record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			report.Torn = true // by a crash, if it is the last line
			continue
		}
		if err := p.play(line, r); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, line, err)
		}
	}
	return report, s.Err()
}

// player is in the middle of a replay.
type player struct {
	report *Report
	step   func(role.Event) []role.Action
	last   []byte // canonical bytes of the latest block
	first  uint32 // round of the first block
	judged bool
}

func (p *player) play(line int, r record) error {
	e, err := p.event(r)
	if err != nil {
		return err
	}
	if b, ok := e.(role.Block); ok {
		p.settle(b)
	}
	got := ask(p.step(e))
	p.report.Events++
	p.report.Actions += len(r.Actions)
	switch {
	case slices.Equal(got, r.Actions):
	case !p.judged:
		p.report.Unjudged++
	default:
		p.report.Different++
		if len(p.report.Differences) < maxDifferences {
			logged, asked := tell(r.Actions, got)
			p.report.Differences = append(p.report.Differences, Difference{line, r.Height, r.Event, logged, asked})
		}
	}
	return nil
}

// settle finds out whether the role has seen everything that it needs to know.
func (p *player) settle(b role.Block) {
	if p.report.From == 0 {
		p.report.From, p.first = b.Height, b.Run.Round
	}
	p.report.To = b.Height
	// The checkpoint that the round after the first begins with may have been made before the journal began.
	p.judged = p.judged || b.Run.Oldest() > p.first+1
}

func (p *player) event(r record) (role.Event, error) {
	switch r.Event {
	case name(role.Block{}):
		whole, err := unchange(r.Block, p.last)
		if err != nil {
			return nil, err
		}
		p.last = whole
		var b role.Block
		if err := canon.Unmarshal(whole, &b); err != nil {
			return nil, err
		}
		b.Height = r.Height
		return b, nil
	case name(role.Finished{}):
		a, err := decode[role.Action](r.Action, r.Value)
		return role.Finished{Action: a}, err
	case name(role.Failed{}):
		a, err := decode[role.Action](r.Action, r.Value)
		return role.Failed{Action: a, Err: errors.New(r.Error)}, err
	}
	return decode[role.Event](r.Event, r.Value)
}

// tell names the actions of two lists, those of equal keys with their digests.
func tell(logged, got []asked) (l, g []string) {
	names := func(list, other []asked) (out []string) {
		for _, a := range list {
			text := a.Key
			if slices.ContainsFunc(other, func(b asked) bool { return b.Key == a.Key && b.Digest != a.Digest }) {
				text += " (" + a.Digest + ")"
			}
			out = append(out, text)
		}
		return out
	}
	return names(logged, got), names(got, logged)
}
