package arena

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/run/crew"
)

// messages implements arenapb.MsgServer over a keeper.
type messages struct{ *Keeper }

// gas consumes gas in addition to that of the SDK.
func gas(ctx context.Context, amount uint64, what string) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(amount, what)
}

// ToTerms reads terms as messages have them.
func ToTerms(m arenapb.Terms) (arena.Terms, error) {
	t := arena.Terms{Title: m.Title, Denom: m.Denom, Prize: m.Prize, Bond: m.Bond, Deposit: m.Deposit, Fee: m.Fee,
		Panel: m.Panel, Examples: m.Examples, Vocab: m.Vocab, Length: m.Length, MaxBytes: m.MaxBytes, Most: m.Most,
		Entering: m.Entering, Revealing: m.Revealing, Judging: m.Judging, Curve: arena.Curve(min(m.Curve, 255)),
		Places: m.Places, Width: m.Width, Worst: m.Worst, BaseURL: m.BaseUrl, About: m.About,
		Adjusted: m.Adjusted}
	var errs [3]error
	t.Set, errs[0] = runpb.Digest(m.Set)
	if len(m.Base) > 0 {
		t.Base, errs[1] = runpb.Digest(m.Base)
	}
	t.Tokenizer, errs[2] = runpb.Digest(m.Tokenizer)
	return t, errors.Join(errs[:]...)
}

// FromTerms writes terms as messages have them.
func FromTerms(t arena.Terms) arenapb.Terms {
	m := arenapb.Terms{Title: t.Title, Denom: t.Denom, Prize: t.Prize, Bond: t.Bond, Deposit: t.Deposit, Fee: t.Fee,
		Panel: t.Panel, Set: t.Set[:], Examples: t.Examples, Vocab: t.Vocab, Length: t.Length, MaxBytes: t.MaxBytes,
		Most: t.Most, Entering: t.Entering, Revealing: t.Revealing, Judging: t.Judging, Curve: uint32(t.Curve),
		Places: t.Places, Width: t.Width, Worst: t.Worst, BaseUrl: t.BaseURL, About: t.About,
		Tokenizer: t.Tokenizer[:], Adjusted: t.Adjusted}
	if !t.Base.IsZero() {
		m.Base = t.Base[:]
	}
	return m
}

// Create implements arenapb.MsgServer.
func (k messages) Create(ctx context.Context, m *arenapb.MsgCreate) (*arenapb.MsgCreateResponse, error) {
	t, err := ToTerms(m.Terms)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", arena.ErrTerms, err))
	}
	if err := t.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if _, err := k.custody.Coins.Open(ctx, t.Denom); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	gas(ctx, recordGas, "contest")
	id, err := k.last.Next(ctx)
	if err != nil {
		return nil, err
	}
	c, err := arena.Create(id+1, m.Sender, t, height(ctx))
	if err == nil {
		err = k.custody.Lock(ctx, m.Sender, t.Denom, c.Held())
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgCreateResponse{Contest: c.ID}, k.save(ctx, arena.Contest{}, c)
}

// Enter implements arenapb.MsgServer.
func (k messages) Enter(ctx context.Context, m *arenapb.MsgEnter) (*arenapb.MsgEnterResponse, error) {
	gas(ctx, recordGas, "entry")
	commitment, err := runpb.Digest(m.Commitment)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	old, err := k.contest(ctx, m.Contest)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	entries, err := k.entered(ctx, old.ID)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Commitment == commitment || old.Committee > 0 && e.Account == m.Sender {
			return nil, ErrorTable.Wrap(fmt.Errorf("%w: entry %d", arena.ErrTwice, e.Number))
		}
	}
	c, e, err := old.Enter(m.Sender, commitment, height(ctx))
	if err == nil {
		err = k.custody.Lock(ctx, m.Sender, c.Terms.Denom, c.Terms.Deposit)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgEnterResponse{Entry: e.Number}, errors.Join(k.save(ctx, old, c),
		k.entries.Set(ctx, collections.Join(c.ID, e.Number), e))
}

