package push

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/prepare/hubfile"
)

// dirCheckpoints is the folder of a run with the checkpoints that wait to be copied. Each is removed when it is.
const dirCheckpoints = "checkpoints"

// maxWaiting bounds the checkpoints that wait on the disk. Of more, the oldest is given up.
const maxWaiting = 2

// folderAt is the folder of the checkpoint after a step.
func folderAt(step int) string { return fmt.Sprintf("%s/checkpoint-%d", dirCheckpoints, step) }

// Step is that of the checkpoint in a folder of a run; 0: the folder is that of the run itself.
func Step(from string) int { return max(0, step(from)) }

// step is that of the folder of a checkpoint; -1: it is none.
func step(from string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(from, dirCheckpoints+"/checkpoint-"))
	if err != nil || n < 0 || folderAt(n) != from {
		return -1
	}
	return n
}

// Checkpoint writes the model of the checkpoint after a step into a folder, and has it copied. A failure is said, and
// costs the copy alone.
func (s *Sender) Checkpoint(step int, to []string, files []hubfile.File) {
	if s == nil || len(to) == 0 {
		return
	}
	s.makeRoom()
	from := folderAt(step)
	dir := filepath.Join(s.Dir, filepath.FromSlash(from))
	err := os.RemoveAll(dir) // of a round that was rolled back
	for _, f := range files {
		if err == nil {
			err = keystore.WriteFileBy(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Write)
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
		if r.From != "" && r.State == Waiting && !slices.Contains(waiting, r.From) {
			waiting = append(waiting, r.From)
		}
	}
	var given []string
	if over := len(waiting) - maxWaiting + 1; over > 0 {
		given = waiting[:over]
	}
	s.records = slices.DeleteFunc(s.records, func(r *record) bool {
		return r.State == Waiting && slices.Contains(given, r.From)
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
	s.records = slices.DeleteFunc(s.records, func(r *record) bool {
		drop := r.From != "" && step(r.From) > after && r.State != Sending
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
