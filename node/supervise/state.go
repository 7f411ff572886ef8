package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/releases"
)

const fileState = "state.json"

// State is what the supervisor of a process remembers.
type State struct {
	Current   string            `json:"current,omitempty"`   // release that runs; "": the installed program
	Candidate string            `json:"candidate,omitempty"` // release that takes its place if it is ready and stays
	Refused   map[string]string `json:"refused,omitempty"`   // releases that failed, and why
	Pinned    string            `json:"pinned,omitempty"`    // earlier release that the owner asked for: it stays
}

// load reads the state. A candidate that was cut off is none; an installed program that is later than the current
// release takes its place.
func (s *supervisor) load() error {
	err := folder.ReadJSON(filepath.Join(s.dir, fileState), &s.state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.state.Candidate = ""
	if _, err := os.Stat(s.source.Program(s.state.Current)); err != nil {
		s.state.Current = ""
	}
	if s.state.Pinned == "" && s.Version != "" && !releases.Newer(s.state.Current, s.Version) {
		s.state.Current = ""
	}
	return nil
}

// save writes the state. Where that fails the process runs on: its work matters more than this state.
func (s *supervisor) save() {
	if err := folder.WriteJSON(filepath.Join(s.dir, fileState), s.state); err != nil {
		s.Say(fmt.Sprintf("the state of the releases cannot be written: %v", err))
	}
}

// fileUpgrade is where the application of a validator notes the upgrade that it waits for.
const fileUpgrade = "data/upgrade-info.json"

// chainWaits is the upgrade for which the validator of the folder has stopped; "": none.
func (s *supervisor) chainWaits() string {
	var waits struct {
		Name string `json:"name"`
	}
	if err := folder.ReadJSON(filepath.Join(s.Home, filepath.FromSlash(fileUpgrade)), &waits); err != nil {
		return ""
	}
	return waits.Name
}

// validator reports whether the folder is that of a validator.
func (s *supervisor) validator() bool {
	_, err := keystore.ReadValidator(s.Home)
	return err == nil
}
