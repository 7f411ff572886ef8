package committee

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job/owners"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/prepare"
	rules "github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/hidden"
	"github.com/starling-network/starling/protocol/committee"
)

// HostOptions are those of a host.
type HostOptions struct {
	Dir     string          // of the run: checkpoint, sets, models of rounds
	URL     string          // where Handler is reached
	Terms   committee.Terms // pay, drawn, stake, window; of a round the coin, fee, bond, panel and blocks
	Text    string          // of which the sets are made
	Window  int             // tokens of an example
	Most    int             // examples of a set
	Least   int             // members that may be drawn before a round begins
	Private bool            // files at private addresses are got, too
	Say     func(text string)
}

// Host is the side of a host: it holds the model, as the coordinator of masked sums does.
type Host struct {
	HostOptions
	b     *prepare.CompiledJob
	model *train.Checkpoint
	state hostState
	sets  []hidden.Set
	offer []byte
	shelf *shelf
}

// hostState is the file of a host.
type hostState struct {
	Job       canon.Digest `json:"job"`
	Committee uint64       `json:"committee,omitempty"` // 0: not begun
	Applied   uint64       `json:"applied,omitempty"`   // contest of the last round that is in the model
}

const (
	fileState = "committee.json"
	fileSets  = "sets"
	dirRounds = "rounds"
)

// NewHost begins a compiled job in a folder, or continues it.
func NewHost(b *prepare.CompiledJob, opt HostOptions) (*Host, error) {
	if b.Job.Federated.Updates != owners.Public {
		return nil, &Error{Code: BadJob, What: "the updates of the job are " + b.Job.Federated.Updates,
			Fix: "write federated: {updates: public}; starling job federated serve trains it as it is"}
	}
	offer := federated.Offer(b)
	h := &Host{HostOptions: opt, b: b, offer: canon.MustMarshal(offer), state: hostState{Job: offer.Job()},
		shelf: newShelf(filepath.Join(opt.Dir, dirRounds), true)}
	err := folder.ReadJSON(filepath.Join(opt.Dir, fileState), &h.state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, onDisk(err)
	}
	if h.state.Job != offer.Job() {
		return nil, federated.ErrOtherJob
	}
	if h.model, err = federated.LoadCheckpoint(opt.Dir, b.Genesis); err != nil {
		return nil, onDisk(err)
	}
	if h.sets, err = h.makeSets(); err != nil {
		return nil, err
	}
	h.terms(offer.Job())
	return h, nil
}

// makeSets makes a set for each round, or reads those of an earlier call: their keys are drawn.
func (h *Host) makeSets() (sets []hidden.Set, err error) {
	rounds := int(h.b.Spec.Rounds)
	dir := filepath.Join(h.Dir, fileSets)
	for n := range rounds {
		raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(n+1)))
		if errors.Is(err, fs.ErrNotExist) && n == 0 {
			break
		}
		if err != nil {
			return nil, onDisk(err)
		}
		s, err := hidden.Decode(raw)
		if err != nil {
			return nil, onDisk(err)
		}
		sets = append(sets, s)
	}
	if len(sets) > 0 {
		return sets, nil
	}
	t := arena.Tokens{Encode: h.b.Tokenizer.Encode, Vocab: h.b.Tokenizer.VocabSize(), Window: h.Window}
	t.Examples = min(h.Most, len(t.Encode(h.Text))/h.Window/rounds)
	if sets, err = arena.MakeSets(h.Text, t, rounds); err != nil {
		return nil, &Error{Code: BadText, What: fmt.Sprintf("the text has no %d sets of examples", rounds), Err: err,
			Fix: fmt.Sprintf("give a longer text, smaller windows or fewer rounds: each needs %d examples of its own",
				rules.MinExamples)}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, onDisk(err)
	}
	for n := rounds - 1; n >= 0; n-- { // the first one last: with it all are there
		if err := folder.WriteFile(filepath.Join(dir, fmt.Sprint(n+1)), sets[n].Encode()); err != nil {
			return nil, onDisk(err)
		}
	}
	return sets, nil
}

// terms fills in what follows from the job and the sets.
func (h *Host) terms(job canon.Digest) {
	t := &h.Terms
	t.Rounds, t.Members, t.Job = h.b.Spec.Rounds, uint32(h.b.Job.Federated.Owners), job
	r := &t.Round
	r.Title, r.About = h.b.Job.Name, h.URL
	r.Examples, r.Vocab, r.Length = uint32(len(h.sets[0].Examples)), h.sets[0].Vocab, h.sets[0].Length()
	r.Tokenizer = sha256.Sum256(h.b.Tokenizer.JSON())
	r.Adjusted = true
	r.MaxBytes = uint64(h.b.Size().Parameters())*2 + 1<<20 // of weights in float32, with room for the names
}

// Handler serves the job, the models of rounds, and the sets of rounds whose models are entered.
func (h *Host) Handler() http.Handler {
	m := http.NewServeMux()
	m.Handle("/federated/", wire.Offered(h.offer))
	m.Handle(pattern, h.shelf)
	return m
}

// Begin begins the committee, unless an earlier call did, and returns its number.
func (h *Host) Begin(ctx context.Context, m Hosting) (uint64, error) {
	if h.state.Committee > 0 {
		return h.state.Committee, nil
	}
	id, err := m.Convene(ctx, h.Terms)
	if err != nil {
		return 0, err
	}
	h.state.Committee = id
	h.Say(fmt.Sprintf("committee %d: %d rounds, the job is at %s", id, h.Terms.Rounds, h.URL))
	return id, h.save()
}

