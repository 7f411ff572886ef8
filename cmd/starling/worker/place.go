package worker

import (
	"os"
	"path/filepath"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/rundir"
)

// leastRoom is the disk below which the owner is warned, in bytes: what a member of the run of examples/quickstart.yaml
// needs, a model of less than a million parameters.
const leastRoom = 100_000_000

// notOfValidator returns an error if the folder is that of a validator or of a full node: it would hold two keys, and
// one disk would be full for both.
func notOfValidator(home string) error {
	if _, err := keystore.ReadValidator(home); err != nil {
		return nil
	}
	return terminal.WithExit(&terminal.Problem{Code: "VALIDATOR_EXISTS", What: home + " is the folder of a validator",
		Why: "a worker has an account and a key of its own, and its blobs may fill the disk",
		Fix: "give another --home, such as " + filepath.Clean(home) + "-worker; it is made"}, terminal.ExitConflict)
}

// tooLittleRoom is a warning where the disk, or the part of it for blobs, is too small for common jobs, or
// "". A folder that holds blobs had room for them.
func tooLittleRoom(o *provider.Options) string {
	dir := filepath.Clean(o.Home)
	if _, err := os.Stat(filepath.Join(dir, rundir.DirBlobs)); err == nil && o.Disk.Bytes == 0 {
		return ""
	}
	for ; !isFolder(dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) { // the folder is made later
	}
	room := o.Disk.Of(dir, 0)
	if room >= leastRoom {
		return ""
	}
	return "--disk " + o.Disk.String() + " leaves " + terminal.Bytes(uint64(room)) + " for blobs, and a run of a small " +
		"model takes " + terminal.Bytes(leastRoom) + ": runs that need more are left at once (STORE_TOO_SMALL). Make " +
		"room, raise --disk, or give a --home on another disk"
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}
