// Package record is push.json, the file in the folder of a run that lists the copies of its model in stores, and how
// far each is. It reads the file; package push writes it.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/stores"
	"github.com/starling-network/starling/node/push/parcel"
	"github.com/starling-network/starling/node/push/s3"
)

// File is the file of a folder.
const File = "push.json"

// States of a copy.
const (
	Waiting = "waiting"
	Sending = "sending"
	Done    = "done"
	Failed  = "failed" // no other try is made before a person has it made
)

// Copy is a copy, as the file has it.
type Copy struct {
	api.Push
	Uploads map[string]s3.Upload `json:"uploads,omitempty"` // that are open

	Again bool `json:"-"` // it was added while it was under way
}

// Load reads the copies of a folder; none if it has no such file.
func Load(dir string) ([]*Copy, error) {
	path := filepath.Join(dir, File)
	var kept struct {
		Pushes []*Copy `json:"pushes"`
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		return nil, parcel.OnDisk(fmt.Errorf("%s: %w", path, err))
	}
	for _, r := range kept.Pushes {
		if r == nil || !(stores.Push{To: r.To}).Known() || r.From != "" && Step(r.From) < 0 {
			return nil, parcel.OnDisk(fmt.Errorf("%s names what is no copy", path))
		}
	}
	return kept.Pushes, nil
}

// Read returns the copies of a folder for people and programs.
func Read(dir string) ([]api.Push, error) {
	kept, err := Load(dir)
	return Pushes(kept), err
}

// Pushes are copies for people and programs.
func Pushes(of []*Copy) (all []api.Push) {
	for _, r := range of {
		all = append(all, r.Push)
	}
	return all
}

// dirCheckpoints is the folder of a run with the checkpoints that wait to be copied. Each is removed when it is.
const dirCheckpoints = "checkpoints"

// FolderAt is the folder of the checkpoint after a step.
func FolderAt(step int) string { return fmt.Sprintf("%s/checkpoint-%d", dirCheckpoints, step) }

// Step is that of the checkpoint in a folder; -1: it holds none.
func Step(from string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(from, dirCheckpoints+"/checkpoint-"))
	if err != nil || n < 0 || FolderAt(n) != from {
		return -1
	}
	return n
}
