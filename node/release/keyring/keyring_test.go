package keyring

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/node/coded"
	"github.com/starling-network/starling/node/release"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// author has the shards of a job, and answers questions about their keys.
type author struct {
	t      *testing.T
	m      data.Manifest
	shards [][]byte
	secret envelope.Secret
	gives  []int // keys in each answer

	mu     sync.Mutex
	asked  int
	answer func(q release.Question) (body []byte, err error) // nil: it gives keys
}

func newAuthor(t *testing.T) *author {
	t.Helper()
	c, err := data.Build([]source.File{{Format: source.Text, Data: bytes.Repeat([]byte("some words "), 100)}},
		tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	return &author{t: t, m: c.Manifest(100), shards: c.Shards(100), secret: envelope.Secret{1}, gives: []int{0, 1, 2}}
}

func (a *author) ask(_ context.Context, body []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	q, err := release.ParseQuestion(body)
	if err != nil || a.answer != nil && err == nil {
		if err == nil {
			return a.answer(q)
		}
		return nil, err
	}
	keys := envelope.Keys{}
	for _, i := range a.gives {
		keys[i] = a.secret.Key(i, a.m.Shards[i])
	}
	sealed, err := envelope.Enclose(q.Public, q.Job, q.Member, a.gives, keys)
	return canon.MustMarshal(release.Answer{Envelope: sealed}), err
}

func (a *author) fetch(_ context.Context, i int) ([]byte, error) {
	return a.secret.Seal(a.m, i, a.shards[i])
}

func (a *author) open(dir string) (*Ring, func(context.Context, int) ([]byte, error)) {
	a.t.Helper()
	r, err := Open(dir, "job", "member", len(a.shards), a.ask)
	if err != nil {
		a.t.Fatal(err)
	}
	return r, r.Decrypt(a.fetch)
}

// One question gets the keys of many shards; another process of the member has them, though the consumer is gone and
// a crash has cut off the last; and they are forgotten with the run.
func TestKeysOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, dir := newAuthor(t), t.TempDir()
		_, read := a.open(dir)
		var reading sync.WaitGroup
		for i := range 3 {
			reading.Go(func() {
				if plain, err := read(t.Context(), i); err != nil || !bytes.Equal(plain, a.shards[i]) {
					t.Errorf("shard %d: %v", i, err)
				}
			})
		}
		reading.Wait()
		if a.asked != 1 {
			t.Errorf("%d questions", a.asked)
		}
		files, err := filepath.Glob(filepath.Join(dir, folder, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		raw, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[0], append(raw, raw[:7]...), 0o600); err != nil {
			t.Fatal(err)
		}
		a.answer = func(release.Question) ([]byte, error) { return nil, errors.New("it is gone") }
		_, read = a.open(dir)
		if plain, err := read(t.Context(), 1); err != nil || !bytes.Equal(plain, a.shards[1]) {
			t.Errorf("after a restart: %v", err)
		}
		a.answer, a.gives = nil, []int{3}
		if _, err := read(t.Context(), 3); err != nil {
			t.Error(err)
		}
		if r, _ := a.open(dir); len(r.keys) != 4 {
			t.Errorf("%d keys are kept", len(r.keys))
		}
		if err := errors.Join(Forget(dir, "job"), Forget(dir, "job")); err != nil {
			t.Error(err)
		}
		if r, _ := a.open(dir); len(r.keys) > 0 {
			t.Errorf("%d keys of a run that is over", len(r.keys))
		}
	})
}

// A key that is not released is asked for again, and is a coded error when the patience is over or the unit is not
// wanted any more. The next try has the whole patience.
func TestKeyThatIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthor(t)
		_, read := a.open(t.TempDir())
		refuse := func(release.Question) ([]byte, error) {
			return canon.MustMarshal(release.Answer{Refused: release.NoUnit}), nil
		}
		a.answer = refuse
		begin := time.Now()
		_, err := read(t.Context(), 0)
		if c, ok := errors.AsType[*coded.Error](err); !ok || c.Code != Withheld || !errors.Is(err, release.NoUnit) {
			t.Errorf("read with %v", err)
		}
		if took := time.Since(begin); took > patience || a.asked < 5 || a.asked > 50 {
			t.Errorf("%d questions in %v", a.asked, took)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := read(ctx, 0); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, release.NoUnit) {
			t.Errorf("read with %v", err)
		}
		time.AfterFunc(time.Second, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.answer = nil
		})
		if _, err := read(t.Context(), 0); err != nil {
			t.Errorf("a key that comes late: %v", err)
		}
	})
}

