// Package contests draws messages of contests of models: of hosts, entrants and evaluators, of whom some lie or are
// silent.
package contests

import (
	"context"
	"fmt"
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	xarena "github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/client"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/sim/random/draw"
)

const url = "http://127.0.0.1/"

// Next is any message of a contest and its sender; "": there is none. The account of the client hosts and enters,
// with an amount of a coin.
func Next(ctx context.Context, d draw.Source, c *client.Client, in coin.Coin, amount uint64) (string, sdk.Msg, error) {
	switch n := d.Intn(16); {
	case n < 2:
		return c.Address(), create(d, c.Address(), in, amount), nil
	case n < 5:
		return evaluate(ctx, d, c)
	}
	open, err := c.Arena.Contests(ctx, false)
	if err != nil || len(open) == 0 {
		return "", nil, err
	}
	s, err := c.Arena.Contest(ctx, draw.Pick(d, open).ID)
	if err != nil {
		return "", nil, err
	}
	return about(d, s, c.Address())
}

func create(d draw.Source, host string, in coin.Coin, amount uint64) sdk.Msg {
	blocks := func() uint32 { return uint32(d.UpTo(4, 9)) } // now and then too few
	t := arena.Terms{Title: fmt.Sprintf("%x", d.Uint64()), Denom: in.Denom, Prize: amount / 2, Bond: amount / 8,
		Deposit: amount / 50, Fee: amount / 100, Panel: uint32(d.UpTo(2, 3)) | 1, Set: canon.Sum("set"), Examples: 100,
		Tokenizer: canon.Sum("tokenizer"), Vocab: 10, Length: 10, MaxBytes: 1000, Most: uint32(d.UpTo(1, 5)),
		Entering: blocks(), Revealing: blocks(),
		Judging: blocks(), Curve: arena.Curve(d.Intn(3)), Places: uint32(d.UpTo(1, 4))}
	switch t.Curve {
	case arena.Winner:
		t.Places = 1
	case arena.Softmax:
		t.Width = uint32(1 + d.Below(1_000_000))
	case arena.Linear:
	}
	if d.Often(20) {
		t.Worst = 1_500_000
	}
	return &arenapb.MsgCreate{Sender: host, Terms: xarena.FromTerms(t)}
}

// evaluate lets a verifier evaluate, with more or less than the least bond, or retire.
func evaluate(ctx context.Context, d draw.Source, c *client.Client) (string, sdk.Msg, error) {
	all, err := c.Registry.Participants(ctx)
	for _, p := range draw.Mixed(d, all) {
		switch {
		case !p.Has(crew.Verifier):
		case d.Often(8):
			return p.ID, &arenapb.MsgRetire{Sender: p.ID}, err
		default:
			return p.ID, &arenapb.MsgEvaluate{Sender: p.ID, Bond: d.Below(2 * arena.MinBond)}, err
		}
	}
	return "", nil, err
}

func of(kind, account string) canon.Digest { return canon.Sum("random/arena/"+kind, []byte(account)) }

// about is a message about a contest, most of the time one of its phase.
func about(d draw.Source, s module.Standing, me string) (string, sdk.Msg, error) {
	switch {
	case s.Phase == arena.Entering && len(s.Invited) > 0:
		who := draw.Pick(d, s.Invited)
		commitment := arena.Commitment(s.ID, who, of("model", who), of("salt", who))
		return who, &arenapb.MsgEnter{Sender: who, Contest: s.ID, Commitment: commitment[:]}, nil
	case s.Phase == arena.Entering || d.Often(3):
		commitment := arena.Commitment(s.ID, me, of("model", me), of("salt", me))
		return me, &arenapb.MsgEnter{Sender: me, Contest: s.ID, Commitment: commitment[:]}, nil
	case s.Phase == arena.Revealing && (s.SetURL == "" || len(s.All) == 0):
		if d.Often(20) {
			return "", nil, nil
		}
		return s.Host, &arenapb.MsgRevealSet{Sender: s.Host, Contest: s.ID, Url: url}, nil
	case s.Phase == arena.Revealing:
		e := draw.Pick(d, s.All)
		model, salt := of("model", e.Account), of("salt", e.Account)
		return e.Account, &arenapb.MsgRevealEntry{Sender: e.Account, Contest: s.ID, Entry: e.Number, Model: model[:],
			Salt: salt[:], Url: url}, nil
	}
	return reported(d, s)
}

// reported seals or opens the report of a member of the panel.
func reported(d draw.Source, s module.Standing) (string, sdk.Msg, error) {
	if len(s.Panel) == 0 {
		return "", nil, nil
	}
	who := draw.Pick(d, s.Panel)
	r, err := report(s, who)
	if err != nil {
		return "", nil, err
	}
	salt := of("salt", who)
	if s.Phase == arena.Sealing {
		seal := r.Seal(s.ID, who, salt)
		return who, &arenapb.MsgSeal{Sender: who, Contest: s.ID, Seal: seal[:]}, nil
	}
	if d.Often(5) {
		salt = canon.Sum("another")
	}
	return who, &arenapb.MsgOpenReport{Sender: who, Contest: s.ID, Report: canon.MustMarshal(r), Salt: salt[:]}, nil
}

// report is that of an evaluator: the same of most of them.
func report(s module.Standing, who string) (arena.Report, error) {
	lie := of("lie", who)
	if lie[0] < 40 || s.Terms.Set[0]^lie[1] == 0 {
		return arena.Report{Absent: true}, nil
	}
	r := arena.Report{Entries: make([]arena.Judged, len(s.All))}
	for i, e := range s.All {
		m := of("mean", e.Account)
		first := slices.IndexFunc(s.All, func(o arena.Entry) bool { return o.Model == e.Model })
		switch {
		case e.Model.IsZero():
			r.Entries[i].Status = arena.Unrevealed
		case first < i && s.Committee == 0:
			r.Entries[i] = arena.Judged{Status: arena.Copy, Of: uint32(first + 1)}
		case m[0] < 30:
			r.Entries[i].Status = arena.Status(2 + m[1]%2 + 1)
		default:
			r.Entries[i] = arena.Judged{Status: arena.Placed, Losses: m, Mean: uint64(m[2]) << 13}
		}
	}
	for i, j := range r.Entries { // a copy of an entry that is not placed is no copy
		if j.Of > 0 && r.Entries[j.Of-1].Status != arena.Placed {
			r.Entries[i] = arena.Judged{Status: arena.Invalid}
		}
	}
	if s.Committee > 0 {
		r.Base = uint64(of("base", s.Host)[0]) << 13
		return r, nil
	}
	return s.Place(r, func(a, b uint32) (bool, error) { return s.Seed[0]&1 == 1, nil })
}
