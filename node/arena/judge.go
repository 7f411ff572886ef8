package arena

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/canon"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/compute/model/copied"
	"github.com/starling-network/starling/compute/model/exampleloss"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/duel"
	"github.com/starling-network/starling/protocol/arena/hidden"
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
}

// sealed is the file of a report that was sealed, or is about to be.
type sealed struct {
	Salt   canon.Digest `json:"salt"`
	Report []byte       `json:"report"`
}

const (
	fileSealed = "sealed.json"
	dirModels  = "models"
)

// errLater is returned while files cannot be got and there is time to try again.
var errLater = errors.New("arena: files cannot be got yet")

// Block does what the account owes at a height to the contests that are open. An error of one contest does not keep it
// from the others.
func (j *Judge) Block(ctx context.Context, m Market, height int64) error {
	open, err := m.Contests(ctx, false)
	for _, c := range open {
		if slices.Contains(c.Panel, j.Account) && (c.Phase == arena.Sealing || c.Phase == arena.Opening) {
			err = errors.Join(err, j.contest(ctx, m, c.ID, height))
		}
	}
	return err
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
		var r arena.Report
		late := s.Until-height <= int64(s.Terms.Judging)/2
		if r, err = (&evaluation{Judge: j, s: s, dir: dir, late: late}).report(ctx); errors.Is(err, errLater) {
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
	r, err = s.Place(r, func(a, b uint32) (bool, error) {
		first, err := e.kept(fmt.Sprint(a), s.All[a-1].Model)
		if err != nil {
			return false, err
		}
		second, err := e.kept(fmt.Sprint(b), s.All[b-1].Model)
		if err != nil {
			return false, err
		}
		return duel.Better(first, second, duel.Seed(s.Seed, a, b))
	})
	if err != nil {
		return onDisk(err)
	}
	if err := m.OpenReport(ctx, s.ID, r, kept.Salt); err != nil {
		return err
	}
	j.Say(fmt.Sprintf("contest %d: the report is opened", s.ID))
	return onDisk(os.RemoveAll(filepath.Join(dir, dirModels)))
}

// evaluation is that of one contest.
type evaluation struct {
	*Judge
	s    module.Standing
	dir  string
	late bool // there is no time to try again

	examples [][]uint32
	base     *copied.Model
	failed   map[string]error // why the files of an entry cannot be got, by its number
}

// report is the report of a contest without its groups.
func (e *evaluation) report(ctx context.Context) (r arena.Report, err error) {
	switch err := e.set(ctx); {
	case errors.Is(err, hidden.ErrSet):
		e.Say(fmt.Sprintf("contest %d: %v", e.s.ID, err))
		return arena.Report{Absent: true}, nil
	case err != nil:
		return r, err
	}
	var baseLosses []uint32
	if !e.s.Terms.Base.IsZero() {
		m, err := e.model(ctx, "base", e.s.Terms.Base, e.s.Terms.BaseURL)
		if err == nil {
			e.base = &m
			baseLosses, err = e.losses(ctx, "base", e.s.Terms.Base, m)
		}
		if err != nil && !errors.Is(err, errAbsent) && !errors.Is(err, errInvalid) {
			return r, err
		}
	}
	e.fetchAll(ctx)
	r.Entries = make([]arena.Judged, len(e.s.All))
	losses := make([][]uint32, len(e.s.All))
	for i, entry := range e.s.All {
		r.Entries[i], losses[i], err = e.judge(ctx, entry)
		if err != nil {
			return r, err
		}
		if r.Entries[i].Status != arena.Placed {
			continue
		}
		of, isCopy, err := e.copies(ctx, r, losses, baseLosses, i)
		if err != nil {
			return r, err
		}
		if isCopy {
			r.Entries[i] = arena.Judged{Status: arena.Copy, Of: of}
			e.Say(fmt.Sprintf("contest %d: entry %d is a copy of entry %d", e.s.ID, entry.Number, of))
		}
	}
	return r, nil
}

// set gets the hidden set. The error wraps hidden.ErrSet if there is none to wait for.
func (e *evaluation) set(ctx context.Context) error {
	path := filepath.Join(e.dir, files.NameSet)
	if err := e.get(ctx, e.s.SetURL, files.NameSet, path, "", hidden.MaxBytes); err != nil {
		if errors.Is(err, errAbsent) {
			return fmt.Errorf("%w: %w", hidden.ErrSet, err)
		}
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return onDisk(err)
	}
	s, err := hidden.Decode(raw)
	if err == nil {
		err = s.Of(e.s.Terms)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	e.examples = s.Tokens()
	return nil
}

// Reasons why an entry has no losses.
var (
	errAbsent  = errors.New("its files cannot be got, or are not those of its digest")
	errInvalid = errors.New("it is no model that the contest takes")
)

// judge computes the losses of an entry.
func (e *evaluation) judge(ctx context.Context, entry arena.Entry) (arena.Judged, []uint32, error) {
	if entry.Model.IsZero() {
		return arena.Judged{Status: arena.Unrevealed}, nil, nil
	}
	name := fmt.Sprint(entry.Number)
	losses, err := e.kept(name, entry.Model)
	if err != nil {
		var m copied.Model
		if m, err = e.model(ctx, name, entry.Model, entry.URL); err == nil {
			losses, err = e.losses(ctx, name, entry.Model, m)
		}
	}
	switch {
	case errors.Is(err, errAbsent):
		e.Say(fmt.Sprintf("contest %d: entry %s: %v", e.s.ID, name, err))
		return arena.Judged{Status: arena.Absent}, nil, nil
	case errors.Is(err, errInvalid):
		e.Say(fmt.Sprintf("contest %d: entry %s: %v", e.s.ID, name, err))
		return arena.Judged{Status: arena.Invalid}, nil, nil
	case err != nil:
		return arena.Judged{}, nil, err
	}
	return arena.Judged{Status: arena.Placed, Losses: duel.Digest(losses), Mean: duel.Mean(losses)}, losses, nil
}

// copies finds the first earlier entry that an entry is a copy of; 0: the base of the contest.
func (e *evaluation) copies(ctx context.Context, r arena.Report, losses [][]uint32, base []uint32,
	i int) (of uint32, _ bool, _ error) {
	if base != nil && copied.Alike(base, losses[i]) {
		return 0, true, nil
	}
	var mine copied.Model
	for j := range i {
		if r.Entries[j].Status != arena.Placed {
			continue
		}
		if r.Entries[j].Losses == r.Entries[i].Losses || copied.Alike(losses[j], losses[i]) {
			return uint32(j + 1), true, nil
		}
		var err error
		if mine.Tensors == nil {
			if mine, err = e.model(ctx, fmt.Sprint(i+1), e.s.All[i].Model, e.s.All[i].URL); err != nil {
				return 0, false, err
			}
		}
		other, err := e.model(ctx, fmt.Sprint(j+1), e.s.All[j].Model, e.s.All[j].URL)
		if err != nil {
			return 0, false, err
		}
		if copied.Compare(other, mine, e.base).Copy() {
			return uint32(j + 1), true, nil
		}
	}
	return 0, false, nil
}

// lossesFile is what was computed of a model.
type lossesFile struct {
	Model  canon.Digest `cbor:"1,keyasint"`
	Losses []uint32     `cbor:"2,keyasint"`
}

func (e *evaluation) lossesPath(name string) string {
	return filepath.Join(e.dir, "losses-"+name+".cbor")
}

// kept reads the losses of a model that were computed before.
func (e *evaluation) kept(name string, model canon.Digest) ([]uint32, error) {
	raw, err := os.ReadFile(e.lossesPath(name))
	if err != nil {
		return nil, err
	}
	var f lossesFile
	if err := canon.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f.Model != model || len(f.Losses) != int(e.s.Terms.Examples) {
		return nil, errors.New("arena: the losses are of another model")
	}
	return f.Losses, nil
}

// losses computes the losses of a model, and keeps them.
func (e *evaluation) losses(ctx context.Context, name string, digest canon.Digest, m copied.Model) ([]uint32, error) {
	step := len(e.examples)/4 + 1
	said := step
	losses, err := exampleloss.Measure(ctx, m.Config, m.Tensors, e.examples, e.Threads, func(done int) {
		if done >= said {
			e.Say(fmt.Sprintf("contest %d: entry %s: %d of %d examples", e.s.ID, name, done, len(e.examples)))
			said = done + step
		}
	})
	if errors.Is(err, exampleloss.ErrExamples) {
		return nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	if err != nil {
		return nil, err
	}
	return losses, onDisk(folder.WriteFile(e.lossesPath(name), canon.MustMarshal(lossesFile{digest, losses})))
}
