// Package runs reads the folders of runs and simulations, finished or being written, for servers and commands that
// show them: it implements source.Runs over a disk.
//
// A folder is read once and then followed: appended data is read from where the last read ended, and a file that was
// replaced is read again. The package writes nothing and locks nothing, so that it does not disturb a process that
// trains. It knows no network: data that only the process of a run has arrive through Live.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/source"
)

// Files of a run's folder that are read here.
const (
	fileRun        = "run.json"
	fileJob        = "job.yaml"
	fileSummary    = "summary.json"
	fileSimulation = "simulation.json"
	fileMetrics    = "metrics.jsonl"
	fileLineage    = "lineage.jsonl"
	fileReceipts   = "receipts.jsonl"
	fileDisputes   = "disputes.jsonl"
	fileSamples    = "samples.jsonl"
	fileLinks      = "links.jsonl"
	fileLog        = "starling.log"

	// FileSubmitted holds a Submitted.
	FileSubmitted = "submitted.json"
)

// ErrNoRuns is returned for a folder without runs.
var ErrNoRuns = errors.New("the folder holds no run of starling")

// Live is the data of a run that its process has and its files do not. Its methods are called concurrently.
type Live interface {
	// Progress of the run at this moment.
	Progress() Progress
	// Books are what the network knows so far; an error while they cannot be had.
	Books(ctx context.Context) (Payments, error)
}

// Payments are what a network knows of a run.
type Payments struct {
	Receipts []api.Receipt
	Disputes []api.Dispute
	Links    []api.Link
}

// Progress is how far a run is.
type Progress struct {
	Queued      bool        // it has not begun
	Why         *api.Reason // that it is as it is; nil: the phase says it
	Phase       string
	Workers     int
	PaidUzen    uint64
	SecondsLeft float64
}

// RunStore is the runs below a folder. It is safe for concurrent use.
type RunStore struct {
	root   string // absolute
	given  string // as the caller gave it
	single bool   // the root is a run itself

	mu      sync.Mutex
	scanned time.Time
	folders map[string]*folder // by id
	live    map[string]Live    // by absolute path
}

// Limits of a library.
const (
	maxRuns  = 2000
	maxDepth = 3
	// scanAge is how old the list of folders may be, lookAge the look at the files of one.
	scanAge = time.Second
	lookAge = 100 * time.Millisecond
)

// Open returns the runs of a folder: of one that is a run, itself; of any other, those below it. It may have none yet,
// unless it does not exist.
func Open(path string) (*RunStore, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(root)
	if err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: %s", ErrNoRuns, path)
	}
	return &RunStore{root: root, given: filepath.Clean(path), single: isRun(root), folders: map[string]*folder{},
		live: map[string]Live{}}, nil
}

// One returns the library of a single run, whose folder may not be there yet.
func One(path string) (*RunStore, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return &RunStore{root: root, given: filepath.Clean(path), single: true, folders: map[string]*folder{},
		live: map[string]Live{}}, nil
}

// Single reports whether the folder is a run itself, and not one of runs.
func (l *RunStore) Single() bool { return l.single }

func isRun(dir string) bool {
	for _, name := range []string{fileRun, fileSimulation, FileSubmitted} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Attach says where more about the run of a folder is to be had, until detach.
func (l *RunStore) Attach(dir string, live Live) (detach func(), err error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[path] = live
	l.scanned = time.Time{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.live, path)
	}, nil
}

// scan looks for folders of runs, if the last look is old.
func (l *RunStore) scan() {
	if time.Since(l.scanned) < scanAge {
		return
	}
	found := map[string]string{}
	if l.single {
		found[filepath.Base(l.root)] = l.root
	} else {
		_ = filepath.WalkDir(l.root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // what cannot be read is not shown
			}
			if path == l.root {
				return nil
			}
			rel, _ := filepath.Rel(l.root, path)
			if strings.HasPrefix(d.Name(), ".") || strings.Count(rel, string(filepath.Separator)) >= maxDepth ||
				len(found) >= maxRuns {
				return filepath.SkipDir
			}
			if isRun(path) {
				found[ID(rel)] = path
				return filepath.SkipDir
			}
			return nil
		})
	}
	for id, path := range found {
		if f := l.folders[id]; f == nil || f.path != path {
			rel, _ := filepath.Rel(l.root, path)
			l.folders[id] = &folder{id: id, path: path, shown: filepath.Join(l.given, rel)}
		}
	}
	for id := range l.folders {
		if _, ok := found[id]; !ok {
			delete(l.folders, id)
		}
	}
	l.scanned = time.Now()
}

// ID is the identifier of the run whose folder lies at a path below the root: a sweep's parts are sweep:000,
// sweep:001 ...
func ID(rel string) string { return strings.ReplaceAll(filepath.ToSlash(rel), "/", ":") }

// all are the folders in no order, with the known data that are not in their files.
func (l *RunStore) all() (list []*folder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scan()
	for _, f := range l.folders {
		f.beside(l.live[f.path])
		list = append(list, f)
	}
	return list
}

// one is the folder of a run. An identifier is looked up, never made into a path.
func (l *RunStore) one(id string) (*folder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scan()
	f := l.folders[id]
	if f == nil {
		return nil, fmt.Errorf("%w: run %s", failure.ErrNotFound, id)
	}
	f.beside(l.live[f.path])
	return f, nil
}

// Again has the files of a run read at the next look at it, however new the last one is.
func (l *RunStore) Again(id string) {
	if f, err := l.one(id); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.looked = time.Time{}
	}
}

// List implements source.Runs.
func (l *RunStore) List(ctx context.Context) ([]api.Job, error) {
	var jobs []api.Job
	for _, f := range l.all() {
		if h, err := f.history(ctx); err == nil {
			j := h.Job
			j.Facts, j.Parties = nil, nil // of the job alone
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b api.Job) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID)) })
	return jobs, nil
}

// History implements source.Runs.
func (l *RunStore) History(ctx context.Context, id string) (*source.History, error) {
	f, err := l.one(id)
	if err != nil {
		return nil, err
	}
	return f.history(ctx)
}

// Log implements source.Runs.
func (l *RunStore) Log(_ context.Context, id string, from int64, limit int) (api.Log, error) {
	f, err := l.one(id)
	if err != nil {
		return api.Log{}, err
	}
	return Tail(filepath.Join(f.path, fileLog), from, limit)
}

// Tail reads whole lines of a file from an offset, of at most so many bytes; a negative one counts from its end. The
// first line is left out where it was cut. A file that is missing has no lines.
func Tail(path string, from int64, limit int) (api.Log, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return api.Log{Lines: []string{}}, nil
	}
	if err != nil {
		return api.Log{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return api.Log{}, err
	}
	size := info.Size()
	begun := from < 0 && from > math.MinInt64 && size+from > 0
	if from < 0 {
		from = max(0, size+max(from, -size))
	}
	out := api.Log{Lines: []string{}, From: min(from, size), Size: size}
	b := make([]byte, min(int64(limit), size-out.From))
	n, err := f.ReadAt(b, out.From)
	if err != nil && n < len(b) {
		return out, err
	}
	text := string(b)
	if begun {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			rest = ""
		}
		out.From += int64(len(text) - len(rest))
		text = rest
	}
	end := strings.LastIndexByte(text, '\n') + 1
	if end == 0 && len(text) == limit {
		end = len(text) // one line longer than the limit: as much of it
	}
	out.To = out.From + int64(end)
	if end > 0 {
		out.Lines = strings.Split(strings.TrimSuffix(strings.ToValidUTF8(text[:end], "?"), "\n"), "\n")
	}
	return out, nil
}