// Answers that are no keys, or other ones, give no shard; a wrong key is replaced by the right one.
func TestLiesAboutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthor(t)
		wrong := func(numbers ...int) func(release.Question) ([]byte, error) {
			return func(q release.Question) ([]byte, error) {
				keys := envelope.Keys{}
				for _, i := range numbers {
					keys[i] = make([]byte, envelope.KeyBytes)
				}
				sealed, err := envelope.Enclose(q.Public, q.Job, q.Member, numbers, keys)
				return canon.MustMarshal(release.Answer{Envelope: sealed}), err
			}
		}
		dir := t.TempDir()
		for name, lie := range map[string]func(release.Question) ([]byte, error){
			"garbage":     func(release.Question) ([]byte, error) { return []byte{0xff, 1}, nil },
			"nothing":     func(release.Question) ([]byte, error) { return canon.MustMarshal(release.Answer{}), nil },
			"another key": wrong(0), "keys of others": wrong(5, 6),
			"an unknown refusal": func(release.Question) ([]byte, error) {
				return canon.MustMarshal(release.Answer{Refused: "SOMETHING"}), nil
			},
		} {
			a.answer = lie
			_, read := a.open(dir)
			if plain, err := read(t.Context(), 0); plain != nil || errors.Is(err, data.ErrShard) || err == nil {
				t.Errorf("%s: %q, %v", name, plain, err)
			}
			a.answer = nil
			if plain, err := read(t.Context(), 0); err != nil || !bytes.Equal(plain, a.shards[0]) {
				t.Errorf("after %s: %v", name, err)
			}
			if err := Forget(dir, "job"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A consumer that lies fills neither the memory nor the disk of a member with keys of shards that no job has.
func TestKeysOfNoShardAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, dir := newAuthor(t), t.TempDir()
		next := len(a.shards)
		a.answer = func(q release.Question) ([]byte, error) {
			keys, numbers := envelope.Keys{}, []int{}
			for range envelope.MaxKeys {
				keys[next], numbers = make([]byte, envelope.KeyBytes), append(numbers, next)
				next++
			}
			sealed, err := envelope.Enclose(q.Public, q.Job, q.Member, numbers, keys)
			return canon.MustMarshal(release.Answer{Envelope: sealed}), err
		}
		r, read := a.open(dir)
		if _, err := read(t.Context(), 0); !errors.Is(err, envelope.ErrKey) {
			t.Errorf("read with %v", err)
		}
		if info, err := os.Stat(r.path); len(r.keys) > 0 || err == nil && info.Size() > 0 {
			t.Errorf("%d keys in memory, %v on the disk", len(r.keys), info.Size())
		}
	})
}

// runs is a network with runs.
type runs map[string]run.State

func (r runs) Runs(context.Context, bool) ([]string, error) { return slices.Sorted(maps.Keys(r)), nil }

func (r runs) Run(_ context.Context, job string) (run.State, error) { return r[job], nil }

// Keys do not outlive the duties of a member, though its process did not run when these ended.
func TestKeysOfOldRunsAreForgotten(t *testing.T) {
	dir, r := t.TempDir(), runs{}
	if err := tidy(t.Context(), r, dir, "member"); err != nil {
		t.Errorf("a member without keys: %v", err)
	}
	seat := crew.Member{ID: "member", Role: crew.Worker}
	left := seat
	left.Why = reason.Left
	seat.Active = true
	for job, m := range map[string]crew.Member{"in": seat, "over": seat, "left": left, "liable": left} {
		s := run.State{}
		s.Phase, s.Members = progress.Train, []crew.Member{m}
		switch job {
		case "over":
			s.Phase = progress.Done
		case "liable":
			s.Units = work.Units{{Worker: "member", Status: work.Committed}}
		}
		r[job] = s
		ring, err := Open(dir, job, "member", 3, nil)
		if err == nil {
			err = ring.keep(envelope.Keys{1: make([]byte, envelope.KeyBytes)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tidy(t.Context(), r, dir, "member"); err != nil {
		t.Fatal(err)
	}
	for job, kept := range map[string]bool{"in": true, "over": false, "left": false, "liable": true} {
		if _, err := os.Stat(path(dir, job)); (err == nil) != kept {
			t.Errorf("keys of the run %s: %v", job, err)
		}
	}
}
