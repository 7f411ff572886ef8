// Package keyring is the side of a member in the release of keys: it asks the consumer of a job for the keys of the
// encrypted shards that its units read, keeps them for as long as it is a member, and decrypts these shards in memory.
// Shards on its disk stay encrypted.
package keyring

import (
	"context"
	"crypto/hpke"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/coded"
	"github.com/starling-network/starling/node/release"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/protocol/run"
)

// Withheld is the code of the error of a key that is not released.
const Withheld = "KEY_NOT_RELEASED"

// folder, in a member's folder, holds the keys of shards, by job.
const folder = "keys"

// Ask asks the consumer of a job a question.
type Ask func(ctx context.Context, question []byte) ([]byte, error)

// Ring is the keys of one job that a member has. Its methods may be called concurrently.
type Ring struct {
	job, member string
	shards      int // of the job
	path        string
	ask         Ask

	asking  sync.Mutex // held for one question
	mu      sync.Mutex
	private hpke.PrivateKey
	keys    envelope.Keys
}

// path is the file of the keys of a job.
func path(dir, job string) string {
	return filepath.Join(dir, folder, canon.Sum("starling/keys/1", []byte(job)).Short())
}

// Open reads the keys that a member has of a job with a number of shards from its folder: those of an earlier process.
func Open(dir, job, member string, shards int, ask Ask) (*Ring, error) {
	r := &Ring{job: job, member: member, shards: shards, path: path(dir, job), ask: ask, keys: envelope.Keys{}}
	raw, err := os.ReadFile(r.path)
	if err == nil {
		rest := r.keys.ReadRecords(raw) // a crash cut off the last record: its key is asked for again
		err = os.Truncate(r.path, int64(len(raw)-len(rest)))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r.private, err = envelope.NewPrivate()
	return r, err
}

// Forget deletes the keys of a job in the folder of a member that has no more to do in it.
func Forget(dir, job string) error {
	err := os.Remove(path(dir, job))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Runs are the runs of a network.
type Runs interface {
	// Runs lists all runs, or those that are not over.
	Runs(ctx context.Context, active bool) ([]string, error)
	Run(ctx context.Context, job string) (run.State, error)
}

// Tidy deletes the keys in the folder of an account of runs in which it has no more to do: it left them, or they ended,
// perhaps while no process of it ran. It logs why it cannot.
func Tidy(ctx context.Context, of Runs, dir, account string, log *slog.Logger) {
	if err := tidy(ctx, of, dir, account); err != nil {
		log.Warn("cannot delete the keys of encrypted data of runs that are over", "err", err)
	}
}

func tidy(ctx context.Context, of Runs, dir, account string) error {
	files, err := os.ReadDir(filepath.Join(dir, folder))
	if len(files) == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	jobs, err := of.Runs(ctx, false)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if _, err := os.Stat(path(dir, job)); err != nil {
			continue
		}
		s, err := of.Run(ctx, job)
		if err == nil && s.Removed(account) && !s.Liable(account) {
			err = Forget(dir, job)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Decrypt returns how a shard is read in the clear, given how its encrypted bytes are read.
func (r *Ring) Decrypt(fetch func(ctx context.Context, shard int) ([]byte, error)) func(ctx context.Context,
	shard int) ([]byte, error) {
	return func(ctx context.Context, i int) ([]byte, error) {
		key, err := r.key(ctx, i)
		if err != nil {
			return nil, err
		}
		sealed, err := fetch(ctx, i)
		if err != nil {
			return nil, err
		}
		plain, err := envelope.OpenShard(key, sealed)
		if err != nil {
			r.drop(i)
			return nil, withheld(err)
		}
		return plain, nil
	}
}

// withheld is the error of a shard whose key is not there.
func withheld(err error) error {
	return &coded.Error{Code: Withheld, What: "its key is not released", Err: err,
		Fix: "nothing: it is asked for again for as long as the unit is this member's, and no stake is at risk; the " +
			"consumer of the job has to be online"}
}

// known is the key of a shard that is here; nil: it is not.
func (r *Ring) known(i int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[i]
}

// drop forgets a key that is wrong.
func (r *Ring) drop(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, i)
}

// A key that is refused is asked for again after a pause. The pause is doubled each time. After patience the unit that
// reads the shard fails, and is begun again with the next block.
const (
	again    = 100 * time.Millisecond // the first pause
	seldom   = 2 * time.Second        // the longest pause
	patience = 20 * time.Second
)

// key is the key of a shard, which is asked for if it is not here.
func (r *Ring) key(ctx context.Context, i int) ([]byte, error) {
	for begin, pause := time.Now(), again; ; pause = min(2*pause, seldom) {
		if k := r.known(i); k != nil {
			return k, nil
		}
		err := r.once(ctx, i)
		if k := r.known(i); k != nil {
			return k, nil
		}
		if err == nil {
			err = envelope.ErrKey // the answer has other keys
		}
		if ctx.Err() != nil || time.Since(begin)+pause >= patience {
			return nil, withheld(err)
		}
		select {
		case <-ctx.Done():
			return nil, withheld(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// once asks for the key of a shard, unless it has come with that of another.
func (r *Ring) once(ctx context.Context, i int) error {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.known(i) != nil {
		return nil
	}
	q := release.Question{Job: r.job, Member: r.member, Public: r.private.PublicKey().Bytes(), Shard: uint32(i)}
	body, err := r.ask(ctx, canon.MustMarshal(q))
	if err != nil {
		return err
	}
	keys, err := release.ParseAnswer(body, func(sealed []byte) (envelope.Keys, error) {
		return envelope.Disclose(r.private, r.job, r.member, sealed)
	})
	if err != nil {
		return err
	}
	return r.keep(keys)
}

// keep adds keys, to the file first: after a restart, a member that has committed to a unit can read the data of the
// unit again, also in a dispute and without the consumer. Keys of shards that the job does not have are left out.
func (r *Ring) keep(keys envelope.Keys) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []int
	for i := range keys {
		if i < r.shards && r.keys[i] == nil {
			fresh = append(fresh, i)
		}
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(envelope.AppendRecords(nil, fresh, keys))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	for _, i := range fresh {
		r.keys[i] = keys[i]
	}
	return nil
}
