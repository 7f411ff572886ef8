package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoLog is returned for a folder in which no process has written a log.
var ErrNoLog = errors.New("the folder has no log")

// ReadLog gives the lines of the end of the log of a worker's, verifier's or validator's folder, of at most so many bytes, and,
// with follow, those that are added, until the context ends.
func ReadLog(ctx context.Context, dir string, bytes int64, follow bool, each func(lines []string) error) error {
	f, err := openAny(dir, fileWorkerLog, fileValidatorLog)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from := max(0, info.Size()-bytes)
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	if from > 0 {
		if _, err := r.ReadString('\n'); err != nil && !errors.Is(err, io.EOF) { // the first line was cut
			return err
		}
	}
	look := time.NewTicker(logEvery)
	defer look.Stop()
	part := "" // of a line that is being written
	for {
		var lines []string
		for {
			text, err := r.ReadString('\n')
			part += text
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			lines, part = append(lines, strings.TrimRight(part, "\r\n")), ""
		}
		if len(lines) > 0 {
			if err := each(lines); err != nil {
				return err
			}
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

// logEvery is the time between two looks at a log that is followed.
const logEvery = 300 * time.Millisecond

// openAny opens the first of some files that is there.
func openAny(dir string, names ...string) (*os.File, error) {
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNoLog, dir)
}