// RevealSet implements arenapb.MsgServer.
func (k messages) RevealSet(ctx context.Context, m *arenapb.MsgRevealSet) (*arenapb.MsgRevealSetResponse, error) {
	old, err := k.contest(ctx, m.Contest)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	c, err := old.RevealSet(m.Sender, m.Url, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgRevealSetResponse{}, k.save(ctx, old, c)
}

// RevealEntry implements arenapb.MsgServer.
func (k messages) RevealEntry(ctx context.Context, m *arenapb.MsgRevealEntry) (*arenapb.MsgRevealEntryResponse, error) {
	var errs [2]error
	var model, salt canon.Digest
	model, errs[0] = runpb.Digest(m.Model)
	salt, errs[1] = runpb.Digest(m.Salt)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	old, err := k.contest(ctx, m.Contest)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	key := collections.Join(m.Contest, m.Entry)
	e, err := found(k.entries.Get(ctx, key))
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: entry %d of contest %d", err, m.Entry, m.Contest))
	}
	c, e, err := old.RevealEntry(e, m.Sender, model, salt, m.Url, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgRevealEntryResponse{}, errors.Join(k.save(ctx, old, c), k.entries.Set(ctx, key, e))
}

// Evaluate implements arenapb.MsgServer.
func (k messages) Evaluate(ctx context.Context, m *arenapb.MsgEvaluate) (*arenapb.MsgEvaluateResponse, error) {
	params, err := k.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, err := k.registry.Get(ctx, m.Sender)
	if err != nil || !p.Eligible(crew.Verifier, params) {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s is no registered verifier with the stake of one", arena.ErrEvaluator,
			m.Sender))
	}
	old, err := k.evaluator(ctx, m.Sender)
	if err != nil {
		return nil, err
	}
	e, err := old.Offer(m.Bond)
	if err == nil && old.Account == "" {
		gas(ctx, recordGas, "evaluator")
		e.Account = m.Sender
		err = k.count(ctx, 1)
	}
	if err == nil {
		err = k.custody.Lock(ctx, m.Sender, "", m.Bond)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgEvaluateResponse{Bond: e.Bond}, k.evaluators.Set(ctx, e.Account, e)
}

// Retire implements arenapb.MsgServer.
func (k messages) Retire(ctx context.Context, m *arenapb.MsgRetire) (*arenapb.MsgRetireResponse, error) {
	e, err := k.evaluator(ctx, m.Sender)
	if err != nil {
		return nil, err
	}
	bond, err := e.Retire()
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgRetireResponse{Bond: bond}, errors.Join(k.evaluators.Remove(ctx, m.Sender), k.count(ctx, -1),
		k.custody.Pay(ctx, "", m.Sender, bond))
}

// Seal implements arenapb.MsgServer.
func (k messages) Seal(ctx context.Context, m *arenapb.MsgSeal) (*arenapb.MsgSealResponse, error) {
	seal, err := runpb.Digest(m.Seal)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	old, err := k.contest(ctx, m.Contest)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	key := collections.Join(m.Contest, m.Sender)
	had, err := k.opinions.Has(ctx, key)
	if err != nil {
		return nil, err
	}
	if had {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: the seal of %s", arena.ErrTwice, m.Sender))
	}
	heard, err := k.heard(ctx, old)
	if err != nil {
		return nil, err
	}
	c, o, err := old.Seal(m.Sender, seal, len(heard)+1, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	gas(ctx, recordGas, "report")
	return &arenapb.MsgSealResponse{}, errors.Join(k.save(ctx, old, c), k.opinions.Set(ctx, key, o))
}

// OpenReport implements arenapb.MsgServer.
func (k messages) OpenReport(ctx context.Context, m *arenapb.MsgOpenReport) (*arenapb.MsgOpenReportResponse, error) {
	gas(ctx, reportGas, "report")
	r, err := arena.DecodeReport(m.Report)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	salt, err := runpb.Digest(m.Salt)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	old, err := k.contest(ctx, m.Contest)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	heard, err := k.heard(ctx, old)
	if err != nil {
		return nil, err
	}
	left, at := 0, -1
	for i, o := range heard {
		switch {
		case o.Account == m.Sender:
			at = i
		case o.Report == nil:
			left++
		}
	}
	if at < 0 {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s sealed no report about %d", arena.ErrParty, m.Sender, old.ID))
	}
	entries, err := k.entered(ctx, old.ID)
	if err != nil {
		return nil, err
	}
	c, o, err := old.OpenReport(heard[at], r, salt, entries, left, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgOpenReportResponse{}, errors.Join(k.save(ctx, old, c),
		k.opinions.Set(ctx, collections.Join(old.ID, m.Sender), o))
}
