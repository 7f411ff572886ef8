package strategies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"github.com/starling-network/starling/node/benchmark"
)

// Run is a training run that is over, as a line of a file keeps it.
type Run struct {
	Key     string   `json:"key"`  // digest of all that the result depends on
	Name    string   `json:"name"` // of the strategy, or of the attack
	Seed    uint64   `json:"seed"`
	Loss    *float64 `json:"loss"`  // nats a token; null: the model diverged
	Bytes   int64    `json:"bytes"` // of the updates of a worker
	Seconds float64  `json:"seconds"`
}

// errLater says that a run is not kept, and that it is too late to begin it.
var errLater = errors.New("benchmark: left for later")

// resultsCache is the runs that are over, and the file that they are kept in. It is safe for concurrent use.
type resultsCache struct {
	path  string // "": nowhere
	until time.Time

	mu   sync.Mutex
	done map[string]Run
}

// openResultsCache reads the finished runs of a file, which may not exist. An incomplete last line, from an interrupted
// write, is dropped. With a limit, no run begins after it.
func openResultsCache(path string, limit time.Duration) (*resultsCache, error) {
	r := &resultsCache{path: path, done: map[string]Run{}}
	if limit > 0 {
		r.until = time.Now().Add(limit)
	}
	if path == "" {
		return r, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	} else if err != nil {
		return nil, benchmark.Unusable(path, err)
	}
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	for d := json.NewDecoder(bytes.NewReader(whole)); ; {
		var one Run
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, benchmark.Unusable(path, fmt.Errorf("after %d runs: %w: remove the line, or take another file",
				len(r.done), err))
		}
		r.done[one.Key] = one
	}
	if len(whole) < len(b) {
		err = os.Truncate(path, int64(len(whole)))
	}
	return r, err
}

// get returns the recorded result of a run.
func (r *resultsCache) get(key string) (Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.done[key]
	return one, ok
}

// do returns the recorded result of a run, or trains it and records the result.
func (r *resultsCache) do(one Run, train func() (loss float64, sent int64, err error)) (Run, error) {
	if kept, ok := r.get(one.Key); ok {
		return kept, nil
	}
	begin := time.Now()
	if !r.until.IsZero() && begin.After(r.until) {
		return Run{}, errLater
	}
	loss, sent, err := train()
	if err != nil {
		return Run{}, err
	}
	if one.Bytes, one.Seconds = sent, benchmark.Rounded(time.Since(begin).Seconds(), 1); !math.IsInf(loss, 0) {
		one.Loss = &loss
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[one.Key] = one
	return one, r.append(one)
}

func (r Run) loss() float64 {
	if r.Loss == nil {
		return math.Inf(1)
	}
	return *r.Loss
}

// append adds a line.
func (r *resultsCache) append(one Run) error {
	if r.path == "" {
		return nil
	}
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return benchmark.Unusable(r.path, err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
