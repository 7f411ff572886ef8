package provider

import (
	"context"
	"errors"

	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/reporter"
)

// states are those of the runs that the service works in. Its caller holds the lock.
func (s *service) states() (runs []run.State) {
	for _, p := range s.runs {
		if state := p.State.Load(); state != nil {
			runs = append(runs, *state)
		}
	}
	return runs
}

// report writes the transfers from members of runs to this host on the chain. A refused report is not repeated.
func (r *registration) report(ctx context.Context, runs []run.State) {
	participants, err := r.chain.Registry.Participants(ctx)
	if err != nil {
		r.log.Warn("cannot read the participants, and makes no reports", "err", err)
		return
	}
	reports := r.about.Report(reporter.View{Runs: runs, Participants: participants, Readings: readings(r.host.Peers())})
	r.working.Go(func() {
		for _, a := range reports {
			ended := r.watch.Begin(r.chain.Address(), a.Job, busy.Of(r.Class.Registered(), r.Class), a)
			err := r.chain.Reward.ReportPeer(ctx, a.Job, a.Peer, a.Link)
			ended(err)
			if ctx.Err() != nil {
				return
			}
			log := r.log.With("job", a.Job, "peer", a.Peer, "bytes", a.Link.Bytes, "ms", a.Link.Millis, "round_trip_ms",
				a.Link.RTT)
			switch refusal, ok := errors.AsType[*transaction.Error](err); {
			case ok:
				log.Warn("a report is refused", "space", refusal.Space, "code", refusal.Code, "err", err)
			case err != nil:
				log.Warn("cannot report", "err", err)
			default:
				log.Info("reported what a member gave")
			}
		}
	})
}

// readings are what a host measured, as a reporter takes it.
func readings(links []link.State) (list []reporter.Reading) {
	for _, l := range links {
		list = append(list, reporter.Reading{
			Peer: l.Peer.String(), Bytes: l.Delivered.Bytes, Timed: l.Delivered.Timed,
			Micros: uint64(l.Delivered.Waited.Microseconds()),
			RTT:    inspect.Milliseconds(l.Shortest),
		})
	}
	return list
}
