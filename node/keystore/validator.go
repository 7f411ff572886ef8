package keystore

import (
	"fmt"
	"path/filepath"

	"github.com/starling-network/starling/node/folder"
)

// fileValidatorLog, in the folder of a validator, says what went wrong inside the chain.
const FileValidatorLog = "validator.log"

// fileStopped, in the folder of a validator, says why it is stopped while its process runs.
const FileStopped = "stopped.json" // an endpoint.Halted

// Kind is what runs from the file.
func (f ValidatorFile) Kind() string {
	if f.Full {
		return "full node"
	}
	return "validator"
}

func ReadValidator(dir string) (f ValidatorFile, err error) {
	if err := folder.ReadJSON(filepath.Join(dir, FileValidator), &f); err != nil {
		return f, fmt.Errorf("%w: %w", ErrNoValidator, err)
	}
	return f, nil
}
