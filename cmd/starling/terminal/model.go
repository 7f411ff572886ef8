package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// UnreadableModel is the error about a folder whose model a command cannot use. The verb says how it would have used
// the model, and fix which folder it needs.
func UnreadableModel(verb, dir string, why error, fix string) error {
	return WithExit(&Problem{Code: "MODEL_UNREADABLE", What: "cannot " + verb + " the model in " + dir, Why: why.Error(),
		Fix: fix}, ExitNotFound)
}

// AnyModel is the fix for a command that takes every model of language.
const AnyModel = "give the output folder of a finished run, or a model folder in Hugging Face form"

// NoteIgnored names the keys of the config.json of a model that were ignored.
func (c *Console) NoteIgnored(dir string, keys []string) {
	if len(keys) > 0 && !c.Quiet {
		fmt.Fprintf(os.Stderr, "note: keys of %s that mean nothing to the model were ignored: %s\n",
			filepath.Join(dir, "config.json"), strings.Join(keys, ", "))
	}
}
