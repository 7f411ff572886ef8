// Package owner is the side of an owner of data in federated training: it trains on data that never leave the process,
// and sends one update under masks a round (docs/federated.md). It connects to the coordinator, and takes no
// connection.
package owner

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/prg"
	coordinator "github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/prepare"
)

// Options as starling job federated join has them, unless its flags say otherwise.
const (
	Delta = 1e-5
	Retry = 10 * time.Minute
)

// Options of an owner.
type Options struct {
	URL     string // of the coordinator
	HTTP    *http.Client
	Home    *Home
	Data    string   // folder that the patterns of the job file are below
	Base    string   // folder of the base model; "": the one of the job file, below Data
	Known   [][]byte // names of owners, of which federated.min_cohort have to take part in a round; nil: any
	Budget           // of all jobs together
	Threads int
	Retry   time.Duration // how long a coordinator that does not answer is asked again
	Say     func(text string)
	Clock   wire.Clock // nil: that of the machine
}

func (o Options) clock() wire.Clock {
	if o.Clock == nil {
		return wire.Wall{}
	}
	return o.Clock
}

// Result is what an owner did.
type Result struct {
	Job      string   `json:"job"`
	Name     string   `json:"name"`
	Owner    string   `json:"owner"`
	Examples int      `json:"examples"`
	Sent     int      `json:"sent"`            // updates, in this process
	Lost     int      `json:"lost"`            // rounds that had no place for the update, in this process
	Epsilon  *float64 `json:"epsilon"`         // of the owner, of all jobs so far; null: one had no noise for it
	Example  *float64 `json:"example_epsilon"` // and of one of its examples
	Delta    float64  `json:"delta"`
}

// ErrJob is wrapped by reasons why the job does not fit the data of the owner.
var ErrJob = errors.New("the job cannot be trained on this data")

// owner is one taking part.
type owner struct {
	Options
	client *wire.Client
	b      *prepare.CompiledJob
	task   *train.Task
	use    *Use
	weight float64
	lot    int // examples of a step
}

