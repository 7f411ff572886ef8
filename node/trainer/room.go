package trainer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/starling-network/starling/node/prepare/hubfile"
	"github.com/starling-network/starling/web/failure"
)

// DefaultSaved is how many bytes saved weights may take, unless Options says.
const DefaultSaved = 16 << 30

// room is how many bytes may still be written to the folder of saved weights: of all models and sessions, and of those
// before the server was started.
type room struct {
	out  string
	most int64
	left int64
}

// roomIn measures the folder of saved weights.
func roomIn(t *Trainer) (*room, error) {
	used := int64(0)
	err := filepath.WalkDir(t.out, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			used += info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // files may be removed meanwhile
		return nil, err
	}
	return &room{t.out, t.saved, t.saved - used}, nil
}

// writes writes a file, as far as there is room.
func (r *room) writes(f hubfile.File) func(io.Writer) error {
	return func(w io.Writer) error { return f.Write(bounded{r, w}) }
}

type bounded struct {
	room *room
	w    io.Writer
}

// Write implements io.Writer.
func (b bounded) Write(p []byte) (int, error) {
	if b.room.left < int64(len(p)) {
		return 0, failure.New(http.StatusInsufficientStorage, "WEIGHTS_FULL", fmt.Sprintf(
			"the weights do not fit: those in %s may take %d MiB together", b.room.out, b.room.most>>20),
			"remove some there, or start the server with a larger --saved")
	}
	b.room.left -= int64(len(p))
	return b.w.Write(p)
}