func (h *Host) save() error {
	return onDisk(folder.WriteJSON(filepath.Join(h.Dir, fileState), h.state))
}

// Block does what the host owes at a block. done says that the committee is over, and the model is in the folder.
func (h *Host) Block(ctx context.Context, m Hosting) (done bool, err error) {
	a, err := m.Committee(ctx, h.state.Committee)
	if err != nil {
		return false, err
	}
	n := uint64(a.Begun)
	switch a.Phase {
	case committee.Idle:
		if err := h.apply(ctx, m, a); err != nil {
			return false, err
		}
		ready := 0
		for _, m := range a.All {
			if m.Ready && m.Stake >= a.Terms.Stake {
				ready++
			}
		}
		if ready < h.Least {
			return false, nil
		}
		return false, h.next(ctx, m, a, n+1)
	case committee.Round:
		s, err := m.Contest(ctx, a.Contest)
		if err != nil || s.Phase == rules.Entering {
			return false, err
		}
		if s.Phase == rules.Revealing && s.SetURL == "" { // from here on the set is public
			if err := folder.WriteFile(filepath.Join(h.shelf.at(n), files.NameSet), h.sets[n-1].Encode()); err != nil {
				return false, onDisk(err)
			}
			return false, m.RevealSet(ctx, s.ID, h.url(n))
		}
	case committee.Over:
		if err := h.apply(ctx, m, a); err != nil {
			return false, err
		}
		return true, onDisk(federated.Export(h.b, h.model, h.Dir))
	case committee.Drawing:
	}
	return false, nil
}

func (h *Host) url(round uint64) string { return fmt.Sprintf("%s/rounds/%d", h.URL, round) }

// next publishes the model of a round, and begins it.
func (h *Host) next(ctx context.Context, m Hosting, a module.Assembly, n uint64) error {
	dir := h.shelf.at(n)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return onDisk(err)
	}
	if err := federated.Export(h.b, h.model, dir); err != nil {
		return onDisk(err)
	}
	model, err := arena.ListBase(dir)
	if err != nil {
		return err
	}
	h.Say(fmt.Sprintf("committee %d: round %d begins, of %d members", a.ID, n, a.Members))
	return m.Begin(ctx, a.ID, model, h.url(n), h.sets[n-1].Root())
}

// apply moves the model by the mean of the entries of a round that have a gain. A round without such entries leaves the
// model as it was.
func (h *Host) apply(ctx context.Context, m Hosting, a module.Assembly) error {
	if a.Contest == h.state.Applied {
		return nil
	}
	s, err := m.Contest(ctx, a.Contest)
	if err != nil {
		return err
	}
	var moves mean // one update is in memory at a time
	for _, o := range s.Outcomes {
		if o.Gain == 0 {
			continue
		}
		params, err := h.entry(ctx, s, s.All[o.Entry-1])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // it is paid, and gone
			h.Say(fmt.Sprintf("contest %d: entry %d is left out: %v", s.ID, o.Entry, err))
			continue
		}
		moves.add(h.model.Params, params)
	}
	next := &train.Checkpoint{Round: a.Begun, Names: h.model.Names, Params: h.model.Params, Outer: h.model.Outer}
	if moves.updates > 0 {
		base := *h.model
		base.Round = a.Begun - 1
		moved, err := outer.Advance(h.b.Spec, &base, [][]*tensor.Tensor{moves.tensors(h.model.Params)})
		if err != nil {
			return err
		}
		next.Params, next.Outer = moved.Params, moved.Outer
	}
	h.Say(fmt.Sprintf("contest %d: %d models of %d are in the mean", s.ID, moves.updates, len(s.Invited)))
	if err := federated.SaveCheckpoint(h.Dir, next); err != nil {
		return onDisk(err)
	}
	h.model, h.state.Applied = next, a.Contest
	return h.save()
}

// entry gets the model of an entry.
func (h *Host) entry(ctx context.Context, s module.Standing, e rules.Entry) ([]*tensor.Tensor, error) {
	dir := filepath.Join(h.Dir, "entry")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	model, err := arena.Fetch(ctx, dir, e.URL, e.Model, s.Terms.MaxBytes, h.Private, patience)
	if err != nil {
		return nil, err
	}
	params, err := federated.Params(h.b.Genesis, model)
	return params, errors.Join(err, os.RemoveAll(dir))
}

// mean is that of updates, which are added in the order of their members, in float64: any party that has the models
// computes the same.
type mean struct {
	sums    [][]float64 // of each tensor
	updates int
}

// add adds the update of an entry: the model of the round less that of the entry.
func (m *mean) add(model, entry []*tensor.Tensor) {
	if m.updates++; m.sums == nil {
		m.sums = make([][]float64, len(model))
	}
	for i, t := range model {
		update := train.Difference(t, entry[i])
		if m.sums[i] == nil {
			m.sums[i] = make([]float64, t.Shape.Elements())
		}
		for k, x := range update.F32() {
			m.sums[i][k] += float64(x)
		}
	}
}

// tensors is the mean in the shapes of a model.
func (m *mean) tensors(model []*tensor.Tensor) []*tensor.Tensor {
	list := make([]*tensor.Tensor, len(model))
	for i, t := range model {
		list[i] = tensor.New(t.Shape)
		for k, sum := range m.sums[i] {
			list[i].F32()[k] = float32(sum / float64(m.updates))
		}
	}
	return list
}
