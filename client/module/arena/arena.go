// Package arena sends the messages and the queries of x/arena in the types of protocol/arena and
// protocol/committee.
package arena

import (
	"context"

	"github.com/starling-network/starling/canon"
	xarena "github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/client/module/submit"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/committee"
)

// Client sends the messages and the queries of x/arena: contests of models, and committees.
type Client struct{ submit.Account }

// Create begins a contest, and returns its number. It locks the prize, the bond and the fees.
func (c Client) Create(ctx context.Context, t arena.Terms) (uint64, error) {
	var r arenapb.MsgCreateResponse
	err := submit.Ask(ctx, c.Account, &arenapb.MsgCreate{Sender: c.Address(), Terms: xarena.FromTerms(t)}, &r)
	return r.Contest, err
}

// Enter enters a model by a commitment, and returns the number of the entry. It locks the deposit.
func (c Client) Enter(ctx context.Context, contest uint64, commitment canon.Digest) (uint32, error) {
	var r arenapb.MsgEnterResponse
	err := submit.Ask(ctx, c.Account, &arenapb.MsgEnter{Sender: c.Address(), Contest: contest,
		Commitment: commitment[:]}, &r)
	return r.Entry, err
}

// RevealSet publishes where the hidden set of a contest of the account is.
func (c Client) RevealSet(ctx context.Context, contest uint64, url string) error {
	return submit.Send(ctx, c.Account, &arenapb.MsgRevealSet{Sender: c.Address(), Contest: contest, Url: url})
}

// RevealEntry publishes which model an entry of the account is, and where its files are.
func (c Client) RevealEntry(ctx context.Context, contest uint64, entry uint32, model, salt canon.Digest,
	url string) error {
	return submit.Send(ctx, c.Account, &arenapb.MsgRevealEntry{Sender: c.Address(), Contest: contest, Entry: entry,
		Model: model[:], Salt: salt[:], Url: url})
}

// Evaluate makes the account an evaluator, or ready again, with uzen in addition to those of its bond, and returns the
// bond.
func (c Client) Evaluate(ctx context.Context, bond uint64) (uint64, error) {
	var r arenapb.MsgEvaluateResponse
	err := submit.Ask(ctx, c.Account, &arenapb.MsgEvaluate{Sender: c.Address(), Bond: bond}, &r)
	return r.Bond, err
}

// Retire ends the evaluations of the account, and returns the uzen of its bond.
func (c Client) Retire(ctx context.Context) (uint64, error) {
	var r arenapb.MsgRetireResponse
	err := submit.Ask(ctx, c.Account, &arenapb.MsgRetire{Sender: c.Address()}, &r)
	return r.Bond, err
}

// Seal binds the account to a report about a contest.
func (c Client) Seal(ctx context.Context, contest uint64, seal canon.Digest) error {
	return submit.Send(ctx, c.Account, &arenapb.MsgSeal{Sender: c.Address(), Contest: contest, Seal: seal[:]})
}

// OpenReport shows a sealed report.
func (c Client) OpenReport(ctx context.Context, contest uint64, r arena.Report, salt canon.Digest) error {
	return submit.Send(ctx, c.Account, &arenapb.MsgOpenReport{Sender: c.Address(), Contest: contest,
		Report: canon.MustMarshal(r), Salt: salt[:]})
}

