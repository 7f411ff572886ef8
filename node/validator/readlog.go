package validator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/runs"
)

// ErrNoLog is returned for a folder in which no process has written a log.
var ErrNoLog = errors.New("the folder has no log")

const (
	logEvery = 300 * time.Millisecond // between two looks at a log that is followed
	logPart  = 1 << 20                // bytes that are read at once, and the longest line
)

// ReadLog gives the lines of the end of the log of a worker's, verifier's or validator's folder, of at most so many
// bytes, and, with follow, those that are added, until the context ends.
func ReadLog(ctx context.Context, dir string, bytes int64, follow bool, each func(lines []string) error) error {
	path, err := logOf(dir)
	if err != nil {
		return err
	}
	look := time.NewTicker(logEvery)
	defer look.Stop()
	for from := -bytes; ; {
		l, err := runs.Tail(path, from, logPart)
		if err != nil {
			return err
		}
		if len(l.Lines) > 0 {
			if err := each(l.Lines); err != nil {
				return err
			}
		}
		more := l.To < l.Size && l.To > l.From
		if from = l.To; more {
			continue
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// logOf is the log in a folder.
func logOf(dir string) (string, error) {
	for _, name := range []string{provider.FileWorkerLog, keystore.FileValidatorLog} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return path, err
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoLog, dir)
}
