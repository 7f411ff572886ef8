package keystore

import (
	"os"
	"path/filepath"

	"github.com/starling-network/starling/node/folder"
)

// fileParty, in the folder of a worker or verifier, says how it last took part.
const FileParty = "party.json"

// PartyFile is party.json.
type PartyFile struct {
	Network string `json:"network"` // HTTP interface of a validator
	Role    string `json:"role"`    // class of the work that it offers

	Verifies bool `json:"verifies,omitempty"` // it offers to verify, too
}

// ReadParty reads what the folder of a worker or verifier says about how it last took part; zero if it never did.
func ReadParty(dir string) (f PartyFile, err error) {
	path := filepath.Join(dir, FileParty)
	if _, err := os.Stat(path); err != nil {
		return f, nil
	}
	return f, folder.ReadJSON(path, &f)
}