// Contests are the contests that are open, or all, the latest first.
func (c Client) Contests(ctx context.Context, all bool) ([]arena.Contest, error) {
	var list []arena.Contest
	for next := (&arenapb.QueryContestsRequest{All: all}); ; {
		r, err := arenapb.NewQueryClient(c.Account).Contests(ctx, next)
		page, err := query.List[arena.Contest](r.GetContests(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		if next.Before = page[len(page)-1].ID; next.Before == 1 {
			return list, nil
		}
	}
}

// Standing is a contest with its entries, and the reports of its latest panel that were sealed.
type Standing struct {
	arena.Contest
	All      []arena.Entry
	Opinions []arena.Opinion
}

// Contest is a contest; query.ErrNotFound if there is none with this number.
func (c Client) Contest(ctx context.Context, id uint64) (s Standing, err error) {
	r, err := arenapb.NewQueryClient(c.Account).Contest(ctx, &arenapb.QueryContestRequest{Contest: id})
	if s.Contest, err = query.One[arena.Contest](r.GetContest(), err); err != nil {
		return s, err
	}
	if s.All, err = query.List[arena.Entry](r.GetEntries(), nil); err != nil {
		return s, err
	}
	s.Opinions, err = query.List[arena.Opinion](r.GetOpinions(), nil)
	return s, err
}

// Evaluators are the evaluators of the network.
func (c Client) Evaluators(ctx context.Context) ([]arena.Evaluator, error) {
	r, err := arenapb.NewQueryClient(c.Account).Evaluators(ctx, &arenapb.QueryEvaluatorsRequest{})
	return query.List[arena.Evaluator](r.GetEvaluators(), err)
}

// Convene begins a committee, and returns its number. It locks the pay and the fees of all its rounds, and the bond.
func (c Client) Convene(ctx context.Context, t committee.Terms) (uint64, error) {
	var r arenapb.MsgConveneResponse
	err := submit.Ask(ctx, c.Account, xarena.FromCommittee(c.Address(), t), &r)
	return r.Committee, err
}

// Join makes the account a member of a committee, or ready again, with uzen in addition to those of its stake, and
// returns the stake.
func (c Client) Join(ctx context.Context, id, stake uint64) (uint64, error) {
	var r arenapb.MsgJoinResponse
	err := submit.Ask(ctx, c.Account, &arenapb.MsgJoin{Sender: c.Address(), Committee: id, Stake: stake}, &r)
	return r.Stake, err
}

// Leave takes the account out of a committee, and returns the uzen of its stake.
func (c Client) Leave(ctx context.Context, id uint64) (uint64, error) {
	var r arenapb.MsgLeaveResponse
	err := submit.Ask(ctx, c.Account, &arenapb.MsgLeave{Sender: c.Address(), Committee: id}, &r)
	return r.Stake, err
}

// Begin begins a round of a committee of the account with a model, and the root of a set.
func (c Client) Begin(ctx context.Context, id uint64, model canon.Digest, url string, set canon.Digest) error {
	return submit.Send(ctx, c.Account, &arenapb.MsgBegin{Sender: c.Address(), Committee: id, Model: model[:], Url: url,
		Set: set[:]})
}

// Committees are the committees of the network, the latest first.
func (c Client) Committees(ctx context.Context) ([]committee.Committee, error) {
	var list []committee.Committee
	for next := (&arenapb.QueryCommitteesRequest{}); ; {
		r, err := arenapb.NewQueryClient(c.Account).Committees(ctx, next)
		page, err := query.List[committee.Committee](r.GetCommittees(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		if next.Before = page[len(page)-1].ID; next.Before == 1 {
			return list, nil
		}
	}
}

// Assembly is a committee with its members, by their addresses.
type Assembly struct {
	committee.Committee
	All []committee.Member
}

// Committee is a committee; query.ErrNotFound if there is none with this number.
func (c Client) Committee(ctx context.Context, id uint64) (a Assembly, err error) {
	for next := (&arenapb.QueryCommitteeRequest{Committee: id}); ; {
		r, err := arenapb.NewQueryClient(c.Account).Committee(ctx, next)
		if a.Committee, err = query.One[committee.Committee](r.GetCommittee(), err); err != nil {
			return a, err
		}
		page, err := query.List[committee.Member](r.GetMembers(), nil)
		a.All = append(a.All, page...)
		if err != nil || len(page) == 0 || len(a.All) >= min(int(a.Members), committee.MaxMembers) {
			return a, err
		}
		next.After = page[len(page)-1].Account
	}
}
