package arena

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/starling-network/starling/canon"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/duel"
)

// Market is the part of a network that an evaluator needs.
type Market interface {
	Contests(ctx context.Context, all bool) ([]arena.Contest, error)
	Contest(ctx context.Context, id uint64) (module.Standing, error)
	Seal(ctx context.Context, contest uint64, seal canon.Digest) error
	OpenReport(ctx context.Context, contest uint64, r arena.Report, salt canon.Digest) error
}

// Judge is the side of an evaluator. Its folder has what it downloaded, computed and sealed.
type Judge struct {
	Dir     string
	Account string
	Threads int
	Private bool              // files at private addresses are got, too
	Say     func(text string) // reports progress
	// Resting says that no model is to be evaluated now: reports that are made are still sealed and opened; nil: never
	Resting func() bool
	Memory  Memory        // for evaluations; nil: all that they need
	Begin   func() func() // takes note that an evaluation computes, and that it ended; may be nil

	began  time.Time // of the first block
	height int64     // of it
}

// Memory is what a machine has for work of several kinds.
type Memory interface {
	Reserve(work string, bytes int64) error
	Release(work string)
}

// sealed is the file of a report that was sealed, or is about to be.
type sealed struct {
	Salt   canon.Digest `json:"salt"`
	Report []byte       `json:"report"`
}

const (
	fileSealed = "sealed.json"
	patience   = 30 * time.Second // for a file, and a second more for each MiB that it may have
	dirModels  = "models"
)

// errLater is returned while files cannot be got and there is time to try again, or there is no memory.
var errLater = errors.New("arena: it cannot be evaluated yet")

// Block does what the account owes at a height to the contests that are open. An error of one contest does not keep it
// from the others.
func (j *Judge) Block(ctx context.Context, m Market, height int64) error {
	if j.began.IsZero() {
		j.began, j.height = time.Now(), height
	}
	open, err := m.Contests(ctx, false)
	if err != nil {
		return err
	}
	err = j.clear(open)
	for _, c := range open {
		if slices.Contains(c.Panel, j.Account) && (c.Phase == arena.Sealing || c.Phase == arena.Opening) {
			err = errors.Join(err, j.contest(ctx, m, c.ID, height))
		}
	}
	return err
}

// clear removes the files of contests that the account is no longer in the panel of, which may not have come so far
// that it opened a report.
func (j *Judge) clear(open []arena.Contest) error {
	dirs, err := os.ReadDir(j.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range dirs {
		in := func(c arena.Contest) bool { return fmt.Sprint(c.ID) == d.Name() && slices.Contains(c.Panel, j.Account) }
		if !slices.ContainsFunc(open, in) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(j.Dir, d.Name())))
		}
	}
	return onDisk(err)
}

// slice is how long the files of one model of a contest may take before the next is got: a quarter of the time that is
// left of the phase is enough for all, however slow the servers of some are. A later call continues.
func (j *Judge) slice(s module.Standing, height int64) time.Duration {
	block := time.Second
	if height > j.height {
		block = time.Since(j.began) / time.Duration(height-j.height)
	}
	return max(time.Second, time.Duration(s.Until-height)*block/time.Duration(4*len(s.All)+4))
}

func (j *Judge) contest(ctx context.Context, m Market, id uint64, height int64) error {
	s, err := m.Contest(ctx, id)
	if err != nil {
		return err
	}
	dir := filepath.Join(j.Dir, fmt.Sprint(id))
	at := slices.IndexFunc(s.Opinions, func(o arena.Opinion) bool { return o.Account == j.Account })
	switch {
	case s.Phase == arena.Sealing && at < 0:
		return j.seal(ctx, m, s, dir, height)
	case s.Phase == arena.Opening && at >= 0 && s.Opinions[at].Report == nil:
		return j.open(ctx, m, s, dir)
	}
	return nil
}

// seal evaluates the entries of a contest, and seals the report.
func (j *Judge) seal(ctx context.Context, m Market, s module.Standing, dir string, height int64) error {
	var kept sealed
	path := filepath.Join(dir, fileSealed)
	err := folder.ReadJSON(path, &kept)
	if errors.Is(err, fs.ErrNotExist) {
		if j.Resting != nil && j.Resting() {
			return nil
		}
		var r arena.Report
		late := s.Until-height <= int64(s.Terms.Judging)/2
		e := &evaluation{Judge: j, s: s, dir: dir, late: late, slice: j.slice(s, height)}
		if r, err = e.report(ctx); errors.Is(err, errLater) {
			j.Say(fmt.Sprintf("contest %d: %v", s.ID, err))
			return nil
		}
		if err != nil {
			return err
		}
		kept = sealed{draw(), canon.MustMarshal(r)}
		err = folder.WriteSecretJSON(path, kept)
	}
	if err != nil {
		return onDisk(err)
	}
	r, err := arena.DecodeReport(kept.Report)
	if err != nil {
		return onDisk(err)
	}
	if err := m.Seal(ctx, s.ID, r.Seal(s.ID, j.Account, kept.Salt)); err != nil {
		return err
	}
	j.Say(fmt.Sprintf("contest %d: the report is sealed", s.ID))
	return nil
}

// open compares the entries by the seed, and opens the report.
func (j *Judge) open(ctx context.Context, m Market, s module.Standing, dir string) error {
	var kept sealed
	if err := folder.ReadJSON(filepath.Join(dir, fileSealed), &kept); err != nil {
		return onDisk(err)
	}
	r, err := arena.DecodeReport(kept.Report)
	if err != nil {
		return onDisk(err)
	}
	e := &evaluation{Judge: j, s: s, dir: dir}
	if s.Committee > 0 {
		return j.show(ctx, m, s, r, kept.Salt, dir)
	}
	r, err = s.Place(r, func(a, b uint32) (bool, error) {
		first, err := e.kept(fmt.Sprint(a), s.All[a-1].Model)
		if err != nil {
			return false, err
		}
		second, err := e.kept(fmt.Sprint(b), s.All[b-1].Model)
		if err != nil {
			return false, err
		}
		return duel.Better(first.Losses, second.Losses, duel.Seed(s.Seed, a, b))
	})
	if err != nil {
		return onDisk(err)
	}
	return j.show(ctx, m, s, r, kept.Salt, dir)
}

// show opens a report.
func (j *Judge) show(ctx context.Context, m Market, s module.Standing, r arena.Report, salt canon.Digest,
	dir string) error {
	if err := m.OpenReport(ctx, s.ID, r, salt); err != nil {
		return err
	}
	j.Say(fmt.Sprintf("contest %d: the report is opened", s.ID))
	return onDisk(os.RemoveAll(filepath.Join(dir, dirModels)))
}
