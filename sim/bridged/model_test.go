package bridged

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	channeltypes "github.com/cosmos/ibc-go/v11/modules/core/04-channel/types"

	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/bridge"
)

// model is how many coins there must be on a chain, by the events of its blocks alone.
type model struct {
	supply   map[string]int64 // by denomination on the chain; nil: not known yet
	escrowed map[string]int64 // by denomination of its own
	vouchers map[string]int64 // by denomination on the other chain
	gifts    map[string]int64 // sent to the account of the bridge by hand
	packets  map[string]*packet
}

func newModel() model {
	return model{supply: map[string]int64{}, escrowed: map[string]int64{}, vouchers: map[string]int64{},
		gifts: map[string]int64{}, packets: map[string]*packet{}}
}

// packet carries coins from the chain in whose model it is.
type packet struct {
	denom    string
	amount   int64
	home     bool // the coin goes back to the chain that issued it
	received bool // with or without success
	failed   bool // with the answer that the coins go back
	returned bool
	done     bool // the sending chain knows what became of it
}

// flies reports whether the coins are on neither chain.
func (p *packet) flies() bool { return !p.returned && (!p.received || p.failed) }

// follow applies the events of the latest block to the model.
func (s *shore) follow() {
	if s.model.supply == nil { // the genesis
		s.model.supply = s.supplies()
		return
	}
	events := s.Done.Events
	for _, r := range s.Done.TxResults {
		events = append(events[:len(events):len(events)], r.Events...)
	}
	for _, e := range events {
		about := map[string]string{}
		for _, a := range e.Attributes {
			about[a.Key] = a.Value
		}
		switch e.Type {
		case banktypes.EventTypeCoinMint:
			s.made(about[sdk.AttributeKeyAmount], 1)
		case banktypes.EventTypeCoinBurn:
			s.made(about[sdk.AttributeKeyAmount], -1)
		case banktypes.EventTypeCoinReceived:
			s.gift(about)
		default:
			s.moved(e.Type, about)
		}
	}
}

func (s *shore) made(amount string, sign int64) {
	coins, err := sdk.ParseCoinsNormalized(amount)
	s.play.must(err)
	for _, c := range coins {
		s.model.supply[c.Denom] += sign * c.Amount.Int64()
	}
}

// gift counts coins that reach the account of the bridge; those of packets are taken off again.
func (s *shore) gift(about map[string]string) {
	if about["receiver"] != s.escrow() {
		return
	}
	coins, err := sdk.ParseCoinsNormalized(about["amount"])
	s.play.must(err)
	for _, c := range coins {
		s.model.gifts[c.Denom] += c.Amount.Int64()
	}
}

func (s *shore) escrow() string {
	return transfertypes.GetEscrowAddress(transfertypes.PortID, s.channel).String()
}

// moved applies an event about a packet.
func (s *shore) moved(kind string, about map[string]string) {
	number := about[channeltypes.AttributeKeySequence]
	switch kind {
	case channeltypes.EventTypeSendPacket:
		data, err := hex.DecodeString(about[channeltypes.AttributeKeyDataHex])
		s.play.must(err)
		var d transfertypes.FungibleTokenPacketData
		s.play.must(json.Unmarshal(data, &d))
		amount, ok := sdkmath.NewIntFromString(d.Amount)
		if !ok || s.model.packets[number] != nil {
			s.play.fail("%s: packet %s was sent twice, or of %q", s.ChainID, number, d.Amount)
		}
		p := &packet{denom: d.Denom, amount: amount.Int64()}
		p.denom, p.home = strings.CutPrefix(d.Denom, transfertypes.PortID+"/"+s.channel+"/")
		s.model.packets[number] = p
		s.leaves(p, 1)
		if !p.home {
			s.model.gifts[p.denom] -= p.amount
		}
	case channeltypes.EventTypeWriteAck:
		p := s.other.model.packets[number]
		if p == nil || p.received || p.returned {
			s.play.fail("%s: packet %s is received twice, or was never sent: %+v", s.ChainID, number, p)
			return
		}
		ack, err := hex.DecodeString(about[channeltypes.AttributeKeyAckHex])
		s.play.must(err)
		var answer channeltypes.Acknowledgement
		s.play.must(channeltypes.SubModuleCdc.UnmarshalJSON(ack, &answer))
		p.received, p.failed = true, !answer.Success()
		if s.play.ends["received"]++; p.failed {
			s.play.ends["refused"]++
		} else if p.home {
			s.model.escrowed[p.denom] -= p.amount
		} else {
			s.model.vouchers[p.denom] += p.amount
		}
	case channeltypes.EventTypeAcknowledgePacket, channeltypes.EventTypeTimeoutPacket:
		p, late := s.model.packets[number], kind == channeltypes.EventTypeTimeoutPacket
		if p == nil || p.done || p.received == late {
			s.play.fail("%s: packet %s ends twice, or too early: %+v", s.ChainID, number, p)
			return
		}
		if p.done = true; late {
			s.play.ends["too late"]++
		}
		if late || p.failed {
			p.returned = true
			s.leaves(p, -1)
		}
	}
}