// Join takes part in the job of a coordinator until that is over.
func Join(ctx context.Context, opt Options) (*Result, error) {
	o := &owner{Options: opt, client: wire.New(opt.URL, opt.HTTP, opt.Home.Key, opt.Retry, opt.clock())}
	offer, err := o.client.Offer(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.compile(offer); err != nil {
		return nil, err
	}
	defer func() { _ = o.b.Close() }() // files that are read only
	f, examples := o.b.Job.Federated, o.b.Corpus.Train.Len()/o.b.Example
	if f.Updates == owners.Public {
		return nil, fmt.Errorf("%w: its updates are public, and this command hides them", ErrJob)
	}
	o.weight = f.Weight(examples)
	as := federated.Spent{Noise: f.Noise.Multiplier}
	if n := f.ExampleNoise; n.On() {
		if examples < n.MinExamples {
			return nil, fmt.Errorf("%w: %d examples, and its epsilon is of owners with at least %d", ErrJob, examples,
				n.MinExamples)
		}
		as.ExampleNoise, as.Rate, as.Steps = n.Multiplier, o.terms().Rate(examples), o.b.Spec.Steps
	}
	o.use = opt.Home.use(offer.Job().String(), o.b.Job.Name, as)
	if err := opt.Home.allow(o.use, o.b.Spec.Rounds, opt.Budget); err != nil {
		return nil, err
	}
	r := &Result{Job: offer.Job().String(), Name: o.b.Job.Name, Owner: opt.Home.Name(), Examples: examples,
		Delta: opt.Delta}
	o.Say(fmt.Sprintf("job %s (%.12s): %d rounds of %d steps, an update of at most %d weights each, clipped to %g, with "+
		"noise %g and noise %g for examples, %s; at least %d of %d owners", o.b.Job.Name, r.Job, o.b.Spec.Rounds,
		o.b.Spec.Steps, coordinator.Most(o.b.Genesis), f.Clip, f.Noise.Multiplier, f.ExampleNoise.Multiplier, f.Updates,
		f.MinCohort, f.Owners))
	if err := o.client.Join(ctx); err != nil {
		return nil, err
	}
	if err := o.rounds(ctx, r); err != nil {
		return nil, err
	}
	r.Epsilon, r.Example = opt.Home.Bounds(opt.Delta)
	return r, nil
}

// compile makes the job of an offer ready, on data of the owner alone.
func (o *owner) compile(offer *federated.Offer) error {
	if err := kernel.Knows(offer.Numerics); err != nil {
		return err
	}
	b, err := o.prepare(offer)
	if err != nil {
		return err
	}
	o.b, o.lot = b, b.Job.WorkerBatch()
	if o.b.Step.Digest() != offer.Program || o.b.Size().Parameters() != 4*int64(offer.Entries) {
		return errors.Join(fmt.Errorf("%w: it makes another training step than the coordinator states; images may have "+
			"another size, or this program another version", ErrJob), o.b.Close())
	}
	if base := coordinator.Base(o.b); (base == nil) != (offer.Base == nil) || base != nil && *base != *offer.Base {
		return errors.Join(fmt.Errorf("%w: the base model here, or its tokenizer, is another than the coordinator has",
			ErrJob), o.b.Close())
	}
	if o.b.Job.Federated.ExampleNoise.On() { // the gradient of a step is that of one example
		if o.b, err = o.prepare(offer, "training.global_batch_size=1"); err != nil {
			return errors.Join(err, b.Close())
		}
		if err := b.Close(); err != nil {
			return err
		}
	}
	exec, err := o.b.Spec.Compile(o.b.Step, o.Threads)
	if err != nil {
		return errors.Join(err, o.b.Close())
	}
	o.task = prepare.TaskOf(o.b, exec)
	return nil
}

// prepare compiles the job of an offer with other values of some keys. Of its own data an owner holds nothing out.
func (o *owner) prepare(offer *federated.Offer, keys ...string) (*prepare.CompiledJob, error) {
	set := slices.Concat(offer.Overrides, []string{"val_set_size=0"}, keys)
	base := o.Base
	if base != "" {
		var err error
		if base, err = filepath.Abs(base); err != nil {
			return nil, err
		}
	}
	if base != "" && offer.Base != nil {
		set = append(set, "model.base_model="+strconv.Quote(filepath.ToSlash(base)))
	}
	j, err := job.Federated(offer.File, filepath.Join(o.Data, "job.yaml"), set...)
	if err == nil {
		err = errors.Join(j.Confine(base), j.CheckFiles())
	}
	if err != nil {
		return nil, err
	}
	j.Numerics = offer.Numerics
	return prepare.New(j)
}

// terms are those of the steps of a job with noise for examples.
func (o *owner) terms() dpsgd.Terms {
	n := o.b.Job.Federated.ExampleNoise
	return dpsgd.Terms{Clip: n.Clip, Noise: n.Multiplier, Lot: float64(o.lot)}
}

// rounds takes part in each round that the owner is drawn for, until the job is over.
func (o *owner) rounds(ctx context.Context, r *Result) error {
	for from := uint32(o.use.Last + 1); ; {
		a, err := o.client.Announced(ctx, from)
		if err != nil {
			return err
		}
		if a.Over {
			return nil
		}
		if a.Round < from || a.Round >= o.b.Spec.Rounds {
			return fmt.Errorf("%w: it announces round %d, after %d", wire.ErrRefused, a.Round, from)
		}
		from = a.Round + 1
		if !federated.Drawn(o.client.Job, a, o.Home.Key.Public().(ed25519.PublicKey), o.b.Job.Federated.Sample) {
			o.Say(fmt.Sprintf("round %d: not drawn", a.Round))
			continue
		}
		loss, err := o.round(ctx, a)
		switch {
		case errors.Is(err, wire.ErrGone), errors.Is(err, wire.ErrRefused), errors.Is(err, federated.ErrMessage),
			errors.Is(err, errAlone):
			r.Lost++
			o.Say(fmt.Sprintf("round %d: without this owner: %v", a.Round, err))
		case err != nil:
			return err
		default:
			r.Sent++
			o.Say(fmt.Sprintf("round %d: update sent, loss here %.4f", a.Round, loss))
		}
	}
}

// round trains on the weights of a round, and sends the update.
func (o *owner) round(ctx context.Context, a federated.Announcement) (loss float32, err error) {
	u, err := o.train(ctx, a)
	if err != nil {
		return 0, err
	}
	loss = u.loss
	values, err := fixedpoint.Encode(u.update, o.b.Job.Federated.Clip, o.weight)
	if err != nil {
		return loss, err
	}
	next, err := o.next(a, u, values)
	if err != nil {
		return loss, err
	}
	var seed prg.Key
	_, _ = rand.Read(seed[:]) // never fails
	f := o.b.Job.Federated
	m, message, err := federated.NewMember(o.client.Job, a, federated.Conditions{Cohort: f.MinCohort, Known: o.Known,
		Noise: f.Noise.Multiplier, Encrypted: f.Updates == owners.Encrypted}, o.Home.Key, seed, values)
	if err != nil {
		return loss, err
	}
	for _, p := range federated.Phases {
		if p == federated.Secrets {
			return loss, o.client.Send(ctx, a.Round, p, message)
		}
		if p == federated.Vectors {
			if err := errors.Join(o.Home.keep(o.use.Job, next), o.Home.sends(o.use, a.Round)); err != nil {
				return loss, err
			}
		}
		reply, err := o.client.Exchange(ctx, a.Round, p, message)
		if err != nil {
			return loss, err
		}
		if message, err = m.Answer(p, reply); err != nil {
			return loss, fmt.Errorf("%w: %w", errAlone, err)
		}
	}
	return loss, nil
}

// errAlone wraps the reasons why an owner does not answer a coordinator.
var errAlone = errors.New("the coordinator asks for what an owner does not give")
