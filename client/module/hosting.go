package module

import (
	"context"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/hosting"
)

// Hosting sends the messages and the queries of x/hosting: models that are hosted for coins.
type Hosting struct{ account Account }

// Register registers a model of the account, and returns its number.
func (h Hosting) Register(ctx context.Context, m hosting.Model) (uint64, error) {
	var r hostingpb.MsgRegisterResponse
	err := ask(ctx, h.account, &hostingpb.MsgRegister{Sender: h.account.Address(), Name: m.Name, Files: m.Files[:],
		Weights: m.Weights[:], Job: m.Job, PartPpm: m.PartPPM, Licence: m.Licence, Base: m.Base}, &r)
	return r.Model, err
}

// Host offers to host a model, or changes URL, prices and bond.
func (h Hosting) Host(ctx context.Context, p hosting.Place) error {
	return send(ctx, h.account, &hostingpb.MsgHost{Sender: h.account.Address(), Model: p.Model, Url: p.URL,
		Denom: p.Prices.Denom, Input: p.Prices.Input, Output: p.Prices.Output, Bond: p.Bond})
}

// Leave takes no new channels at a model.
func (h Hosting) Leave(ctx context.Context, model uint64) error {
	return send(ctx, h.account, &hostingpb.MsgLeave{Sender: h.account.Address(), Model: model})
}

// Open opens a channel to the provider of a place with an amount in its coin, for vouchers of a key that the account
// has given for no other channel. It returns the number of the channel.
func (h Hosting) Open(ctx context.Context, p hosting.Place, key []byte, amount uint64) (uint64, error) {
	var r hostingpb.MsgOpenResponse
	err := ask(ctx, h.account, &hostingpb.MsgOpen{Sender: h.account.Address(), Model: p.Model, Provider: p.Provider,
		Amount: amount, Key: key, Denom: p.Prices.Denom}, &r)
	return r.Channel, err
}

// Fund adds grains to a channel of the account.
func (h Hosting) Fund(ctx context.Context, channel, amount uint64) error {
	return send(ctx, h.account, &hostingpb.MsgFund{Sender: h.account.Address(), Channel: channel, Amount: amount})
}

// Redeem redeems grains up to a total by a voucher, and returns how they were divided.
func (h Hosting) Redeem(ctx context.Context, v hosting.Voucher, total uint64) (hosting.Split, error) {
	var r hostingpb.MsgRedeemResponse
	err := ask(ctx, h.account, &hostingpb.MsgRedeem{Sender: h.account.Address(), Channel: v.Channel, Chain: v.Chain,
		Amount: v.Amount, Signature: v.Signature, Total: total}, &r)
	return hosting.Split{Fee: r.Fee, Part: r.Part, Provider: r.Paid}, err
}

// Close closes a channel: at once that of a provider, after the blocks of closing that of a payer.
func (h Hosting) Close(ctx context.Context, channel uint64) error {
	return send(ctx, h.account, &hostingpb.MsgClose{Sender: h.account.Address(), Channel: channel})
}

// Params are the parameters as messages have them.
func (h Hosting) Params(ctx context.Context) (hostingpb.Params, error) {
	r, err := hostingpb.NewQueryClient(h.account).Params(ctx, &hostingpb.QueryParamsRequest{})
	if err != nil {
		return hostingpb.Params{}, query.Known(err)
	}
	return r.Params, nil
}

// Models are the models that may be hosted, the latest first.
func (h Hosting) Models(ctx context.Context) ([]hosting.Model, error) {
	var list []hosting.Model
	err := h.pages(ctx, func(m hosting.Model) bool {
		list = append(list, m)
		return false
	})
	return list, err
}

// Find is the number of the model of the account whose files have an index with this digest; 0: there is none.
func (h Hosting) Find(ctx context.Context, files canon.Digest) (uint64, error) {
	found := uint64(0)
	err := h.pages(ctx, func(m hosting.Model) bool {
		if m.Owner == h.account.Address() && m.Files == files {
			found = m.ID
		}
		return found > 0
	})
	return found, err
}

