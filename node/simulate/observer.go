package simulate

import (
	"context"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/ending"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
)

// observer measures each round when it is attested, since its blobs are deleted later, and counts what all had moved by
// then. It implements check.Checker.
type observer struct {
	ctx      context.Context
	network  *sim.Network // that is observed
	job      *prepare.CompiledJob
	eval     *cpu.Exec // of the trained model; nil: the job is modelled
	members  []string  // workers, then verifiers
	workers  int
	progress func(round, rounds int, at time.Duration)
	attested []attested // by round, of those that are in the lineage
	began    moment     // the moment of the match
	started  bool
	out      map[string]time.Duration // of those who had to leave, by address: when that was first seen
}

// attested is a round of the lineage.
type attested struct {
	moment
	root    canon.Digest
	metrics []rundir.Metric
	line    rundir.Line
	worked  time.Duration // by its workers, at its units
}

// moment is a virtual time, and the totals of all members at it.
type moment struct {
	at             time.Duration
	sent, received uint64 // bytes
	paid           uint64 // uzen
}

// Block implements check.Checker.
func (o *observer) Block(check.World) error {
	w := o.network
	if err := o.ctx.Err(); err != nil {
		return err
	}
	s, err := w.State()
	if err != nil {
		return nil // not matched yet
	}
	now := moment{at: w.Now()}
	for _, name := range o.members {
		u := w.Usage(name)
		now.sent, now.received = now.sent+u.Sent, now.received+u.Received
	}
	if escrow, err := w.Chain().Market.Escrow(o.ctx, s.Terms.Job); err == nil {
		now.paid = escrow.Paid + escrow.Fee
	}
	if !o.started {
		o.began, o.started = now, true
	}
	for _, m := range s.Members {
		if _, known := o.out[m.ID]; !known && !m.Active {
			o.out[m.ID] = now.at - o.began.at
		}
	}
	n := int(s.Base.Round)
	o.attested = o.attested[:min(n, len(o.attested))]
	if n > 0 && len(o.attested) == n && o.attested[n-1].root != s.Base.Root { // rolled back, and attested again
		o.attested = o.attested[:n-1]
	}
	for len(o.attested) < n {
		r, err := o.measure(now, uint32(len(o.attested)+1))
		if err != nil {
			return err
		}
		o.attested = append(o.attested, r)
		if o.progress != nil {
			o.progress(len(o.attested), int(o.job.Spec.Rounds), now.at)
		}
	}
	return nil
}

// End implements check.Checker.
func (o *observer) End(check.World) error { return nil }

// result reads the chain of a simulation that is over, and measures the checkpoints of its lineage.
func (o *observer) result(ctx context.Context, b *prepare.CompiledJob, w *sim.Network,
	events canon.Digest) (*Simulation, error) {
	k, err := ending.Read(ctx, w.Chain(), b.JobID())
	if err != nil {
		return nil, err
	}
	e := ending.State{CompiledJob: b, Books: k, Root: k.Run.Base.Root,
		RefereeTime: func(dispute.Dispute) float64 { return 0 }}
	if o.eval != nil {
		if e.Metrics, err = measured.Metrics(b, o.eval, 0, b.Genesis, measured.UnitLogs{}, o.workers); err != nil {
			return nil, err
		}
	}
	var worked time.Duration
	for _, r := range o.attested {
		e.Metrics, e.Lines, worked = append(e.Metrics, r.metrics...), append(e.Lines, r.line), worked+r.worked
	}
	s := &Simulation{Summary: *e.Summary(), Overrides: b.Job.Overrides, Modelled: o.eval == nil, Blocks: w.Height(),
		Halted: k.Run.Why, Events: events}
	if o.eval == nil { // what was trained is not the job
		e.Lines, s.StateRoot = nil, canon.Digest{}
	}
	s.ending = e
	if n := len(o.attested); n > 0 {
		spent := (o.attested[n-1].at - o.began.at).Seconds() * float64(o.workers)
		s.Utilisation = worked.Seconds() / spent
	}
	paid, slashed := map[string]uint64{}, map[string]uint64{}
	for _, r := range k.Receipts {
		switch r.Kind {
		case reward.Slash:
			slashed[r.Who] += r.Amount
		case reward.Work, reward.Audit:
			paid[r.Who] += r.Amount
		}
	}
	for _, name := range o.members {
		u, id := w.Usage(name), w.ID(name)
		p := PartyResult{Name: name, BytesUp: u.Sent, BytesDown: u.Received, JobBytes: u.Job,
			WorkedSeconds: u.Worked.Seconds(), PaidUzen: paid[id], SlashedUzen: slashed[id]}
		if m, ok := k.Run.Member(id); ok && !m.Active {
			p.Out, p.OutSeconds = m.Why, o.out[id].Seconds()
		}
		s.Parties = append(s.Parties, p)
	}
	return s, nil
}

// measure reads a round that was just attested.
func (o *observer) measure(now moment, round uint32) (attested, error) {
	entry, err := o.network.Chain().Training.Lineage(o.ctx, o.job.JobID(), round)
	if err != nil {
		return attested{}, err
	}
	r := attested{moment: now, root: entry.Attestation.Checkpoint.Root, line: rundir.NewLine(entry)}
	spec := o.job.Spec
	for unit, id := range entry.Workers {
		machine := o.network.Machine(o.network.Name(id))
		r.worked += machine.Unit * time.Duration(spec.StepsOf(uint32(unit))) / time.Duration(spec.Steps)
	}
	var ckpt *train.Checkpoint
	var units measured.UnitLogs
	if o.eval != nil {
		if ckpt, units, err = o.heardIn(entry); err != nil {
			return attested{}, err
		}
	}
	if r.metrics, err = measured.Metrics(o.job, o.eval, round, ckpt, units, o.workers); err != nil {
		return attested{}, err
	}
	before := o.began
	if n := len(o.attested); n > 0 {
		before = o.attested[n-1].moment
	}
	m := &r.metrics[len(r.metrics)-1]
	m.Seconds = (now.at - before.at).Seconds()
	m.TokensPerSecond = float64(o.job.Tokens(int(spec.Steps))) / m.Seconds
	m.BytesUp, m.BytesDown, m.PaidUzen = now.sent-before.sent, now.received-before.received, now.paid
	return r, nil
}

// heardIn is the checkpoint of an entry of the lineage, and what its workers said of their units.
func (o *observer) heardIn(entry progress.Entry) (*train.Checkpoint, measured.UnitLogs, error) {
	w, spec := o.network, o.job.Spec
	ckpt, err := bundle.LoadCheckpoint(o.ctx, entry.Attestation.Checkpoint, w.Blob)
	if err != nil {
		return nil, measured.UnitLogs{}, err
	}
	get := func(id blob.CID) ([]byte, error) { return w.Blob(o.ctx, id) }
	units := measured.MeanLogs(spec, entry, func(cid string) ([]byte, error) {
		id, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return get(id)
	}, func(int, error) {})
	units.Agreement = bundle.Agreement(spec, o.job.Genesis, entry, get)
	return ckpt, units, nil
}
