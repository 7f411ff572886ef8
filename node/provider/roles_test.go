package provider

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/internal/keyfile"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// stranger is a service of starling worker up as it is before it is connected, of a home in a folder.
func stranger(t *testing.T, dir string, class crew.Role) *service {
	t.Helper()
	h, _, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &service{Options: Options{Home: dir, Class: class}, key: h}
}

// A worker that a stranger starts plants faults in its commitments, in the same ones after a restart. Its key is a
// given one: which commitments it plants follows from the key, and one key in some hundred plants none of 200, or too
// many.
func TestStrangersWorkersPlant(t *testing.T) {
	dir := t.TempDir()
	if err := keyfile.Write(filepath.Join(dir, home.FileKey), bytes.Repeat([]byte{7}, 32)); err != nil {
		t.Fatal(err)
	}
	commits := func() (made []work.Commitment) {
		step, header := stranger(t, dir, crew.Worker).play(crew.Worker, "me", "job")
		if !header.Plants {
			t.Error("its journal does not say that it plants")
		}
		base := terms.Checkpoint{Root: canon.Digest{1}, CID: "base"}
		s := run.State{
			Progress: progress.Progress{
				Phase: progress.Train,
				Crew: crew.Crew{
					Terms:   terms.Terms{Job: "job", AuditPPM: 1},
					Members: []crew.Member{{ID: "me", Role: crew.Worker, Active: true, Commits: 100}},
				},
			},
		}
		s.Base = base
		for i := range uint32(200) {
			s.Units = append(s.Units, &work.Unit{Index: i, Status: work.Assigned, Worker: "me"})
		}
		step(role.Block{Height: 1, Run: s})
		for _, a := range step(role.Loaded{Action: role.Load{Checkpoint: base}}) {
			t.Fatalf("wants %v", a)
		}
		for _, a := range step(role.Block{Height: 2, Run: s}) {
			train, ok := a.(role.Train)
			if !ok {
				continue
			}
			right := []canon.Digest{{1}, canon.Sum("state", []byte{byte(train.Work.Unit)})}
			for _, c := range step(role.Trained{Action: train, Commit: work.Commitment{Segments: right, UpdateCID: "mine"}}) {
				if c, ok := c.(role.Commit); ok && c.Work == train.Work {
					made = append(made, c.Commit)
					if planted := !slices.Equal(c.Commit.Segments, right); planted && c.Commit.HiddenRoots.IsZero() {
						t.Error("a planted fault hides nothing")
					}
				}
			}
		}
		return made
	}
	made, again := commits(), commits()
	planted := 0
	for i, c := range made {
		if c.Segments[1] != canon.Sum("state", []byte{byte(i)}) {
			planted++
		}
		if !slices.Equal(c.Segments, again[i].Segments) || c.HiddenRoots != again[i].HiddenRoots {
			t.Errorf("unit %d: another commitment after a restart", i)
		}
	}
	if n := len(made); n != 200 || planted == 0 || planted > int(audit.MayPlant(100)) {
		t.Errorf("%d faults planted in %d commitments", planted, n)
	}
}

// A verifier that a stranger starts looks at units that were not drawn for it, and its journal can be played back.
func TestStrangersVerifiersWatch(t *testing.T) {
	dir := t.TempDir()
	s := run.State{
		Progress: progress.Progress{
			Phase: progress.Attest,
			Crew: crew.Crew{Members: []crew.Member{{ID: "me", Role: crew.Verifier, Active: true},
				{ID: "w", Role: crew.Worker, Active: true}}},
			Votes: []progress.Vote{{Member: "me"}},
		},
	}
	s.Base = terms.Checkpoint{Root: canon.Digest{1}, CID: "base"}
	for i := range uint32(8) {
		s.Units = append(s.Units, &work.Unit{Index: i, Status: work.Accepted, Worker: "w"})
	}
	first := func(header journal.Header, step func(role.Event) []role.Action) work.UnitID {
		if !header.Watches {
			t.Error("its journal does not say that it watches")
		}
		step(role.Loaded{Action: role.Load{Checkpoint: s.Base}})
		got := step(role.Block{Height: 1, Run: s})
		if len(got) != 1 {
			t.Fatalf("with nothing to audit it wants %v", got)
		}
		return got[0].(role.Check).Work
	}
	step, header := stranger(t, dir, crew.Verifier).play(crew.Verifier, "me", "job")
	at := first(header, step)
	if again := first(header, member.Cast(header, stranger(t, dir, crew.Verifier).key)); again != at {
		t.Errorf("played back it looks at %v first, and not at %v", again, at)
	}
}