// pages gives the models, the latest first, until one is enough.
func (h Hosting) pages(ctx context.Context, enough func(hosting.Model) bool) error {
	for next := (&hostingpb.QueryModelsRequest{}); ; {
		r, err := hostingpb.NewQueryClient(h.account).Models(ctx, next)
		page, err := query.List[hosting.Model](r.GetModels(), err)
		if err != nil || len(page) == 0 || slices.ContainsFunc(page, enough) {
			return err
		}
		if next.Before = page[len(page)-1].ID; next.Before == 1 {
			return nil
		}
	}
}

// Model is a model; query.ErrNotFound if there is none with this number.
func (h Hosting) Model(ctx context.Context, id uint64) (hosting.Model, error) {
	r, err := hostingpb.NewQueryClient(h.account).Model(ctx, &hostingpb.QueryModelRequest{Model: id})
	return query.One[hosting.Model](r.GetModel(), err)
}

// Places are the places of the providers of a model; 0: of all models.
func (h Hosting) Places(ctx context.Context, model uint64) ([]hosting.Place, error) {
	var list []hosting.Place
	for next := (&hostingpb.QueryPlacesRequest{Model: model}); ; {
		r, err := hostingpb.NewQueryClient(h.account).Places(ctx, next)
		page, err := query.List[hosting.Place](r.GetPlaces(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		next.AfterModel, next.After = page[len(page)-1].Model, page[len(page)-1].Provider
	}
}

// Channels are the open channels of an account, as provider or as payer; "": of all accounts.
func (h Hosting) Channels(ctx context.Context, account string, provider bool) ([]hosting.Channel, error) {
	var list []hosting.Channel
	for next := (&hostingpb.QueryChannelsRequest{Account: account, Provider: provider}); ; {
		r, err := hostingpb.NewQueryClient(h.account).Channels(ctx, next)
		page, err := query.List[hosting.Channel](r.GetChannels(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		next.After = page[len(page)-1].ID
	}
}

// Channel is an open channel; query.ErrNotFound if there is none with this number.
func (h Hosting) Channel(ctx context.Context, id uint64) (hosting.Channel, error) {
	r, err := hostingpb.NewQueryClient(h.account).Channel(ctx, &hostingpb.QueryChannelRequest{Channel: id})
	return query.One[hosting.Channel](r.GetChannel(), err)
}

// Accuse accuses the receipt of an answer, with the token from which on it is decided and the checking program, and
// returns the number of the accusation.
func (h Hosting) Accuse(ctx context.Context, s answer.Signed, from uint32, program []byte) (uint64, error) {
	var r hostingpb.MsgAccuseResponse
	err := ask(ctx, h.account, &hostingpb.MsgAccuse{Sender: h.account.Address(), Receipt: s.Encode(), From: from,
		Program: program}, &r)
	return r.Accusation, err
}

// Move makes a move in the dispute of an accusation.
func (h Hosting) Move(ctx context.Context, accusation uint64, m dispute.Move) error {
	return send(ctx, h.account, &hostingpb.MsgMove{Sender: h.account.Address(), Accusation: accusation, Body: m.Encode()})
}

// Accusations are the accusations of answers, all or open ones.
func (h Hosting) Accusations(ctx context.Context, open bool) ([]answer.Accusation, error) {
	var list []answer.Accusation
	for next := (&hostingpb.QueryAccusationsRequest{Open: open}); ; {
		r, err := hostingpb.NewQueryClient(h.account).Accusations(ctx, next)
		page, err := query.List[answer.Accusation](r.GetAccusations(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		next.After = page[len(page)-1].ID
	}
}

// Accusation is an accusation; query.ErrNotFound if there is none with this number.
func (h Hosting) Accusation(ctx context.Context, id uint64) (answer.Accusation, error) {
	r, err := hostingpb.NewQueryClient(h.account).Accusation(ctx, &hostingpb.QueryAccusationRequest{Accusation: id})
	return query.One[answer.Accusation](r.GetAccusation(), err)
}

// Shown is what the accuser of an open accusation has shown: the receipt, and the checking program.
func (h Hosting) Shown(ctx context.Context, id uint64) (s answer.Signed, program []byte, err error) {
	r, err := hostingpb.NewQueryClient(h.account).Accusation(ctx, &hostingpb.QueryAccusationRequest{Accusation: id})
	if err != nil {
		return s, nil, query.Known(err)
	}
	s, err = answer.Decode(r.Receipt)
	return s, r.Program, err
}
