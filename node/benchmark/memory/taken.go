package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run/crew"
)

// sampled is how often the files of a run are counted.
const sampled = 200 * time.Millisecond

// most calls count again and again until ended is closed, and returns the most that it returned.
func most(ended <-chan struct{}, count func() int64) (most int64) {
	again := time.NewTicker(sampled)
	defer again.Stop()
	for {
		most = max(most, count())
		select {
		case <-ended:
			return most
		case <-again.C:
		}
	}
}

// files are the bytes of the files of a process: those below a folder, of which equal blobs have one name and are one
// file, and those without a name, where /proc tells them.
func files(dir string, process int) (sum int64) {
	sizes := map[string]int64{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it has gone meanwhile
		}
		if filepath.Base(filepath.Dir(path)) == rundir.DirBlobs {
			path = d.Name()
		}
		if info, err := d.Info(); err == nil {
			sizes[path] = info.Size()
		}
		return nil
	})
	proc := filepath.Join("/proc", strconv.Itoa(process))
	open, _ := filepath.Glob(filepath.Join(proc, "fd", "*"))
	for _, f := range open {
		if path, err := os.Readlink(f); err == nil && strings.HasSuffix(path, unnamed) {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
				sizes[path] = info.Size()
			}
		}
	}
	if maps, err := os.ReadFile(filepath.Join(proc, "maps")); err == nil {
		for path, n := range mappedUnnamed(maps) {
			sizes[path] = max(sizes[path], n)
		}
	}
	for _, n := range sizes {
		sum += n
	}
	return sum
}

// unnamed is the end of the path of a file that has no name any more, as Linux prints it.
const unnamed = " (deleted)"

// mappedUnnamed are the bytes of the files without a name that /proc/PID/maps lists, by the path that they had.
func mappedUnnamed(maps []byte) map[string]int64 {
	found := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		line := lines.Text()
		at := strings.IndexByte(line, '/')
		if at < 0 || !strings.HasSuffix(line, unnamed) || strings.HasPrefix(line[at:], "/dev/") {
			continue
		}
		var from, to int64
		if n, _ := fmt.Sscanf(line, "%x-%x", &from, &to); n == 2 {
			found[line[at:]] += to - from
		}
	}
	return found
}

// received is the most that a worker of a run has received: one that finds blobs on the disk of another party of its
// process does not fetch them.
func received(dir string) (bytes int64, err error) {
	links, err := rundir.ReadLines[api.Link](filepath.Join(dir, rundir.FileLinks))
	if err != nil {
		return 0, err
	}
	receipts, err := rundir.ReadLines[rundir.ReceiptLine](filepath.Join(dir, rundir.FileReceipts))
	if err != nil {
		return 0, err
	}
	by := map[string]int64{}
	for _, l := range links {
		by[l.By] += int64(l.Bytes)
	}
	for _, r := range receipts {
		if r.Role == crew.Worker {
			bytes = max(bytes, by[r.Who])
		}
	}
	return bytes, nil
}
