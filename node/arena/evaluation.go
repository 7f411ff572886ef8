package arena

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/compute/model/copied"
	"github.com/starling-network/starling/compute/model/exampleloss"
	modelfolder "github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/node/download"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/untrusted"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/duel"
	"github.com/starling-network/starling/protocol/arena/hidden"
)

// evaluation is that of one contest.
type evaluation struct {
	*Judge
	s     module.Standing
	dir   string
	late  bool          // there is no time to try again
	slice time.Duration // for the files of a model

	examples [][]uint32
	key      canon.Digest  // of the set: no entrant knew it
	base     *copied.Model // of the contest; nil: it has none
	baseLoss arena.Losses  // of a round
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
	baseLosses, err := e.onBase(ctx)
	if errors.Is(err, errAbsent) || errors.Is(err, errInvalid) {
		e.Say(fmt.Sprintf("contest %d: the base: %v", e.s.ID, err))
		return arena.Report{Absent: true}, nil
	}
	if err != nil {
		return r, err
	}
	r.Entries = make([]arena.Judged, len(e.s.All))
	losses := make([][]uint32, len(e.s.All))
	var later error
	for i, entry := range e.s.All {
		r.Entries[i], losses[i], err = e.judge(ctx, entry)
		if errors.Is(err, errLater) {
			later = err // the others do not wait for it
		} else if err != nil {
			return r, err
		}
	}
	if later != nil {
		return r, later
	}
	if e.s.Committee > 0 { // models of a round are entered before any is shown: none is the copy of another
		r.Base = e.baseLoss.Exact
		return r, nil
	}
	for i, entry := range e.s.All {
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

// onBase gets the base of the contest, and its losses; nil if there is none. A host that does not publish it hides what
// entries are judged by: without it, all that are tuned from it would be copies of the first.
func (e *evaluation) onBase(ctx context.Context) ([]uint32, error) {
	if e.s.Terms.Base.IsZero() {
		return nil, nil
	}
	m, err := e.model(ctx, "base", e.s.Terms.Base, e.s.Terms.BaseURL)
	if err != nil {
		return nil, err
	}
	e.base = &m
	f, err := e.kept("base", e.s.Terms.Base)
	if err != nil {
		if f, err = e.losses(ctx, "base", e.s.Terms.Base, m); err != nil {
			return nil, err
		}
	}
	e.baseLoss = f.means()
	return f.Losses, nil
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
	e.examples, e.key = s.Tokens(), s.Key
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
	f, err := e.kept(name, entry.Model)
	if err != nil {
		var m copied.Model
		if m, err = e.model(ctx, name, entry.Model, entry.URL); err == nil {
			if e.s.Committee > 0 {
				m, err = toward(*e.base, m, len(e.s.Invited))
			} else {
				_, err = e.keep(name, entry.Model, m)
			}
			if err == nil {
				f, err = e.losses(ctx, name, entry.Model, m)
			}
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
	means := f.means()
	if e.s.Terms.Adjusted {
		means.Exact = e.baseLoss.Lower(means)
	}
	return arena.Judged{Status: arena.Placed, Losses: duel.Digest(f.Losses), Mean: means.Exact}, f.Losses, nil
}

// copies finds the first earlier entry that an entry is a copy of; 0: the base of the contest. An entry whose loss is
// too large for a place accuses none: it may have layers of many models.
func (e *evaluation) copies(ctx context.Context, r arena.Report, losses [][]uint32, base []uint32,
	i int) (of uint32, _ bool, _ error) {
	if base != nil && copied.Alike(base, losses[i]) {
		return 0, true, nil
	}
	var mine copied.Model
	for j := range i {
		if r.Entries[j].Status != arena.Placed || e.s.TooLarge(r.Entries[j].Mean) {
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
		other, err := e.sample(ctx, e.s.All[j])
		if err != nil {
			return 0, false, err
		}
		if other.Compare(mine, e.base).Copy() {
			return uint32(j + 1), true, nil
		}
	}
	return 0, false, nil
}

// sampleFile is the sample of a model with which later entries are compared, so that the model is not read for each.
type sampleFile struct {
	Model  canon.Digest  `cbor:"1,keyasint"`
	Sample copied.Sample `cbor:"2,keyasint"`
}

func (e *evaluation) samplePath(name string) string {
	return filepath.Join(e.dir, "sample-"+name+".cbor")
}

// keep takes the sample of a model, and keeps it.
func (e *evaluation) keep(name string, digest canon.Digest, m copied.Model) (copied.Sample, error) {
	s := copied.Take(m, e.key)
	return s, onDisk(folder.WriteFile(e.samplePath(name), canon.MustMarshal(sampleFile{digest, s})))
}

// sample reads the sample of an entry, and takes it if it was not kept.
func (e *evaluation) sample(ctx context.Context, entry arena.Entry) (copied.Sample, error) {
	name := fmt.Sprint(entry.Number)
	var f sampleFile
	if raw, err := os.ReadFile(e.samplePath(name)); err == nil && canon.Unmarshal(raw, &f) == nil &&
		f.Model == entry.Model && f.Sample.Seed == e.key {
		return f.Sample, nil
	}
	m, err := e.model(ctx, name, entry.Model, entry.URL)
	if err != nil {
		return copied.Sample{}, err
	}
	return e.keep(name, entry.Model, m)
}

// model gets and reads a model. The error wraps errAbsent or errInvalid if it is a reason.
func (e *evaluation) model(ctx context.Context, name string, digest canon.Digest, url string) (m copied.Model,
	_ error) {
	getting, cancel := context.WithTimeout(ctx, e.slice)
	defer cancel()
	dir := filepath.Join(e.dir, dirModels, name)
	path := filepath.Join(dir, files.NameList)
	if err := e.get(getting, url, files.NameList, path, "", files.MaxList); err != nil {
		return m, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return m, onDisk(err)
	}
	list, err := files.Decode(raw)
	if err == nil && list.Digest() != digest {
		err = errors.New("the list of its files has another digest")
	}
	if err != nil {
		return m, errors.Join(fmt.Errorf("%w: %w", errAbsent, err), os.Remove(path))
	}
	if list.Bytes() > e.s.Terms.MaxBytes {
		return m, fmt.Errorf("%w: %d bytes, at most %d", errInvalid, list.Bytes(), e.s.Terms.MaxBytes)
	}
	for _, f := range list.Files {
		if err := e.get(getting, url, f.Name, filepath.Join(dir, f.Name), hex.EncodeToString(f.Sum[:]),
			int64(f.Bytes)); err != nil {
			return m, err
		}
	}
	read, err := modelfolder.Read(os.DirFS(dir))
	if err != nil {
		return m, fmt.Errorf("%w: %w", errInvalid, err)
	}
	return copied.Model{Config: read.Config, Tensors: read.Tensors}, nil
}

// lossesFile is what was computed of a model.
type lossesFile struct {
	Model  canon.Digest `cbor:"1,keyasint"`
	Losses []uint32     `cbor:"2,keyasint"`

	Adjusted []uint32 `cbor:"3,keyasint,omitempty"` // where the terms say so
}

func (f lossesFile) means() arena.Losses {
	m := arena.Losses{Exact: duel.Mean(f.Losses)}
	if len(f.Adjusted) > 0 {
		m.Adjusted = duel.Mean(f.Adjusted)
	}
	return m
}

func (e *evaluation) lossesPath(name string) string {
	return filepath.Join(e.dir, "losses-"+name+".cbor")
}

// kept reads the losses of a model that were computed before.
func (e *evaluation) kept(name string, model canon.Digest) (f lossesFile, _ error) {
	raw, err := os.ReadFile(e.lossesPath(name))
	if err != nil {
		return f, err
	}
	if err := canon.Unmarshal(raw, &f); err != nil {
		return f, err
	}
	n := int(e.s.Terms.Examples)
	if f.Model != model || len(f.Losses) != n || e.s.Terms.Adjusted && len(f.Adjusted) != n {
		return f, errors.New("arena: the losses are of another model")
	}
	return f, nil
}

// losses computes the losses of a model, and keeps them.
func (e *evaluation) losses(ctx context.Context, name string, digest canon.Digest, m copied.Model) (f lossesFile,
	_ error) {
	ended, err := e.compute(m)
	if err != nil {
		return f, err
	}
	defer ended()
	step := len(e.examples)/4 + 1
	said := step
	f.Model = digest
	progress := func(done int) {
		if done >= said {
			e.Say(fmt.Sprintf("contest %d: entry %s: %d of %d examples", e.s.ID, name, done, len(e.examples)))
			said = done + step
		}
	}
	if e.s.Terms.Adjusted {
		f.Losses, f.Adjusted, err = exampleloss.Adjusted(ctx, m.Config, m.Tensors, e.examples, e.Threads, progress)
	} else {
		f.Losses, err = exampleloss.Measure(ctx, m.Config, m.Tensors, e.examples, e.Threads, progress)
	}
	if err != nil && ctx.Err() == nil { // whatever keeps it from being computed, the evaluator has to report
		return f, fmt.Errorf("%w: %w", errInvalid, err)
	}
	if err != nil {
		return f, err
	}
	return f, onDisk(folder.WriteFile(e.lossesPath(name), canon.MustMarshal(f)))
}

// compute sets memory aside for the losses of a model, and takes note that they are computed until ended is called. The
// error is errLater if other work has the memory now.
func (e *evaluation) compute(m copied.Model) (ended func(), _ error) {
	work := fmt.Sprintf("contest %d", e.s.ID)
	need, err := exampleloss.Bytes(m.Config, e.examples)
	if has, most := m.Config.VocabSize(), e.s.Terms.MaxVocab(); err == nil && has > most {
		err = fmt.Errorf("a vocabulary of %d tokens, at most %d", has, most)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	held := int64(copies)
	if e.s.Committee > 0 {
		held += 2 // the model of the round, and the entry
	}
	for _, t := range m.Tensors {
		need += int64(t.Shape.Elements()) * held * 4
	}
	if e.Memory != nil {
		if err := e.Memory.Reserve(work, need); err != nil {
			return nil, fmt.Errorf("%w: %w", errLater, err)
		}
	}
	over := func() {}
	if e.Begin != nil {
		over = e.Begin()
	}
	return func() {
		over()
		if e.Memory != nil {
			e.Memory.Release(work)
		}
	}, nil
}

// copies of the weights of a model, in float32, are in memory while its losses are computed: those that were read, and
// those of the step with its values.
const copies = 2

// get gets a file from a folder at an URL, unless it is there. The error wraps errAbsent if it is a reason, and is
// errLater while there is time to try again.
func (e *evaluation) get(ctx context.Context, url, name, path, sum string, most int64) error {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return nil // it was checked before it got its name
	}
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(most>>20)*time.Second)
	defer cancel()
	client := untrusted.NewClient(untrusted.NewTransport(e.Private))
	defer client.CloseIdleConnections()
	_, err := download.Get(ctx, download.File{URL: strings.TrimSuffix(url, "/") + "/" + name, Path: path, SHA256: sum,
		Max: most, Client: client, Retry: time.Millisecond})
	switch {
	case err == nil:
		return nil
	case ctx.Err() == context.Canceled:
		return ctx.Err()
	case errors.Is(err, download.ErrTooLarge), errors.Is(err, download.ErrDigest), e.late:
		return fmt.Errorf("%w: %w", errAbsent, err)
	}
	return fmt.Errorf("%w: %w", errLater, err)
}

// Fetch gets a model that is published at an URL into a folder, and reads it. A call that is cut off is continued by
// the next one.
func Fetch(ctx context.Context, dir, url string, digest canon.Digest, most uint64, private bool,
	patience time.Duration) (map[string]*tensor.Tensor, error) {
	e := &evaluation{Judge: &Judge{Private: private}, dir: dir, late: true, slice: patience}
	e.s.Terms.MaxBytes = most
	m, err := e.model(ctx, "model", digest, url)
	return m.Tensors, err
}
