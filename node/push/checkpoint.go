package push

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/prepare/hubfile"
	"github.com/starling-network/starling/node/push/record"
)

// maxWaiting bounds the checkpoints that wait on the disk. Of more, the oldest is given up.
const maxWaiting = 2

// Checkpoint writes the model of the checkpoint after a step into a folder, and has it copied. A failure is said, and
// costs the copy alone.
func (s *Sender) Checkpoint(step int, to []string, files []hubfile.File) {
	if s == nil || len(to) == 0 {
		return
	}
	s.makeRoom()
	from := record.FolderAt(step)
	dir := filepath.Join(s.Dir, filepath.FromSlash(from))
	err := os.RemoveAll(dir) // of a round that was rolled back
	for _, f := range files {
		if err == nil {
			err = folder.WriteFileBy(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Write)
		}
	}
	if err == nil {
		err = s.Add(from, to...)
	}
	if err != nil {
		s.say("warning: the checkpoint after step %d is not copied: %v", step, err)
		_ = os.RemoveAll(dir) // what is left of it
	}
}

// makeRoom gives up the oldest checkpoints that wait.
func (s *Sender) makeRoom() {
	s.mu.Lock()
	var waiting []string
	for _, r := range s.records {
		if r.From != "" && r.State == record.Waiting && !slices.Contains(waiting, r.From) {
			waiting = append(waiting, r.From)
		}
	}
	var given []string
	if over := len(waiting) - maxWaiting + 1; over > 0 {
		given = waiting[:over]
	}
	s.records = slices.DeleteFunc(s.records, func(r *record.Copy) bool {
		return r.State == record.Waiting && slices.Contains(given, r.From)
	})
	s.mu.Unlock()
	for _, from := range given {
		s.say("warning: %s is not copied: later ones wait for the store, too", filepath.Base(from))
		s.clear(from)
	}
}

// Rewind drops the checkpoints after a step, which a verdict made void. Copies of them are replaced when the run
// reaches their steps again.
func (s *Sender) Rewind(after int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	var void []string
	s.records = slices.DeleteFunc(s.records, func(r *record.Copy) bool {
		drop := r.From != "" && record.Step(r.From) > after && r.State != record.Sending
		if drop {
			void = append(void, r.From)
		}
		return drop
	})
	err := s.write()
	s.mu.Unlock()
	if err != nil {
		s.say("warning: %v", err)
	}
	for _, from := range void {
		s.clear(from)
	}
}