// leaves lets the coins of a packet leave this chain, or come back with sign -1.
func (s *shore) leaves(p *packet, sign int64) {
	if p.home {
		s.model.vouchers[p.denom] -= sign * p.amount
	} else {
		s.model.escrowed[p.denom] += sign * p.amount
	}
}

// flying is how many of a coin of this chain are on their way, in either direction.
func (s *shore) flying(denom string) (sum int64) {
	for _, way := range []struct {
		packets map[string]*packet
		home    bool
	}{{s.model.packets, false}, {s.other.model.packets, true}} {
		for _, p := range way.packets {
			if p.denom == denom && p.home == way.home && p.flies() {
				sum += p.amount
			}
		}
	}
	return sum
}

func (s *shore) supplies() map[string]int64 {
	r, err := banktypes.NewQueryClient(s.Queries).TotalSupply(s.play.ctx,
		&banktypes.QueryTotalSupplyRequest{Pagination: &sdkquery.PageRequest{Limit: 1000}})
	s.play.must(err)
	all := map[string]int64{}
	for _, c := range r.Supply {
		all[c.Denom] = c.Amount.Int64()
	}
	return all
}

// check compares both chains with the model after a block of this one.
func (s *shore) check() {
	supplies := s.supplies()
	if want := maps.Clone(s.model.supply); true {
		maps.DeleteFunc(want, func(_ string, n int64) bool { return n == 0 })
		if !maps.Equal(want, supplies) {
			s.play.fail("%s: the supplies are %v, want %v", s.ChainID, supplies, want)
		}
	}
	for denom, supply := range supplies {
		r, err := banktypes.NewQueryClient(s.Queries).DenomOwners(s.play.ctx, &banktypes.QueryDenomOwnersRequest{
			Denom: denom, Pagination: &sdkquery.PageRequest{Limit: 10_000}})
		s.play.must(err)
		sum, escrowed := int64(0), int64(0)
		for _, o := range r.DenomOwners {
			sum += o.Balance.Amount.Int64()
			if s.channel != "" && o.Address == s.escrow() {
				escrowed = o.Balance.Amount.Int64()
			}
		}
		if sum != supply {
			s.play.fail("%s: %d of %s in accounts, and a supply of %d", s.ChainID, sum, denom, supply)
		}
		if want := s.model.escrowed[denom] + s.model.gifts[denom]; s.channel != "" && escrowed != want {
			s.play.fail("%s: %d of %s in escrow, want %d", s.ChainID, escrowed, denom, want)
		}
	}
	for _, x := range []*shore{s, s.other} {
		for denom, n := range x.model.escrowed {
			if out := x.other.model.vouchers[denom] + x.flying(denom); n != out {
				s.play.fail("%s: %d of %s in escrow, and %d elsewhere", x.ChainID, n, denom, out)
			}
		}
	}
	for denom, n := range s.model.vouchers {
		if has := supplies[bridge.End{Channel: s.channel}.Voucher(denom)]; has != n {
			s.play.fail("%s: %d vouchers for %s, want %d", s.ChainID, has, denom, n)
		}
	}
	all, err := books.Count(s.play.ctx, s.Queries)
	s.play.must(err)
	for _, b := range all {
		if !b.Balanced() {
			s.play.fail("%s: the books are wrong: %+v", s.ChainID, b)
		}
	}
}
